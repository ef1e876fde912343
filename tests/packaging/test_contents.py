"""The wheel holds the tree: every package is listed, and every file of the product is in it."""

import configparser
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import vieval_plugin
from vieval_plugin.text.errors import PROJECT

ROOT = Path(__file__).parents[2]
MAPPED = {
    "vieval_plugin": "vieval_plugin",
    **{
        name: f"vieval_plugin/{name}"
        for name in ("judges", "prompt_templates", "task_configs")
    },
}
needs_git = pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="what is tracked is known in a checkout alone"
)


def product_files(root):
    """Tracked files of the product, by their place in the wheel."""
    listed = subprocess.run(
        ["git", "ls-files", *MAPPED],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in listed.splitlines():
        folder, _, rest = name.partition("/")
        if (root / name).is_symlink():  # of the folders at the root, for editors
            continue
        yield f"{MAPPED[folder]}/{rest}"


@needs_git
def test_every_package_of_the_tree_is_listed_and_no_other():
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    listed = set(settings["options"]["packages"].split())
    in_tree = {
        str(Path(name).parent).replace("/", ".")
        for name in product_files(ROOT)
        if name.endswith("__init__.py")
    }
    assert listed == in_tree | {
        "vieval_plugin.prompt_templates",
        "vieval_plugin.task_configs",
    }


@needs_git
@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_product(source, wheel):
    packed = {
        name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name
    }
    wanted = set(product_files(source))
    assert packed == wanted, "list it in setup.cfg under packages or package_data"


def test_citation_and_changelog_are_of_this_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    latest = re.search(
        r"^## (\S+) - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert cited["version"] == latest[1] == vieval_plugin.__version__
    assert str(cited["date-released"]) == latest[2]
    assert cited["url"] == PROJECT


def test_every_fragment_of_the_changelog_is_of_a_part():
    """towncrier passes over a fragment whose part it does not have."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]
    parts = "|".join(part["directory"] for part in settings["type"])
    names = {path.name for path in (ROOT / settings["directory"]).iterdir()}
    assert "README.md" in names
    fragment = rf"\+[a-z0-9-]+\.({parts})\.md|README\.md"
    assert [name for name in names if not re.fullmatch(fragment, name)] == []
    assert settings["start_string"] in (ROOT / "CHANGELOG.md").read_text()


def test_every_link_to_the_project_has_its_one_address():
    """A person who confirms or changes the address edits `PROJECT`, and this names the pages
    that have it too.
    """
    pages = [path for path in ROOT.glob("*") if path.is_file()] + sorted(
        (ROOT / ".github").rglob("*.yml")
    )
    addresses = {
        match
        for path in pages
        for match in re.findall(
            r"https://github\.com/[\w-]+/vieval\b", path.read_text("utf-8")
        )
    }
    assert addresses == {PROJECT}


@needs_git
@pytest.mark.slow
def test_the_sdist_has_all_that_is_tracked_but_what_github_reads(source, tmp_path):
    built = (
        f"import setuptools.build_meta as b; print(b.build_sdist({str(tmp_path)!r}))"
    )
    subprocess.run(
        [sys.executable, "-c", built], cwd=source, capture_output=True, check=True
    )
    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as sdist:
        packed = {name.partition("/")[2] for name in sdist.getnames()}
    listed = subprocess.run(
        ["git", "ls-files"], cwd=source, capture_output=True, text=True, check=True
    ).stdout
    files = {name for name in listed.splitlines() if not (source / name).is_symlink()}
    lacking = files - packed
    assert {
        name
        for name in lacking
        if not name.startswith((".github/", ".git", ".dockerignore", ".pre-"))
    } == set()


@pytest.mark.slow
def test_the_index_shows_the_licence_and_readme_with_links_to_the_tag(wheel):
    [name] = [
        name
        for name in zipfile.ZipFile(wheel).namelist()
        if name.endswith(".dist-info/METADATA")
    ]
    metadata = zipfile.ZipFile(wheel).read(name).decode()
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    assert (
        f"{PROJECT}/blob/v{vieval_plugin.__version__}/docs/tutorials/score.md"
        in metadata
    )
    assert not re.search(rf"{PROJECT}/\w+/main/", metadata)
