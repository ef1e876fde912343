"""The wheel holds the tree: every package is listed, and every file of the product is in it."""

import configparser
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

import vieval_plugin

ROOT = Path(__file__).parents[2]
MAPPED = {
    "vieval_plugin": "vieval_plugin",
    **{name: f"vieval_plugin/{name}" for name in ("judges", "prompt_templates", "task_configs")},
}
needs_git = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="what is tracked is known in a checkout alone")


def product_files(root):
    """Tracked files of the product, by their place in the wheel."""
    listed = subprocess.run(["git", "ls-files", *MAPPED], cwd=root, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        folder, _, rest = name.partition("/")
        yield f"{MAPPED[folder]}/{rest}"


@needs_git
def test_every_package_of_the_tree_is_listed_and_no_other():
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    listed = set(settings["options"]["packages"].split())
    in_tree = {str(Path(name).parent).replace("/", ".") for name in product_files(ROOT) if name.endswith("__init__.py")}
    assert listed == in_tree | {"vieval_plugin.prompt_templates", "vieval_plugin.task_configs"}


@needs_git
@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_product(source, wheel):
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == set(product_files(source))


def test_citation_and_changelog_are_of_this_version():
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    latest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert cited[1] == latest[1] == vieval_plugin.__version__
