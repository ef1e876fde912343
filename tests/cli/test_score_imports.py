"""Scoring a folder of images loads judges alone: no benchmark, and few of our modules."""

import subprocess
import sys

import PIL.Image

from tests import bounds

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
        PIL.Image.effect_noise((16, 16), 40 + number).convert("RGB").save(
            tmp_path / "images" / f"{number}.png"
        )
    (tmp_path / "prompts.txt").write_text("grains\nsand\nsky\n")
    done = subprocess.run(
        [sys.executable, "-c", SCORE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    code, *modules = done.stdout.splitlines()[-1].split()
    assert code == "0", done.stderr
    rooms = {name.split(".")[1] for name in modules if "." in name}
    assert not rooms & {
        "benchmarks",
        "meta_evaluation",
        "tasks",
        "importers",
        "report",
        "hosts",
    }
    assert len(modules) < bounds.MODULES_OF_A_SCORE


def test_the_version_needs_no_numbers():
    code = (
        "import sys\nfrom vieval_plugin.cli import main\n"
        "try:\n    main(['--version'])\nfinally:\n    print({'numpy', 'scipy', 'pydantic'} & "
        "set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600
    )
    assert done.stdout.splitlines()[-1] == "set()"
