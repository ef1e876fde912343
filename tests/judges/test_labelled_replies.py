"""Replies that people labelled: what a careful reader takes for scores is read or left unread, and nothing else is ever read.

`labelled_replies.jsonl` holds replies of our own, most of them hostile. `labelled_log_rows.jsonl` names rows of the public
logs, whose texts are read from ../shared/data: `guessed` is a reply that the log's authors could not read, `reasoning` a
text about scores that is given to the reader as if it were a reply, `reply` the answer as it was.
"""

import json
from functools import cache
from pathlib import Path

import pytest

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.judges.parsing import parse_scores
from vieval_plugin.judges.protocol import Status
from vieval_plugin.prompts import packs

HERE = Path(__file__).parent
GUESSED = "guess_if_cannot_parse | "
PARTS = {folder: part for folder, (_, part) in benchmark_registry.folders().items()}


def rows(name):
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


@cache
def read(question, text):
    names = packs.load("viescore/v1").questions[question].scores
    return parse_scores(text, count=len(names), names=names)


@cache
def log(path):
    return json.loads(path.read_text(encoding="utf-8"))


def text_of(row, shared_data):
    """The text of a row of the public logs, and the question it answers."""
    folder = shared_data / "viescore_logs" / row["log"] / row["folder"] / row["image_model"]
    held = log(folder / f"{row['aspect']}.json")[row["uid"]]
    question = "PQ" if row["aspect"] == "PQ" else f"SC_{PARTS[row['folder']]}"
    if row["form"] == "reply":
        return question, json.dumps({"score": held["score"], "reasoning": held["reasoning"]})
    return question, held["reasoning"].removeprefix(GUESSED)


def judged(labelled):
    """The labelled replies of which other scores were read, and those of which none were though they have some."""
    accepted, rejected = [], []
    for label, parsed, text in labelled:
        if parsed.scores and list(parsed.scores) != label:
            accepted.append((text, label, parsed.scores))
        elif label is not None and not parsed.scores:
            rejected.append((text[:90], label, parsed.reason))
    return accepted, rejected


def told(what, labelled, rejected):
    with_scores = sum(label is not None for label, _, _ in labelled)
    print(f"{what}: {len(labelled)} replies, {with_scores} with scores, of which {len(rejected)} were not read:")
    print("\n".join(f"  {reason}: {text!r}" for text, _, reason in rejected))


def test_no_score_is_read_that_a_careful_reader_would_not_read(capsys):
    found = rows("labelled_replies.jsonl")
    assert len(found) >= 100
    labelled = [(row["label"], read(row["question"], row["text"]), row["text"]) for row in found]
    accepted, rejected = judged(labelled)
    with capsys.disabled():
        told("\nour own", labelled, rejected)
    assert accepted == []
    assert len(rejected) <= 9


def test_only_strict_json_is_ok():
    for row in rows("labelled_replies.jsonl"):
        parsed = read(row["question"], row["text"])
        if parsed.scores:
            assert (parsed.status is Status.OK) == bool(row.get("ok")), row


def test_no_score_is_read_from_the_public_logs_that_is_not_one(shared_data, capsys):
    found = rows("labelled_log_rows.jsonl")
    assert len(found) >= 100
    texts = [(row["label"], *text_of(row, shared_data)) for row in found]
    labelled = [(label, read(question, text), text) for label, question, text in texts]
    accepted, rejected = judged(labelled)
    with capsys.disabled():
        told("\nthe public logs", labelled, rejected)
    assert accepted == []
    assert len(rejected) <= 15


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("around 7 for naturalness and 6 for cleanness", "scores in prose: hedged"),
        ("naturalness: 7, naturalness: 8, cleanness: 6", "scores in prose: not one number in range for each name"),
        ("naturalness: 17, cleanness: 6", "scores in prose: not one number in range for each name"),
        ("naturalness 10 artifacts 0", "scores in prose: a name that can be meant either way"),
        ("naturalness: 2, cleanness: 1 (lower is better)", "scores in prose: a name that can be meant either way"),
        ("Beautiful picture of a lake at dusk.", ""),
        ("0 0", ""),
    ],
)
def test_why_scores_in_prose_were_not_read_is_a_fixed_finding(text, finding):
    parsed = read("PQ", text)
    assert (parsed.status, parsed.finding) == (Status.PARSE_FAILURE, finding)


def test_a_name_of_a_pack_that_is_a_fault_is_never_read():
    parsed = parse_scores("naturalness: 7, artifacts: 2", count=2, names=("naturalness", "artifacts"))
    assert parsed.finding == "scores in prose: a name that can be meant either way"
    parsed = parse_scores(
        "naturalness: 7, absence of artifacts: 2", count=2, names=("naturalness", "absence of artifacts")
    )
    assert parsed.scores == (7, 2)
    assert not parse_scores("A fine image.", count=2, names=("naturalness", "artifacts")).finding


def test_without_names_nothing_is_read_from_prose():
    assert parse_scores("score1: 8, score2: 9", count=2).reason == "no score found"


def test_the_echo_of_the_prompt_is_never_read(shared_data):
    """Of BLIP-2's 4,351 unread PQ replies 4,296 are the same words, and none of them is a score."""
    echoes = unread = 0
    for path in (shared_data / "viescore_logs" / "results_blip2_0shot").glob("*/*/PQ.json"):
        for row in log(path).values():
            if str(row["reasoning"]).startswith(GUESSED):
                text = row["reasoning"].removeprefix(GUESSED)
                unread += not read("PQ", text).scores
                echoes += text.replace(" :", "").replace(":", "") == "naturalness 10 artifacts 0"
    assert (unread, echoes) == (4351, 4296)
