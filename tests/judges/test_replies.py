"""Replies in tables: what is read at once or when asked again, and habits of chatty servers.

At least half of the good and bad replies are `blind`: by people who had not seen the reader. Rows of
`labelled_log_rows.jsonl` are a reply that a log's authors could not read (`guessed`), a text about
scores in place of a reply (`reasoning`), or the answer as it was (`reply`).
"""

import json
from functools import cache
from pathlib import Path

import PIL.Image
import pytest

from tests.brightness import words_of
from tests.fake_server import FakeServer
from vieval_plugin import Judge
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.judges.pairwise.reading import reader, schema
from vieval_plugin.judges.parsing import parse_scores, reply_schema
from vieval_plugin.judges.protocol import Chat, Image, Message, Status, Text
from vieval_plugin.judges.structured_chat import ChatRequest, ask_all, score_request
from vieval_plugin.prompts import packs

FOLDER = Path(__file__).with_name("replies")
#: Number of scores and of images of each question.
QUESTIONS = {"PQ": (2, 1), "SC_tig": (1, 1), "SC_tie": (2, 2), "SC_mcic": (3, 2)}
PACK = packs.load("viescore/v1")
VOTES = {"A": "first", "B": "second", "both bad": "both_bad"}


def rows(name, folder=FOLDER):
    file = folder / f"{name}.jsonl"
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


HERE = FOLDER.parent
GUESSED = "guess_if_cannot_parse | "
PARTS = {folder: part for folder, (_, part) in benchmark_registry.folders().items()}


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
    found = rows("labelled_replies", HERE)
    assert len(found) >= 100
    texts = [(row["label"], row["question"], row["text"]) for row in found]
    assert misread(texts) == []


def test_only_strict_json_is_ok():
    for row in rows("labelled_replies", HERE):
        parsed = read(row["question"], row["text"])
        if parsed.scores:
            assert (parsed.status is Status.OK) == bool(row.get("ok")), row


def test_no_score_is_read_from_the_public_logs_that_is_not_one(shared_data):
    found = rows("labelled_log_rows", HERE)
    assert len(found) >= 100
    texts = [(row["label"], *text_of(row, shared_data)) for row in found]
    assert misread(texts) == []


HABITS = rows("habits")
#: Number of scores of each question of text-to-image, by a sentence of it alone.
SCORES = {"SC": [8.0], "PQ": [7.0, 6.0]}


def dressed(text, scores):
    reasoning = "The square is even and its edges are clean."
    answer = {"score": scores, "reasoning": reasoning}
    capitals = {key.capitalize(): value for key, value in answer.items()}
    forms = {
        "answer": json.dumps(answer),
        "capitals": json.dumps(capitals),
        "confident": json.dumps({**answer, "confidence": "high"}),
        "python": str(answer),
        "comma": json.dumps(answer)[:-1] + ",}",
        "pretty": json.dumps(answer, indent=2),
    }
    for name, form in forms.items():
        text = text.replace(f"{{{name}}}", form)
    return text


def test_a_chatty_server_loses_hardly_an_image(store, tmp_path):
    """Each of 40 habits for one image, and again when the question is asked once more."""
    habit = {}

    def reply(body):
        words = words_of(body)
        if "prompt" not in words.casefold() and "score" not in words.casefold():
            return "Hello."
        aspect = "SC" if "a grey square" in words else "PQ"
        return dressed(habit["text"], SCORES[aspect])

    lost = []
    with FakeServer(reply=reply, schema_support="ignored") as server:
        for number, row in enumerate(HABITS):
            habit.update(row)
            picture = PIL.Image.new("RGB", (16, 16), (number * 6,) * 3)
            with Judge("viescore", model="fake", base_url=server.base_url) as judge:
                [score] = judge.score([picture], ["a grey square"])
            if score != (0.8 * 0.6) ** 0.5:
                lost.append((row["habit"], score, judge.last[0].reason))
    assert len(HABITS) == 40
    assert len(lost) <= 0.03 * len(HABITS), lost
