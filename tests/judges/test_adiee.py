"""Test ADIEE with canned replies: what it asks and reads, and what it refuses."""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.pictures import plain
from tests.playing import first_asks, images_of, play, prepared, text_of
from tests.refusals import refusal
from tests.tables import table
from vieval_plugin import Image, Sample, SampleId, Status
from vieval_plugin.backends.image_tools.tools import run
from vieval_plugin.images import decode, pixels
from vieval_plugin.judges.adiee import read_number
from vieval_plugin.judges.adiee.question import answer_text, form_of, question_text
from vieval_plugin.judges.probabilities import mean_bounds
from vieval_plugin.judges.protocol import Probabilities, Text, UseTool
from vieval_plugin.judges.tools.side_by_side import side_by_side
from vieval_plugin.prompts import packs

PACK = packs.load("adiee/v1")
ANSWERS = [
    answer_text(key, "...", PACK) for key in PACK.questions if key.startswith("answer")
]


def png(colour, size=(8, 6)):
    return Image(plain(colour, size))


def sample(uid="1", kind="tie", image_model="mine"):
    images = {"source": png("red"), "output": png("blue")}
    texts = {"instruction": "make it blue"}
    return Sample(SampleId("b", kind, image_model, uid), images, texts, kind=kind)


@pytest.mark.parametrize("kind", ["tie", "mie"])
def test_a_number_in_the_words_asked_for_is_the_score(kind):
    sentence = answer_text(form_of("1", PACK).answer, "...", PACK)
    program = prepared("adiee").program(sample(kind=kind))
    played = play(program, [Text(sentence.replace("...", "7"))])
    assert (played.verdict.scores, played.verdict.status) == ({"O": 0.7}, Status.OK)
    [chat] = played.asks
    corners = [pixels(image)[0, 0].tolist() for image in images_of(chat)]
    assert corners == [[255, 0, 0], [0, 0, 255]]
    assert "make it blue" in text_of(chat)
    assert sentence in text_of(chat)


@pytest.mark.parametrize(*table("numbers_in_words.jsonl"))
def test_what_is_read_of_a_reply(reply, status, scores):
    found = read_number(reply, "I rate this edit ...", ANSWERS, "...")
    assert (found.status, found.scores) == (status, tuple(scores))


@pytest.mark.parametrize("seed", range(20))
def test_bounds_of_a_mean_hold_every_mean_and_are_reached(seed):
    rng = np.random.default_rng(seed)
    low, wide = rng.random(4), rng.random(4) * rng.integers(0, 2, 4)
    means = [
        float(weights @ np.arange(4) / weights.sum() / 3)
        for corner in itertools.product((0, 1), repeat=4)
        if (weights := low + wide * corner).sum() > 0
    ]
    # the mean of a weight is between those of its ends, so all extremes are at corners
    bounds = mean_bounds(list(low), list(low + wide), [0, 1 / 3, 2 / 3, 1])
    assert bounds == pytest.approx((min(means), max(means)))


def test_the_words_are_drawn_for_an_instruction_and_all_are_drawn():
    forms = {uid: form_of(uid, PACK) for uid in map(str, range(400))}
    drawn = Counter(forms.values())
    assert len(drawn) == 20
    assert min(drawn.values()) > 5
    samples = [sample("7", image_model=model) for model in "abc"]
    asks = [first_asks(prepared("adiee").program(one))[0] for one in samples]
    wanted = question_text("make it blue", forms["7"], PACK, "two", "sentence")
    assert {text_of(ask) for ask in asks} == {wanted}
    assert len(set(ANSWERS)) == 5
    assert all(answer.endswith("...") for answer in ANSWERS)


@pytest.mark.parametrize("kind", ["question", "answer"])
def test_a_pack_without_questions_or_answers_is_one_line(kind):
    questions = PACK.questions.items()
    others = {key: one for key, one in questions if not key.startswith(kind)}
    fewer = replace(PACK, questions=others)
    assert f"has no question {kind}_1" in refusal(form_of, "7", fewer)


@pytest.mark.parametrize("mode", ["prompt", "expected"])
def test_joined_images_are_one_with_the_source_on_the_left(mode):
    judge = prepared("adiee", images="joined", mode=mode)
    even = (1 / 22,) * 22
    reply = Text("Score: 5") if mode == "prompt" else Probabilities(even, even)
    answer = lambda ask: run(ask) if isinstance(ask, UseTool) else reply
    played = play(judge.program(sample()), answer=answer)
    [image] = images_of(played.asks[1])
    shown = pixels(image)
    assert shown.shape == (6, 16, 3)
    assert (shown[0, 0].tolist(), shown[0, -1].tolist()) == ([255, 0, 0], [0, 0, 255])
    assert "side by side" in text_of(played.asks[1])
    [apart] = first_asks(prepared("adiee", mode=mode).program(sample()))
    assert "side by side" not in text_of(apart)


def test_an_image_that_cannot_be_joined_is_a_tool_error_and_nothing_is_asked():
    broken = replace(sample(), images={"source": png("red"), "output": Image(b"none")})
    played = play(prepared("adiee", images="joined").program(broken), answer=run)
    assert (played.verdict.status, played.calls) == (Status.TOOL_ERROR, 1)
    assert played.verdict.scores == {}


def test_the_lower_image_takes_the_height_of_the_higher_and_keeps_its_proportions():
    high, low = np.zeros((10, 20, 3), np.uint8), np.full((5, 30, 3), 255, np.uint8)
    for both in (side_by_side(high, low), side_by_side(low, high)[:, ::-1]):
        assert both.shape == (10, 20 + 60, 3)
        assert both[:, :20].max() == 0
        assert both[:, 20:].min() == 255
    unchanged = np.asarray(decode(png("blue")))
    assert (side_by_side(unchanged, unchanged)[:, 8:] == unchanged).all()
