"""Networks that judge by name, through the commands, at tiny random weights."""

import importlib.util
import re

import pytest
import yaml

from tests.demo_samples import demo_file
from tests.extras import needs
from tests.serve.clients import rows_of
from tests.serve.serving import serving
from tests.shard_runs import write_parquet
from tests.shipped_scorers import (
    HEADS,
    NAMES,
    READ,
    VISION,
    aesthetic_head,
    described,
    image_reward_tensors,
    open_clip_tensors,
    reward_model,
)
from tests.stored_results import read_lines
from tests.verdict_files import provenance_of
from vieval_plugin.backends import weights
from vieval_plugin.importers import importing
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
    vision = {**VISION, "layer_norm_eps": 1e-6}
    image_reward = {"weights": "reward.pt", "tokenizer": "words", "vision": vision}
    image_reward["text"] = {**READ, "vocab_size": len(words)}
    networks = {
        "pickscore": {"base": clip, "processor": clip},
        "hpsv2": {"base": clip, "open_clip": "hps.pt"},
        "aesthetic": {"base": clip, "head": "head.pth"},
        "image_reward": image_reward,
    }
    for name in HEADS:
        (folder / name).mkdir()
        networks[name], _ = reward_model(name, folder / name)
        networks[name]["weights"] = f"{name}/reward.safetensors"
    files = {name: described(name, folder, networks[name])[0] for name in NAMES}
    monkeypatch.setattr(registry, "shipped", lambda: files)
    registry.judges.cache_clear()
    yield files
    registry.judges.cache_clear()


def kind_of(name):
    return "tie" if name == "edit_reward" else "tig"


@pytest.mark.parametrize("name", NAMES)
def test_each_scores_filters_and_ranks_by_its_name(name, tiny, vieval, tmp_path):
    samples = demo_file(tmp_path, kind_of(name))
    out = tmp_path / "out.jsonl"
    vieval("score", samples, "--judge", name, "--out", out)
    row = read_lines(out)[0]
    assert row["status"] == "ok"
    assert "judge_files" not in str(provenance_of(out, row))
    if kind_of(name) == "tie":
        return  # the shards have no sources
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
    assert "pickscore on " in out.read_text()
    with serving("--reward", "r=pickscore", *given) as running:
        asked = {"samples": list(rows_of(samples))}
        status, answer = running.post("/r/v1/judge", asked)
    assert status == 200
    found = [one["value"] for one in answer["verdicts"]]
    assert found == [row["scores"]["O"] for row in read_lines(out)]


def test_the_list_says_what_each_is_and_what_is_absent(vieval):
    said = vieval("tasks", "--judges").out
    for name in NAMES:
        pack = registry.judge(name).file
        assert f"{name}: measures {pack.manifest.about.meaning}" in said
        assert pack.manifest.about.licence in said
        assert f"{name}: its weights are {pack.weights}" in said
    assert "none stated" in said
    assert "linearMSE.pth, to download to " in said
    assert "run `vieval prompts import hpsv3 CHECKOUT --to FOLDER`" in said


def test_the_list_knows_files_and_named_weights_without_the_hubs_library(
    vieval, scorer_weights, monkeypatch, tmp_path
):
    find = importlib.util.find_spec
    hub = "huggingface_hub"
    hidden = lambda name, *rest: None if name == hub else find(name, *rest)
    monkeypatch.setattr(importlib.util, "find_spec", hidden)
    assert "weights = missing" in vieval("tasks", "--judges").out
    monkeypatch.setattr(weights, "cache_folder", lambda: tmp_path)
    (tmp_path / "sac+logos+ava1-l14-linearMSE.pth").touch()
    options = tmp_path / "options.yaml"
    folder = scorer_weights["clip_score"]
    options.write_text(f"scorers: {{pickscore: {{model: {folder}}}}}\n")
    monkeypatch.setenv("VIEVAL_CONFIG", str(options))
    rows = [line.split() for line in vieval("tasks", "--judges").out.splitlines()]
    states = {row[0]: row for row in rows if row and row[0] in NAMES}
    for name, state in (("pickscore", "present"), ("aesthetic", "present")):
        assert state in states[name]
    assert "missing" in states["hpsv2"]


# the wording that HPSv3 and EditReward were trained with

TEXTS = {
    "hpsv3": {"INSTRUCTION": "\nRate it for: {text_prompt}\n"},
    "edit_reward": {
        "INSTRUCTION_EDIT_FOLLOWING": "\nWas it done? {text_prompt}\n",
        "INSTRUCTION_EDIT_QUALITY": "\nIs it sound? {text_prompt}\n",
    },
}


def checkout(name, folder):
    """A repository with texts of ours under the names of the authors'."""
    wording = registry.judge(name).file.manifest.wording
    prompt = {"prompt_with_special_token": "\nRating: <|Reward|>\n\nEND\n"}
    texts = {**TEXTS[name], **prompt}
    for file in wording.files:
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{key} = {text!r}\n" for key, text in texts.items()]
        path.write_text("".join(lines) if file == wording.files[-1] else "import os\n")
    return folder


@pytest.mark.parametrize("name", TEXTS)
def test_a_judge_without_its_wording_says_how_to_import_it(name, vieval, tmp_path):
    samples = demo_file(tmp_path, kind_of(name))
    out = tmp_path / "out.jsonl"
    said = vieval("score", samples, "--judge", name, "--out", out, code=1)
    [line] = said.err.strip().splitlines()
    assert f"run `vieval prompts import {name} CHECKOUT --to FOLDER`" in line
    assert registry.judge(name).file.manifest.wording.repository in line
    assert not out.exists()


@pytest.mark.parametrize("name", TEXTS)
def test_other_texts_than_the_pinned_ones_are_refused(name, vieval, tmp_path):
    source = checkout(name, tmp_path / "repository")
    to = tmp_path / "packs"
    said = vieval("prompts", "import", name, source, "--to", to, code=1)
    assert "SHA-256 mismatch in its text: expected " in said.err
    assert not (to / name).exists()


@pytest.mark.parametrize("name", TEXTS)
def test_a_network_reads_an_imported_wording(name, vieval, tmp_path, monkeypatch):
    folder = tmp_path / "tiny"
    folder.mkdir()
    network, _ = reward_model(name, folder)
    document = yaml.safe_load(registry.shipped()[name].read_text())
    document["network"] |= {**network, "digest": ""}
    document["network"]["weights"] = str(folder / "reward.safetensors")
    source, to = checkout(name, tmp_path / "repository"), tmp_path / "packs"
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(document))
    monkeypatch.setattr(importing, "shipped", lambda: {name: file})
    refused = vieval("prompts", "import", name, source, "--to", to, code=1).err
    document["wording"]["digest"] = re.search("got ([0-9a-f]{64})", refused)[1]
    file.write_text(yaml.safe_dump(document))
    said = vieval("prompts", "import", name, source, "--to", to).out
    assert f"set VIEVAL_JUDGES={to}" in said
    monkeypatch.setenv("VIEVAL_JUDGES", str(to))
    registry.judges.cache_clear()
    samples = demo_file(tmp_path, kind_of(name))
    out = tmp_path / "out.jsonl"
    vieval("score", samples, "--judge", name, "--out", out)
    assert read_lines(out)[0]["status"] == "ok"
    template = to / name / "O.jinja"
    template.write_text(template.read_text().replace("Rating", "Rate"))
    registry.judges.cache_clear()
    again = vieval("score", samples, "--judge", name, "--out", out, code=1)
    assert "its training prompt is not included" in again.err
    registry.judges.cache_clear()
