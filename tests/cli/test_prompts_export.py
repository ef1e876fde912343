"""A benchmark's prompts go out to a generator, and its images come back to be scored."""

import csv
import json

import PIL.Image
import pytest

from vieval_plugin.cli import main

pytest.importorskip("skimage", reason="the drawn benchmark needs scikit-image")


def test_prompts_go_out_and_images_come_back(tmp_path, capsys):
    assert main(["prompts", "export", "vieval_demo/tie", "--out", str(tmp_path / "out")]) == 0
    folder = tmp_path / "out" / "tie"
    assert f"{folder / 'prompts.jsonl'}: 16 prompts" in capsys.readouterr().out
    rows = [json.loads(line) for line in (folder / "prompts.jsonl").read_text().splitlines()]
    assert {tuple(row["images"]) for row in rows} == {("source",)}
    assert all(row["texts"]["instruction"] and (folder / row["images"]["source"]).is_file() for row in rows)
    with (folder / "expected.csv").open() as file:
        expected = list(csv.DictReader(file))
    assert [row["uid"] for row in expected] == [row["uid"] for row in rows]

    (tmp_path / "mine").mkdir()
    for number, row in enumerate(expected):
        PIL.Image.new("RGB", (64, 64), (number * 5, 90, 120)).save(tmp_path / "mine" / row["file"])
    score = ["score", str(tmp_path / "mine"), "--prompts", str(folder / "prompts.jsonl"), "--judge", "ssim"]
    assert main([*score, "--out", str(tmp_path / "verdicts.jsonl")]) == 0
    verdicts = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    assert [(verdict["uid"], verdict["status"]) for verdict in verdicts] == [(row["uid"], "ok") for row in rows]


def test_a_part_that_is_not_there_is_one_line(tmp_path, capsys):
    assert main(["prompts", "export", "vieval_demo/tia", "--out", str(tmp_path / "out")]) == 1
    assert "no vieval_demo part 'tia'; known: " in capsys.readouterr().err
