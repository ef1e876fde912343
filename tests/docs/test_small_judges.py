"""The commands of docs/guides/judges.md for small judges, with tiny models and a fake server."""

import re
import shlex
from pathlib import Path

import pytest

from tests import in_process, tiny_model, tiny_more_models
from tests.fake_server import FakeServer
from vieval_plugin.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "judges.md"
BUILDERS = {
    "HuggingFaceTB/SmolVLM-500M-Instruct": tiny_more_models.build_smolvlm,
    "Qwen/Qwen2.5-VL-3B-Instruct": tiny_model.build,
}


def commands(begin):
    """The section's commands that begin so, a list of words each."""
    _, section = PAGE.read_text(encoding="utf-8").split("## Small judges\n")
    blocks = re.findall(r"```bash\n(.*?)```", section, re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.startswith(begin)]


def replaced(words, **values):
    """A command with other values after its flags, such as `out="here"` for `--out`."""
    flags = {f"--{flag}": str(value) for flag, value in values.items()}
    pairs = zip(["", *words], words, strict=False)
    return [flags.get(before, word) for before, word in pairs]


@pytest.mark.slow
@pytest.mark.parametrize("model", BUILDERS)
def test_transformers_in_lmms_eval(model, tmp_path, monkeypatch):
    """Random weights write no JSON, so VIEScore's replies are unread; VQAScore has probabilities."""
    pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")
    monkeypatch.chdir(tmp_path)
    asked = commands("lmms-eval --model vieval_transformers")
    [words] = [words for words in asked if f"model={model}" in words]
    folder = BUILDERS[model](tmp_path / "tiny")
    limits = ["--gen_kwargs", "max_new_tokens=8"]
    in_process.run(*replaced(words, model_args=f"model={folder}", limit=2)[1:], *limits)
    [(task, rows)] = in_process.read(tmp_path / "out")[1].items()
    run = in_process.Run({}, {}, rows)
    assert run.statuses == ({"ok": 2} if "vqascore" in task else {"parse_failure": 2})
    scores = [one["scores"] for several in run.verdicts.values() for one in several]
    assert all(("SC" in of) is ("vqascore" in task) for of in scores)


@pytest.mark.parametrize(
    "words",
    commands("vieval score samples.jsonl"),
    ids=lambda words: words[words.index("--out") - 1],
)
def test_vieval_score_asks_what_the_command_names(
    words, samples_file, store, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with FakeServer() as server:
        address = {"base-url": server.base_url}
        asked = replaced(words, **address, model="fake")
        assert main(asked[1:]) == 0
        assert bool(server.stats()["requests"]) is ("--model" in words)
    assert len((tmp_path / "verdicts.jsonl").read_text().splitlines()) == 6


def test_the_report_is_of_both_models():
    [report] = commands("vieval report")
    runs = commands("lmms-eval --model vieval_transformers")
    written = [words[words.index("--output_path") + 1] for words in runs]
    assert report[2:4] == written
