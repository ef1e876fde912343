"""The history of a gate: a line a night, series, and lines that are not nights."""

import dataclasses
import json

import pytest

from tests.refusals import refusal
from vieval_plugin.results.baseline import Night, add_night

NIGHT = Night("2026-11-01", "i0", "b", "j", "p", -0.01, 80)
ROW = dataclasses.asdict(NIGHT)
WRONG = [{"date": "yesterday"}, {"difference": float("nan")}, {"n": None}]
ROWS = [json.dumps({**ROW, **wrong}) for wrong in WRONG]


def night(number, **fields):
    return dataclasses.replace(NIGHT, images=f"i{number}", **fields)


def images(series):
    return [one.images for one in series]


def test_a_night_is_a_line_and_the_same_images_count_once(tmp_path):
    path = tmp_path / "folder" / "h.jsonl"
    for number in (0, 1, 1, 0, 2):
        series = add_night(path, night(number))
    assert images(series) == ["i0", "i1", "i2"]
    assert len(path.read_text().splitlines()) == 3


@pytest.mark.parametrize("changed", ["baseline", "judge", "prompts"])
def test_a_change_begins_a_new_series(tmp_path, changed):
    path = tmp_path / "h.jsonl"
    add_night(path, night(0))
    assert len(add_night(path, night(1, **{changed: "other"}))) == 1
    assert images(add_night(path, night(2))) == ["i2"]
    assert len(path.read_text().splitlines()) == 3


@pytest.mark.parametrize("text", ["{", "[]", *ROWS, "ä"])
def test_a_line_that_is_not_a_night_is_refused(text, tmp_path):
    path = tmp_path / "h.jsonl"
    path.write_text(f"{text}\n", encoding="utf-8")
    assert "h.jsonl: line 1 is not a night" in refusal(add_night, path, NIGHT)
    assert path.read_text(encoding="utf-8") == f"{text}\n"
