"""Completion of commands and flags, as shells do it from the script that the command prints."""

import json
import shutil
import sys

import pytest

from tests.extras import needs
from tests.work import run_process

pytestmark = needs("shtab")
BASH = """
source {script}
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_shtab_vieval
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT=; fpath=({folder} \$fpath); autoload -U compinit; compinit -u -D; echo RE''ADY"
zpty -r shell answer '*READY*'
zpty -w -n shell "{line}"$'\t'
sleep 1
zpty -w -n shell $'\x15exit\n'
while zpty -r shell answer; do print -r -- $answer; done
"""


@pytest.fixture
def script(tmp_path, vieval):
    """Writes the script of a shell; returns its path."""

    def written(shell):
        path = tmp_path / "_vieval"
        path.write_text(vieval("completion", shell).out)
        return path

    return written


def completed(shell, code):
    """What a shell prints that is started without files of its own."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    quiet = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    done = run_process([shell, *quiet, "-c", code], timeout=60, check=True)
    return done.stdout


@pytest.mark.parametrize(
    ("words", "proposed"),
    [
        ("vieval fil", ["filter"]),
        ("vieval anchor ''", ["make", "check"]),
        ("vieval filter verdicts --wh", ["--where"]),
        ("vieval export --trainer k", ["kohya"]),
        ("vieval show verd", ["verdicts.jsonl"]),
        ("vieval score --out verd", ["verdicts.jsonl"]),
    ],
)
def test_bash(words, proposed, script, tmp_path, monkeypatch):
    path = script("bash")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "verdicts.jsonl").touch()
    assert completed("bash", BASH.format(script=path, words=words)).split() == proposed


@pytest.mark.parametrize(
    ("line", "proposed"), [("vieval filt", "filter"), ("vieval filter --wh", "--where")]
)
def test_zsh(line, proposed, script, tmp_path):
    path = script("zsh")
    assert proposed in completed("zsh", ZSH.format(folder=path.parent, line=line))


def test_fish(script):
    path = script("fish")
    code = f"source {path}; complete -C 'vieval filt'; complete -C 'vieval filter --wh'"
    proposed = [line.split("\t")[0] for line in completed("fish", code).splitlines()]
    assert proposed == ["filter", "--where"]


def test_the_overview_imports_no_command():
    code = (
        "import json, sys\nfrom vieval_plugin.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n"
        "    print(json.dumps(sorted(sys.modules)))"
    )
    done = run_process([sys.executable, "-c", code], check=True)
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert not [name for name in loaded if name.startswith("vieval_plugin.cli.")]
    assert "pydantic" not in loaded
