"""The wheel holds the tree: every package is listed, and every file of the product is in it."""

import configparser
import re
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import vieval_plugin
from tests.work import run_process
from vieval_plugin.text.errors import PROJECT

ROOT = Path(__file__).parents[2]
INNER = ("judges", "prompt_templates", "task_configs")
MAPPED = {name: f"vieval_plugin/{name}" for name in INNER}
MAPPED["vieval_plugin"] = "vieval_plugin"
needs_git = pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="what is tracked is known in a checkout alone"
)


def tracked(root, *folders):
    """Names of tracked files, less links, such as those of the folders at the root for editors."""
    listed = run_process(["git", "ls-files", *folders], cwd=root).stdout
    return [name for name in listed.splitlines() if not (root / name).is_symlink()]


def product_files(root):
    """Tracked files of the product, by their place in the wheel."""
    for name in tracked(root, *MAPPED):
        folder, _, rest = name.partition("/")
        yield f"{MAPPED[folder]}/{rest}"


@needs_git
def test_every_package_of_the_tree_is_listed_and_no_other():
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    listed = set(settings["options"]["packages"].split())
    files = [name for name in product_files(ROOT) if name.endswith("__init__.py")]
    in_tree = {str(Path(name).parent).replace("/", ".") for name in files}
    of_data = {f"vieval_plugin.{name}" for name in INNER[1:]}
    assert listed == in_tree | of_data


@needs_git
@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_product(source, wheel):
    names = zipfile.ZipFile(wheel).namelist()
    packed = {name for name in names if ".dist-info/" not in name}
    wanted = set(product_files(source))
    assert packed == wanted, "list it in setup.cfg under packages or package_data"


def test_citation_and_changelog_are_of_this_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    changes = (ROOT / "CHANGELOG.md").read_text()
    latest = re.search(r"^## (\S+) - (\S+)$", changes, re.MULTILINE)
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
    """Whoever changes `PROJECT` learns here which pages have it too."""
    pages = [path for path in ROOT.glob("*") if path.is_file()]
    pages += (ROOT / ".github").rglob("*.yml")
    text = "\n".join(path.read_text("utf-8") for path in pages)
    addresses = re.findall(r"https://github\.com/[\w-]+/vieval\b", text)
    assert set(addresses) == {PROJECT}


@needs_git
@pytest.mark.slow
def test_the_sdist_has_all_that_is_tracked_but_what_github_reads(source, tmp_path):
    sdist = f"b.build_sdist({str(tmp_path)!r})"
    build = f"import setuptools.build_meta as b; print({sdist})"
    run_process([sys.executable, "-c", build], cwd=source, check=True)
    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as sdist:
        packed = {name.partition("/")[2] for name in sdist.getnames()}
    of_github = (".github/", ".git", ".dockerignore", ".pre-")
    lacking = set(tracked(source)) - packed
    assert [name for name in lacking if not name.startswith(of_github)] == []


@pytest.mark.slow
def test_the_index_shows_the_licence_and_readme_with_links_to_the_tag(wheel):
    packed = zipfile.ZipFile(wheel)
    [name] = [n for n in packed.namelist() if n.endswith(".dist-info/METADATA")]
    metadata = packed.read(name).decode()
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    tag = f"{PROJECT}/blob/v{vieval_plugin.__version__}"
    assert f"{tag}/docs/tutorials/score.md" in metadata
    assert not re.search(rf"{PROJECT}/\w+/main/", metadata)
