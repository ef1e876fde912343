"""The wheel of this tree, built once from a copy, as a build leaves files."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    """A copy of what is tracked, or of all there is in an unpacked sdist."""
    folder = tmp_path_factory.mktemp("source") / "vieval"
    if (ROOT / ".git").exists():
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    else:
        unneeded = shutil.ignore_patterns(".*", "build", "out", "__pycache__")
        shutil.copytree(ROOT, folder, ignore=unneeded)
    return folder


@pytest.fixture(scope="session")
def wheel(source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    offline = ["--no-build-isolation"] if importlib.util.find_spec("setuptools") else []
    command = [
        sys.executable,
        *["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"],
    ]
    subprocess.run([*command, folder, *offline, source], check=True, timeout=300)
    [built] = folder.glob("*.whl")
    return built
