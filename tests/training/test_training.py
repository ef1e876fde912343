"""From a run to what was asked in it: training examples that trainers read, and traces that
people read.
"""

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from shlex import split

import numpy as np
import PIL.Image
import pytest

from tests import t2i_eval_run
from tests.stored_results import read_lines
from tests.t2i_eval_run import SCENES, implied
from vieval_plugin.cli import main
from vieval_plugin.judges.conversation import TrainingUnit
from vieval_plugin.run.verdict_lines import run_file
from vieval_plugin.training.export import BINS, bin_of, rebalanced, score_counts

run = t2i_eval_run.run  # a fixture


def export(run, out, *options):
    assert main([*split(command(run, out)), *options]) == 0
    return read_lines(out)


def images_in(messages, key="type"):
    """Parts of messages that are images."""
    parts = [part for message in messages for part in message["content"]]
    return [part[key] for part in parts if part["type"] == "image"]


def test_every_call_becomes_an_example(run, tmp_path, capsys):
    rows = export(run, tmp_path / "train.jsonl")
    assert len(rows) == sum(map(implied, SCENES))
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        *before, last = row["messages"]
        assert last["role"] == "assistant"
        assert row["trained"] == [len(before)]
        assert len(images_in(before)) == len(row["images"])
        assert all(Path(file).is_file() for file in row["images"])
    counted = Counter(row["sub_task"] for row in rows)
    assert counted["extraction"] == 3
    attributes = sum(scene.counts[1] for scene in SCENES)
    assert counted["intrinsic answer"] == counted["intrinsic score"] == attributes
    assert counted["relationship summary score"] == 2
    printed = capsys.readouterr().out
    assert "not rebalanced" in printed
    [total] = [line for line in printed.splitlines() if line.startswith("all")]
    assert total.split() == ["all", str(len(rows)), str(len(rows))]


def test_datasets_and_trl_read_every_example(run, tmp_path):
    datasets = pytest.importorskip("datasets")
    data_utils = pytest.importorskip("trl.data_utils")
    rows = export(run, tmp_path / "train.jsonl")
    files = {"data_files": str(tmp_path / "train.jsonl"), "cache_dir": str(tmp_path)}
    loaded = datasets.load_dataset("json", **files)["train"]
    assert len(loaded) == len(rows)
    columns = {"id", "sub_task", "messages", "images", "trained"}
    assert set(loaded.column_names) == columns
    for row in rows:
        assert data_utils.is_conversational(row)
        pictures = [PIL.Image.open(file) for file in row["images"]]
        prepare = data_utils.prepare_multimodal_messages
        prepared = prepare(row["messages"], images=pictures)
        assert images_in(prepared, "image") == pictures


def test_scores_are_brought_to_the_third_quartile_of_their_counts():
    held = {9: 40, 8: 20, 7: 12, 3: 5, 0: 1}
    units = [
        TrainingUnit("appearance", "appearance", score + 0.5, ())
        for score, count in held.items()
        for _ in range(count)
    ]
    target = int(np.percentile([held.get(score, 0) for score in range(BINS)], 75))
    assert target == 8
    after = rebalanced(units, 0, {})
    assert score_counts(after)["appearance"] == (8, 0, 0, 8, 0, 0, 0, 8, 8, 8, 0)
    assert {bin_of(unit.score or 0) for unit in after} == set(held)
    assert rebalanced(units, 0, {}) == after


def test_sub_tasks_are_repeated_as_published(run, tmp_path, capsys):
    first = export(run, tmp_path / "a.jsonl", "--rebalance", "--seed", "3")
    assert export(run, tmp_path / "b.jsonl", "--rebalance", "--seed", "3") == first
    assert export(run, tmp_path / "c.jsonl", "--rebalance", "--seed", "4") != first
    counted = Counter(row["sub_task"] for row in first)
    assert counted["extraction"] == 8 * len(SCENES)
    assert "seed 4" in capsys.readouterr().out


def command(run, out):
    return f"export t2i_eval {run}/verdicts.jsonl --out {out}"


def altered(run, folder, **of_provenance):
    """The run with another provenance."""
    document = json.loads(run_file(run / "verdicts.jsonl").read_text())
    for of_run in document["runs"].values():
        of_run["provenance"] |= of_provenance
    run_file(folder / "verdicts.jsonl").write_text(json.dumps(document))
    for file in (*run.glob("*.png"), run / "verdicts.jsonl"):
        shutil.copy(file, folder)
    return folder


def test_results_carry_their_options(run, tmp_path, monkeypatch):
    before = export(run, tmp_path / "before.jsonl")
    options = tmp_path / "options.yaml"
    options.write_text("judges: {t2i_eval: {mode: framework}}\n")
    monkeypatch.setenv("VIEVAL_CONFIG", str(options))
    assert export(run, tmp_path / "after.jsonl") == before


def test_another_pack_or_image_cannot_be_passed_off_as_that_of_the_run(
    run, tmp_path, vieval
):
    pack = r"with pack t2i_eval/v1 \(another\), but .* restore that pack"
    for folder, changes, said in (
        (tmp_path / "pack", {"pack_hash": "another"}, pack),
        (tmp_path / "images", {}, "has changed since it was judged"),
    ):
        folder.mkdir()
        images = altered(run, folder, **changes).glob("*.png")
        for file in () if changes else images:
            file.write_bytes(file.read_bytes() + b"more")
        refused = vieval(command(folder, tmp_path / "x"), code=1).err
        assert re.search(said, refused)
        assert not (tmp_path / "x").exists()
