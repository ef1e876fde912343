"""Networks that judge by name, through the commands, at tiny random weights."""

import importlib.util
import json

import pytest

from tests.demo_samples import demo_file
from tests.extras import needs
from tests.serve.clients import rows_of
from tests.serve.serving import serving
from tests.shard_runs import write_parquet
from tests.shipped_scorers import (
    NAMES,
    READ,
    VISION,
    aesthetic_head,
    described,
    image_reward_tensors,
    open_clip_tensors,
)
from tests.verdict_files import provenance_of
from vieval_plugin.judges import registry

pytestmark = needs("torch", "transformers", "torchvision", "duckdb")


@pytest.fixture
def tiny(scorer_weights, tmp_path, monkeypatch):
    """The shipped judges with weights that a test can hold."""
    import torch
    from transformers import BertTokenizerFast

    from tests import tiny_scorers

    clip = str(scorer_weights["clip_score"])
    folder = tmp_path / "tiny"
    folder.mkdir()
    torch.save(open_clip_tensors(clip), folder / "hps.pt")
    aesthetic_head(folder, 24)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *tiny_scorers.WORDS]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "words")
    torch.save(image_reward_tensors(len(words)), folder / "reward.pt")
    networks = {
        "pickscore": {"base": clip, "processor": clip},
        "hpsv2": {"base": clip, "open_clip": "hps.pt"},
        "aesthetic": {"base": clip, "head": "head.pth"},
        "image_reward": {
            "weights": "reward.pt",
            "tokenizer": "words",
            "vision": {**VISION, "layer_norm_eps": 1e-6},
            "text": {**READ, "vocab_size": len(words)},
        },
    }
    files = {name: described(name, folder, networks[name])[0] for name in NAMES}
    monkeypatch.setattr(registry, "shipped", lambda: files)
    registry.judges.cache_clear()
    yield files
    registry.judges.cache_clear()


@pytest.mark.parametrize("name", NAMES)
def test_each_scores_filters_and_ranks_by_its_name(name, tiny, vieval, tmp_path):
    samples, out = demo_file(tmp_path, "tig"), tmp_path / "out.jsonl"
    vieval("score", samples, "--judge", name, "--out", out)
    row = json.loads(out.read_text().splitlines()[0])
    assert row["status"] == "ok"
    assert "judge_files" not in str(provenance_of(out, row))
    aspect = "PQ" if name == "aesthetic" else "O"
    said = vieval("rank", out).out
    assert name in said or registry.judge(name).title in said
    data, shards, kept = (tmp_path / part for part in ("data", "shards", "kept"))
    write_parquet(data, files=1, rows_each=6)
    vieval("score", data, "--judge", name, "--out", shards)
    said = vieval("filter", shards, "--where", f"{aspect} > -1", "--out", kept).out
    assert "6 of 6 rows" in said


def test_a_served_reward_is_the_score_of_the_command(scorer_weights, vieval, tmp_path):
    samples, out = demo_file(tmp_path, "tig"), tmp_path / "out.jsonl"
    given = ["--scorer", scorer_weights["clip_score"]]
    vieval("score", samples, "--judge", "pickscore", *given, "--out", out)
    with serving("--reward", "r=pickscore", *map(str, given)) as running:
        status, answer = running.post(
            "/r/v1/judge", {"samples": list(rows_of(samples))}
        )
    assert status == 200
    assert [one["value"] for one in answer["verdicts"]] == [
        json.loads(line)["scores"]["O"] for line in out.read_text().splitlines()
    ]


def test_pickscore_takes_a_folder_of_weights(scorer_weights, vieval, tmp_path):
    registry.judges.cache_clear()
    samples, out = demo_file(tmp_path, "tig"), tmp_path / "out.jsonl"
    given = ["--judge", "pickscore", "--scorer", scorer_weights["clip_score"]]
    vieval("score", samples, *given, "--out", out)
    assert "pickscore on " in out.read_text()
    registry.judges.cache_clear()


def test_the_list_says_what_each_is_and_what_is_absent(vieval):
    said = vieval("tasks", "--judges").out
    for name in NAMES:
        about = registry.judge(name).file.manifest.about
        assert f"{name}: {about.meaning}" in said
        assert about.licence in said
    assert "none stated" in said
    unpinned = (
        "no revision or digest is pinned for aesthetic, hpsv2, image_reward, pickscore;"
    )
    assert unpinned in said


def test_the_list_knows_weights_that_the_options_name(
    vieval, scorer_weights, monkeypatch, tmp_path
):
    options = tmp_path / "options.yaml"
    folder = scorer_weights["clip_score"]
    options.write_text(f"scorers: {{pickscore: {{model: {folder}}}}}\n")
    monkeypatch.setenv("VIEVAL_CONFIG", str(options))
    rows = [line.split() for line in vieval("tasks", "--judges").out.splitlines()]
    states = {row[0]: row for row in rows if row and row[0] in NAMES}
    assert "present" in states["pickscore"]
    assert "missing" in states["hpsv2"]


def test_the_list_needs_no_library_of_the_hub(vieval, monkeypatch):
    find = importlib.util.find_spec
    hidden = lambda name, *rest: (
        None if name == "huggingface_hub" else find(name, *rest)
    )
    monkeypatch.setattr(importlib.util, "find_spec", hidden)
    assert "weights = missing" in vieval("tasks", "--judges").out
