"""The commands of docs/guides/small_judges.md, with tiny models of the same classes and a server in place of real ones."""

import asyncio
import hashlib
import re
import shlex
from functools import partial
from pathlib import Path

import pytest
from scipy.stats import spearmanr

from bench.vieval_small import unseen
from tests import in_process, tiny_model, tiny_more_models
from tests.fake_server import FakeServer
from vieval_plugin.backends.metrics import networks
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.benchmarks.vieval_demo import TASKS
from vieval_plugin.cli import main
from vieval_plugin.config import Config
from vieval_plugin.run.evaluate import outcomes_of
from vieval_plugin.run.prepare import prepare
from vieval_plugin.run.progress import Progress

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "small_judges.md"
BUILDERS = {
    "HuggingFaceTB/SmolVLM-500M-Instruct": tiny_more_models.build_smolvlm,
    "Qwen/Qwen2.5-VL-3B-Instruct": tiny_model.build,
}


def commands(begin):
    """The page's commands that begin so, a list of words each."""
    blocks = re.findall(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line) for line in lines if line.startswith(begin)]


def replaced(words, **values):
    """A command with other values after its flags, such as `out="here"` for `--out`."""
    flags = {f"--{flag}": str(value) for flag, value in values.items()}
    return [flags.get(before, word) for before, word in zip(["", *words], words, strict=False)]


@pytest.mark.slow
@pytest.mark.parametrize("model", BUILDERS)
def test_transformers_in_lmms_eval(model, tmp_path, monkeypatch):
    """Random weights write no JSON, so VIEScore's replies are unread; VQAScore's probabilities are there."""
    pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")
    monkeypatch.chdir(tmp_path)
    [words] = [words for words in commands("lmms-eval --model vieval_transformers") if f"model={model}" in words]
    folder = BUILDERS[model](tmp_path / "tiny")
    limits = ["--gen_kwargs", "max_new_tokens=8"]
    in_process.run(*replaced(words, model_args=f"model={folder}", limit=2)[1:], *limits)
    [(task, rows)] = in_process.read(tmp_path / "out")[1].items()
    run = in_process.Run({}, {}, rows)
    assert run.statuses == ({"ok": 2} if "vqascore" in task else {"parse_failure": 2})
    scores = [verdict["scores"] for several in run.verdicts.values() for verdict in several]
    assert all(("SC" in of) is ("vqascore" in task) for of in scores)


@pytest.mark.parametrize(
    "words", commands("vieval score samples.jsonl"), ids=lambda words: words[words.index("--out") - 1]
)
def test_vieval_score_asks_what_the_command_names(words, samples_file, store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with FakeServer() as server:
        asked = replaced(words, **{"base-url": server.base_url}, model="fake") if "--model" in words else words
        assert main(asked[1:]) == 0
        assert bool(server.stats()["requests"]) is ("--model" in words)
    assert len((tmp_path / "verdicts.jsonl").read_text().splitlines()) == 6


def test_the_report_is_of_both_models():
    [report] = commands("vieval report")
    written = [words[words.index("--output_path") + 1] for words in commands("lmms-eval --model vieval_transformers")]
    assert report[2:4] == written


def test_the_weights_are_small_and_those_of_the_page():
    weights = (Path(networks.__file__).parent / "vieval_small.safetensors").read_bytes()
    assert len(weights) <= 5_500_000
    assert f"SHA-256 is `{hashlib.sha256(weights).hexdigest()}`" in PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "load"), [("unseen", unseen.load), ("`vieval_demo`", partial(vieval_demo.load, Path()))]
)
def test_figures_of_the_card_are_those_of_the_weights(name, load):
    """Those of one kind; `python -m bench.vieval_small.measure` prints all."""
    pytest.importorskip("skimage", reason="the drawn benchmarks need scikit-image")
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    [row] = [number for number, line in enumerate(lines) if line.startswith(f"| {name}:")]
    samples, options = load(TASKS[-1]), Config()
    judging = outcomes_of(samples, prepare("vieval_small", None, options), options, None, Progress(), bar=False)
    verdicts = [outcome.verdict for outcome in asyncio.run(judging)]
    for aspect, line in zip(("SC", "PQ"), lines[row : row + 2], strict=True):
        cells = [float(cell.strip(" *")) for cell in line.split("|")[3:-1]]
        known = [sample.ratings[aspect][0] for sample in samples]
        found = spearmanr([verdict.scores[aspect] for verdict in verdicts], known).statistic
        assert cells[len(TASKS) - 1] == pytest.approx(found, abs=0.006)
        assert cells[-1] == pytest.approx(sum(cells[:-1]) / len(TASKS), abs=0.006)
