"""Replies that people labelled: what a careful reader takes for scores is read or left unread, and
nothing else is ever read.

`labelled_replies.jsonl` holds replies of our own, most of them hostile. `labelled_log_rows.jsonl`
names rows of the public logs, whose texts are read from ../shared/data: `guessed` is a reply that
the log's authors could not read, `reasoning` a text about scores that is given to the reader as if
it were a reply, `reply` the answer as it was.
"""

import json
from functools import cache
from pathlib import Path

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.judges.parsing import parse_scores, reply_schema
from vieval_plugin.judges.protocol import Status
from vieval_plugin.prompts import packs

HERE = Path(__file__).parent
GUESSED = "guess_if_cannot_parse | "
PARTS = {folder: part for folder, (_, part) in benchmark_registry.folders().items()}


def rows(name):
    return [json.loads(line) for line in (HERE / name).open(encoding="utf-8")]


@cache
def read(question, text):
    scores = packs.load("viescore/v1").questions[question].scores
    return parse_scores(text, reply_schema(len(scores)))


@cache
def log(path):
    return json.loads(path.read_text(encoding="utf-8"))


def text_of(row, shared_data):
    """The text of a row of the public logs, and the question it answers."""
    folder = shared_data / "viescore_logs" / row["log"] / row["folder"]
    held = log(folder / row["image_model"] / f"{row['aspect']}.json")[row["uid"]]
    question = "PQ" if row["aspect"] == "PQ" else f"SC_{PARTS[row['folder']]}"
    if row["form"] == "reply":
        answer = {"score": held["score"], "reasoning": held["reasoning"]}
        return question, json.dumps(answer)
    return question, held["reasoning"].removeprefix(GUESSED)


def misread(labelled):
    """The labelled texts (label, question, text) that are read otherwise than labelled."""
    parsed = [(label, read(question, text), text) for label, question, text in labelled]
    return [
        (text[:90], label, found.scores, found.reason)
        for label, found, text in parsed
        if list(found.scores) != (label or [])
    ]


def test_no_score_is_read_that_a_careful_reader_would_not_read():
    found = rows("labelled_replies.jsonl")
    assert len(found) >= 100
    texts = [(row["label"], row["question"], row["text"]) for row in found]
    assert misread(texts) == []


def test_only_strict_json_is_ok():
    for row in rows("labelled_replies.jsonl"):
        parsed = read(row["question"], row["text"])
        if parsed.scores:
            assert (parsed.status is Status.OK) == bool(row.get("ok")), row


def test_no_score_is_read_from_the_public_logs_that_is_not_one(shared_data):
    found = rows("labelled_log_rows.jsonl")
    assert len(found) >= 100
    texts = [(row["label"], *text_of(row, shared_data)) for row in found]
    assert misread(texts) == []
