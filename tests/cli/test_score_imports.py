"""Scoring a folder of images loads judges alone: no benchmark, and few of our modules."""

import sys
from shlex import split

import PIL.Image
import pytest

from tests import bounds
from tests.builders import a_verdict_file, some_scores
from tests.work import run_process

SCORE = """
import sys
from vieval_plugin.cli import main
code = main(["score", "images", "--prompts", "prompts.txt", "--judge", "sharpness", "--out", "verdicts.jsonl"])
print(code, *(name for name in sys.modules if name.partition(".")[0] == "vieval_plugin"))
"""


def test_scoring_a_folder_imports_no_benchmark_and_few_modules(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "images").mkdir()
    for number in range(3):
        path = tmp_path / "images" / f"{number}.png"
        PIL.Image.effect_noise((16, 16), 40 + number).convert("RGB").save(path)
    (tmp_path / "prompts.txt").write_text("grains\nsand\nsky\n")
    done = run_process([sys.executable, "-c", SCORE], cwd=tmp_path, check=True)
    code, *modules = done.stdout.splitlines()[-1].split()
    assert code == "0", done.stderr
    rooms = {name.split(".")[1] for name in modules if "." in name}
    unneeded = {"benchmarks", "meta_evaluation", "importers", "report", "hosts"}
    assert not rooms & unneeded
    assert len(modules) < bounds.MODULES_OF_A_SCORE


REPORT = """
import sys
entered = set()
def note(frame, event, argument):
    if event == "call" and frame.f_code.co_name != "<module>":
        entered.add(frame.f_globals.get("__name__", ""))
sys.setprofile(note)
from vieval_plugin.cli import main
code = main(["report", "verdicts.jsonl", "--out", "report"])
sys.setprofile(None)
ours = [name for name in entered if name.partition(".")[0] == "vieval_plugin"]
print(code, len(ours), *sys.modules)
"""


def test_a_report_enters_few_modules_and_does_not_import_pyarrow(tmp_path):
    scores = {"aurora": some_scores(40, 0.4), "borealis": some_scores(40, 0.5, seed=1)}
    a_verdict_file(tmp_path / "verdicts.jsonl", scores)
    done = run_process([sys.executable, "-c", REPORT], cwd=tmp_path, check=True)
    code, entered, *modules = done.stdout.splitlines()[-1].split()
    assert code == "0", done.stderr
    assert int(entered) < bounds.MODULES_OF_A_REPORT
    assert "pyarrow" not in modules
    http = "vieval_plugin.backends.http."
    assert not [name for name in modules if name.startswith(http)]


COMMAND = "from vieval_plugin.cli import main; main(['{}'])"
NUMBERS = {"numpy", "scipy", "pydantic", "jinja2", "yaml", "PIL"}
OURS = {f"vieval_plugin.{room}" for room in split("benchmarks judges config readers")}
OF_A_JUDGE = split(
    "scipy markdown_it json_repair vieval_plugin.benchmarks vieval_plugin.run.session "
    "vieval_plugin.readers.samples vieval_plugin.backends.http.openai"
)


@pytest.mark.parametrize(
    ("start", "unneeded"),
    [
        (COMMAND.format("--version"), NUMBERS | OURS),
        (COMMAND.format("--help"), NUMBERS | OURS),
        ("from vieval_plugin import Judge", set(OF_A_JUDGE)),
    ],
    ids=["version", "help", "Judge"],
)
def test_a_start_imports_only_what_it_needs(start, unneeded):
    code = f"import sys\ntry:\n    {start}\nfinally:\n    print(*sys.modules, file=sys.stderr)"
    done = run_process([sys.executable, "-c", code], timeout=600)
    imported = done.stderr.splitlines()[-1].split()
    assert "vieval_plugin" in imported
    assert not unneeded & set(imported)
