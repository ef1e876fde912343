"""The wheel holds the tree: every package is listed, and every file of the product is in it."""

import configparser
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAPPED = {
    "vieval_plugin": "vieval_plugin",
    **{name: f"vieval_plugin/{name}" for name in ("judges", "prompt_templates", "task_configs")},
}


def product_files(root):
    """Tracked files of the product, by their place in the wheel."""
    listed = subprocess.run(["git", "ls-files", *MAPPED], cwd=root, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        folder, _, rest = name.partition("/")
        yield f"{MAPPED[folder]}/{rest}"


def test_every_package_of_the_tree_is_listed_and_no_other():
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    listed = set(settings["options"]["packages"].split())
    in_tree = {str(Path(name).parent).replace("/", ".") for name in product_files(ROOT) if name.endswith("__init__.py")}
    assert listed == in_tree | {"vieval_plugin.prompt_templates", "vieval_plugin.task_configs"}


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_product(tmp_path):
    source = tmp_path / "source"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(source)], check=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(command, check=True, timeout=300)
    [wheel] = tmp_path.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == set(product_files(source))
