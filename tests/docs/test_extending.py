"""The code on the pages of docs/extending runs as it stands there.

A fenced block with a file name after its language is written to that file, in a folder that is searched for modules; the
entry points of a `pyproject.toml` hold as if it were installed. Blocks with `>>>` are run in order, in one process a page.
"""

import importlib.util
import json
import re
import subprocess
import sys
import venv
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


PACKAGES = [page for page in PAGES if any(file == "pyproject.toml" for _, file, _ in blocks(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PACKAGES, ids=lambda page: page.stem)
def test_the_package_of_a_page_works_once_it_is_installed(page, tmp_path):
    """Built and installed as the page shows it, in an environment of its own that sees this one's libraries."""
    source, here, environment = tmp_path / "source", tmp_path / "here", tmp_path / "environment"
    for folder in (source, here):
        folder.mkdir()
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip())
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (site / "libraries.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in libraries))
    files = {file: text for _, file, text in blocks(page) if file}
    for file, text in files.items():
        (source / file).parent.mkdir(parents=True, exist_ok=True)
        (source / file).write_text(text, encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    offline = ["--no-build-isolation"] if importlib.util.find_spec("setuptools") else []
    subprocess.run([*pip, *offline, source], check=True, cwd=here)
    for file, text in files.items():
        if not (site / file).exists() and file != "pyproject.toml":
            assert not file.endswith((".py", ".jinja")), f"{file} was not installed"
            (here / file).parent.mkdir(parents=True, exist_ok=True)
            (here / file).write_text(text, encoding="utf-8")
    examples = "\n".join(text for language, file, text in blocks(page) if language == "python" and not file)
    ran = subprocess.run(
        [python, "-c", RUN],
        input=json.dumps([page.name, examples]),
        cwd=here,
        env={"PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name}: {target}"
