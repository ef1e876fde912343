"""The history of a gate: a line a night, series, and lines that are not nights."""

import dataclasses
import json

import pytest

from tests.refusals import refusal, refusal_table
from vieval_plugin.results.baseline import Night, add_night

NIGHT = Night("2026-11-01", "i0", "b", "j", "p", -0.01, 80)


def night(number, **fields):
    return dataclasses.replace(NIGHT, images=f"i{number}", **fields)


def test_a_night_is_a_line_and_the_same_images_count_once(tmp_path):
    path = tmp_path / "folder" / "h.jsonl"
    for number in (0, 1, 1, 0, 2):
        series = add_night(path, night(number))
    assert [n.images for n in series] == ["i0", "i1", "i2"]
    assert len(path.read_text().splitlines()) == 3


@pytest.mark.parametrize("changed", ["baseline", "judge", "prompts"])
def test_a_change_begins_a_new_series(tmp_path, changed):
    path = tmp_path / "h.jsonl"
    add_night(path, night(0))
    assert len(add_night(path, night(1, **{changed: "other"}))) == 1
    assert [n.images for n in add_night(path, night(2))] == ["i2"]
    assert len(path.read_text().splitlines()) == 3


ROW = dataclasses.asdict(NIGHT)


@pytest.mark.parametrize(
    "case",
    refusal_table(
        [
            ("{", "h.jsonl", "line 1 is not a night"),
            ("[]", "h.jsonl", "line 1 is not a night"),
            (
                json.dumps({**ROW, "date": "yesterday"}),
                "h.jsonl",
                "line 1 is not a night",
            ),
            (
                json.dumps({**ROW, "difference": float("nan")}),
                "h.jsonl",
                "line 1 is not a night",
            ),
            (json.dumps({**ROW, "n": None}), "h.jsonl", "line 1 is not a night"),
            (
                "\udce4".encode("utf-8", "surrogateescape").decode("latin-1"),
                "h.jsonl",
                "line 1 is not a night",
            ),
        ]
    ),
)
def test_a_line_that_is_not_a_night_is_refused(case, tmp_path):
    path = tmp_path / "h.jsonl"
    path.write_text(f"{case.input}\n", encoding="utf-8")
    case.check(refusal(add_night, path, NIGHT))
    assert path.read_text(encoding="utf-8") == f"{case.input}\n"
