"""Answers in labelled lines, such as `Alignment Score (1-5): 4`."""

import json
from pathlib import Path

import pytest

from vieval_plugin.judges.answer_formats import parse_labelled_lines
from vieval_plugin.judges.parsing import REFUSAL_INSIDE

TABLE = Path(__file__).with_name("labelled_lines.jsonl")
ROWS = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=[row["kind"] for row in ROWS])
def test_lines_are_read_only_as_they_were_asked_for(row):
    labels = ("Alignment Score", "Coherence Score")
    read = parse_labelled_lines(row["reply"], labels, 1, 5)
    assert read.scores == tuple(row["scores"] or ())
    assert read.status.usable is bool(row["scores"])
    assert read.reason or row["scores"]


def test_words_around_the_lines_are_the_reasoning_and_may_decline():
    read = parse_labelled_lines("I cannot rate this.\nScore: 1", ["Score"], 1, 5)
    assert (read.reason, read.finding) == ("I cannot rate this.", REFUSAL_INSIDE)
