"""The code on the pages of docs/extending runs as it stands there.

A fenced block with a file name after its language is written to that file, in a folder that is searched for modules; the
entry points of a `pyproject.toml` hold as if it were installed. Blocks with `>>>` are run in order, in one process a page.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs" / "extending").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# run in a process of its own: what a package brings is looked for once, when VIEval is imported
RUN = """
import doctest, json, pathlib, sys
import vieval_plugin.judges.tools as tools
if pathlib.Path("judges/tools").is_dir():
    tools.__path__.append(str(pathlib.Path("judges/tools").absolute()))
name, examples = json.load(sys.stdin)
test = doctest.DocTestParser().get_doctest(examples, {}, name, name, 0)
sys.exit(doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(test).failed)
"""


def blocks(page):
    return [(m[1], m[2] or "", m[3]) for m in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def entry_points(toml):
    """The entry point groups of a pyproject.toml in the form of an installed package's file."""
    groups = re.findall(r'^\[project\.entry-points\."(.+)"\]\n((?:.+\n?)*)', toml, re.MULTILINE)
    return "\n".join(f"[{group}]\n{rows.replace(chr(34), '')}" for group, rows in groups)


def write(folder, file, text):
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if path.name == "pyproject.toml":
        write(folder, "page-0.dist-info/METADATA", "Metadata-Version: 2.1\nName: page\nVersion: 0\n")
        write(folder, "page-0.dist-info/entry_points.txt", entry_points(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, tmp_path):
    examples = []
    for language, file, text in blocks(page):
        if file:
            write(tmp_path, file, text)
        elif language == "python":
            assert text.startswith(">>>"), f"{page.name}: a block that is neither a file nor examples: {text[:60]!r}"
            examples.append(text)
    if page.stem == "README":
        assert not examples
        return
    assert examples
    if page.stem == "host":
        pytest.importorskip("skimage", reason="the drawn benchmark needs scikit-image")
    given = json.dumps([page.name, "\n".join(examples)])
    environment = {"PYTHONPATH": str(tmp_path), "PATH": "", "HOME": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", RUN],
        input=given,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name}: {target}"
