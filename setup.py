"""Metadata that setup.cfg cannot hold: the project's address from its one place, and README with links to this version's tag."""

import re
from pathlib import Path

from setuptools import setup

PACKAGE = Path(__file__).parent / "vieval_plugin"


def constant(file: str, name: str) -> str:
    """The text that a module of the package gives a name."""
    return re.search(
        rf'^{name} = "(.+)"$',
        (PACKAGE / file).read_text(encoding="utf-8"),
        re.MULTILINE,
    )[1]


PROJECT, TAG = (
    constant("text/errors.py", "PROJECT"),
    f"v{constant('__init__.py', '__version__')}",
)
README = PACKAGE.with_name("README.md").read_text(encoding="utf-8")

setup(
    url=PROJECT,
    project_urls={
        "Documentation": f"{PROJECT}/tree/{TAG}/docs",
        "Changelog": f"{PROJECT}/blob/{TAG}/CHANGELOG.md",
        "Issues": f"{PROJECT}/issues",
        "Security": f"{PROJECT}/security/policy",
    },
    long_description=re.sub(
        rf"({PROJECT}/(?:blob|raw|tree))/main/", rf"\1/{TAG}/", README
    ),
)
