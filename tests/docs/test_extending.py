"""The code in docs/guides/extending.md runs as it stands there.

A fenced block with a file name after its language is written to that file, in a folder that is
searched for modules; the entry points of a `pyproject.toml` hold as if it were installed. Blocks
with `>>>` are run in order, in one process.
"""

import importlib.util
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.docs.pages import DOCS
from tests.work import run_process

PAGE = (DOCS / "guides" / "extending.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(m[1], m[2] or "", m[3]) for m in BLOCK.finditer(PAGE)]
FILES = {file: text for _, file, text in BLOCKS if file}
EXAMPLES = [
    text for language, file, text in BLOCKS if (language, file) == ("python", "")
]

# run in a process of its own: what a package brings is looked for once, when VIEval is imported
RUN = """
import doctest, pathlib, sys
import vieval_plugin.judges.tools as tools
if pathlib.Path("judges/tools").is_dir():
    tools.__path__.append(str(pathlib.Path("judges/tools").absolute()))
test = doctest.DocTestParser().get_doctest(sys.stdin.read(), {}, "page", "page", 0)
sys.exit(doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(test).failed)
"""


def entry_points(toml):
    """The entry point groups of a pyproject.toml in the form of an installed package's file."""
    group = r'^\[project\.entry-points\."(.+)"\]\n((?:.+\n?)*)'
    groups = re.findall(group, toml, re.MULTILINE)
    return "\n".join(f"[{name}]\n{rows}" for name, rows in groups).replace('"', "")


def write(folder, file, text):
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def run_examples(python, folder, **environment):
    own = {"PATH": "", "HOME": str(folder), **environment}
    about = {"input": "\n".join(EXAMPLES), "cwd": folder, "timeout": 600}
    ran = run_process([python, "-c", RUN], env=own, **about)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_each_block_of_python_is_a_file_or_examples():
    assert len(EXAMPLES) >= 7
    assert [text for text in EXAMPLES if not text.startswith(">>>")] == []


def test_the_code_of_the_page_runs(tmp_path):
    for file, text in FILES.items():
        write(tmp_path, file, text)
    about, points = "page-0.dist-info", entry_points(FILES["pyproject.toml"])
    metadata = "Metadata-Version: 2.1\nName: page\nVersion: 0\n"
    write(tmp_path, f"{about}/METADATA", metadata)
    write(tmp_path, f"{about}/entry_points.txt", points)
    run_examples(sys.executable, tmp_path, PYTHONPATH=str(tmp_path))


@pytest.mark.slow
def test_the_package_of_the_page_works_once_it_is_installed(tmp_path):
    """The package is built and installed in an environment that sees this one's libraries."""
    source, here = tmp_path / "source", tmp_path / "here"
    environment = tmp_path / "environment"
    here.mkdir()
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run_process([python, "-c", ask], check=True).stdout.strip())
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    added = [f"import site; site.addsitedir({path!r})\n" for path in libraries]
    (site / "libraries.pth").write_text("".join(added))
    for file, text in FILES.items():
        write(source, file, text)
    flags = ["--python", python, "install", "--quiet", "--no-deps"]
    offline = ["--no-build-isolation"] if importlib.util.find_spec("setuptools") else []
    pip = [sys.executable, "-m", "pip", *flags, *offline, source]
    subprocess.run(pip, check=True, cwd=here)
    packaged = " ".join(
        map(str, [*site.glob("*.py"), *(site / "lettering").rglob("*")])
    )
    modules = (
        "street_signs.py",
        "street_signs_tasks.py",
        "concordance.py",
        "passed.py",
    )
    for name in ("lettering/judge.py", "PQ.jinja", *modules):
        assert name in packaged
    for file, text in FILES.items():
        if not (site / file).exists():
            write(here, file, text)
    run_examples(python, here)
