"""Flags of `vieval score`: the backbone's options, options files and outputs."""

import json
from functools import partial
from shlex import split

import PIL.Image
import pytest

from tests.fake_server import FakeServer
from tests.stored_results import write_lines
from tests.verdict_files import provenance_of

TEXTS = {
    "tig": {"prompt": "a cube"},
    "tie": {"instruction": "add a hat"},
    "sdig": {"prompt": "a dog"},
}


@pytest.fixture
def samples(tmp_path):
    """Three samples of each of three kinds, by two image models."""
    further = {"tie": {"source": "0.png"}, "sdig": {"subject": "0.png"}}
    rows = []
    for number, kind in enumerate(["tig", "tie", "sdig"] * 2):
        path = tmp_path / f"{number}.png"
        PIL.Image.new("RGB", (32, 32), (40 * number, 90, 200)).save(path)
        row = {"uid": str(number % 3), "kind": kind, "texts": TEXTS[kind]}
        row["image_model"] = "mine" if number < 3 else "theirs"
        row["images"] = {"output": path.name, **further.get(kind, {})}
        rows.append(row)
    return write_lines(tmp_path / "s.jsonl", rows)


@pytest.fixture
def score(score, samples):
    """Scores these samples."""
    return partial(score, samples)


def test_flags_of_the_backbone_are_on_top_of_the_options(score, tmp_path):
    seen = []

    def reply(body):
        if body["max_tokens"] != 2048:  # and not whether schemas are enforced
            seen.append((body["temperature"], body["max_tokens"], body["model"]))
        return json.dumps({"score": [5, 5], "reasoning": "fine"})

    with FakeServer(reply=reply) as server:
        options = tmp_path / "other.yaml"
        judge = {"model": "fake", "base_url": server.base_url, "max_tokens": 99}
        text = json.dumps({"backbones": {"judge": judge}, "store": {"use": False}})
        options.write_text(text)
        flags = split("--temperature 0.5 --num-concurrent 1 --timeout 9 --patience 8")
        code, rows, _, _ = score("--config", options, *flags, "--limit", "2")
    assert code == 0
    assert len(rows) == 2
    assert set(seen) == {(0.5, 99, "fake")}
    source = provenance_of(tmp_path / "verdicts.jsonl", rows[0])
    told = source["options"]["backbones"]["judge"]
    names = ("temperature", "num_concurrent", "timeout", "patience")
    assert [told[name] for name in names] == [0.5, 1, 9.0, 8.0]


def test_verdicts_lie_beside_what_is_judged_where_no_file_is_named(tmp_path, vieval):
    for name in ("1.png", "2.png"):
        (tmp_path / "mine" / name).parent.mkdir(exist_ok=True)
        PIL.Image.new("RGB", (32, 32), (40, 90, 200)).save(tmp_path / "mine" / name)
        (tmp_path / "mine" / name).with_suffix(".txt").write_text("a cat")
    table = tmp_path / "mine.csv"
    table.write_text("prompt,image\na cat,mine/1.png\n")
    for judged in (tmp_path / "mine", table):
        beside = tmp_path / "mine.verdicts.jsonl"
        assert f"wrote {beside}" in vieval("score", judged, "--judge", "sharpness").out
        beside.unlink()


def test_a_benchmark_needs_a_file(vieval):
    said = vieval("score", "--benchmark", "vieval_demo", code=1).err
    assert "--out FILE (or --plan) is required" in said


def test_a_missing_table_is_called_missing(tmp_path, vieval):
    missing = tmp_path / "lst"
    said = vieval("score", missing, "--judge", "sharpness", code=1).err
    assert said.startswith(f"vieval: {missing}: no such file or folder; ")
