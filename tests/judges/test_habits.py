"""Test habits of chatty servers without schemas, end to end."""

import json
from pathlib import Path

import PIL.Image

from tests.brightness import words_of
from tests.fake_server import FakeServer
from vieval_plugin import Judge

TABLE = Path(__file__).parent / "replies" / "habits.jsonl"
ROWS = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]
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
        for number, row in enumerate(ROWS):
            habit.update(row)
            picture = PIL.Image.new("RGB", (16, 16), (number * 6,) * 3)
            with Judge("viescore", model="fake", base_url=server.base_url) as judge:
                [score] = judge.score([picture], ["a grey square"])
            if score != (0.8 * 0.6) ** 0.5:
                lost.append((row["habit"], score, judge.last[0].reason))
    assert len(ROWS) == 40
    assert len(lost) <= 0.03 * len(ROWS), lost
