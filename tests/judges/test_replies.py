"""Tables of replies: what is read at once, and what when the same reply comes to the one further
question.

Half of each table and more was written by people who had not seen the reader or its words.
"""

import json
from pathlib import Path

import pytest

from vieval_plugin.judges.pairwise.reading import reader, schema
from vieval_plugin.judges.parsing import reply_schema
from vieval_plugin.judges.protocol import Chat, Image, Message, Text
from vieval_plugin.judges.structured_chat import ChatRequest, ask_all, score_request
from vieval_plugin.prompts import packs

FOLDER = Path(__file__).with_name("replies")
#: Number of scores and of images of each question.
QUESTIONS = {"PQ": (2, 1), "SC_tig": (1, 1), "SC_tie": (2, 2), "SC_mcic": (3, 2)}
PACK = packs.load("viescore/v1")
VOTES = {"A": "first", "B": "second", "both bad": "both_bad"}


def rows(name):
    file = FOLDER / f"{name}.jsonl"
    return [json.loads(line) for line in file.open(encoding="utf-8")]


def asked(question):
    count, images = QUESTIONS.get(question, (0, 2))
    message = Message("user", (*[Image(Path("a.png"))] * images, "Rate it."))
    if count:
        return score_request(Chat((message,), ("SC",), reply_schema(count)))
    wanted = None if question == "labels" else schema(question, 2)
    chat = Chat((message,), ("forward",), wanted)
    return ChatRequest(chat, reader(question, (1, 2)))


def outcome(row):
    """What is read of a reply that comes every time, and after how many calls."""
    program = ask_all([asked(row["question"])], PACK)
    next(program)
    calls = 1
    try:
        while program.send([Text(row["text"])]):
            calls += 1
    except StopIteration as end:
        [answer] = end.value
    return answer.value, calls


def expected(row):
    wanted = row["expected"]
    return VOTES[wanted] if isinstance(wanted, str) else tuple(wanted)


def shares(results, is_read):
    """Rows that were read at once, and that were read at all."""
    read = [(row, calls) for row, value, calls in results if is_read(row, value)]
    return [row for row, calls in read if calls == 1], [row for row, _ in read]


@pytest.mark.parametrize("name", ["good", "bad"])
def test_a_table_is_large_and_blind_in_many_languages(name):
    table = rows(name)
    assert len(table) >= 400
    assert len({row["language"] for row in table}) >= 15
    assert 2 * sum(row["blind"] for row in table) >= len(table)


def test_good_replies_are_read():
    table = rows("good")
    results = [(row, *outcome(row)) for row in table]
    values = [(row, value) for row, value, _ in results]
    assert [row for row, v in values if v not in (None, expected(row))] == []
    at_once, read = shares(results, lambda row, value: value == expected(row))
    assert len(at_once) >= 0.85 * len(table)
    assert len(read) >= 0.97 * len(table)


def test_bad_replies_are_not_read():
    table = rows("bad")
    results = [(row, *outcome(row)) for row in table]
    at_once, read = shares(results, lambda row, value: value is not None)
    assert len(at_once) <= 0.01 * len(table), at_once
    assert len(read) <= 0.06 * len(table), read
