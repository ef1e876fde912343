"""Test that mistakes easily made in Python are VievalErrors of one line."""

import re
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from tests.refusals import refusal
from tests.tables import table
from vieval_plugin import (
    Backbone,
    Contest,
    Image,
    Judge,
    Sample,
    SampleId,
    VievalError,
    Votes,
    evaluate,
    score_matrix,
)

ID = SampleId("own", "tig", "m", "1")
OUTPUT = {"output": Image(b"x")}
SAMPLE = Sample(ID, OUTPUT, {"prompt": "x"})
PIXELS = np.zeros((2, 16, 16, 3), np.uint8)
SERVER = {"model": "m", "base_url": "http://127.0.0.1:9/v1"}
NO_STORE = {"store": {"use": False}}


@pytest.fixture(scope="module")
def judge():
    return Judge("sharpness", options=NO_STORE)


#: Names in the calls of `mistakes.jsonl`, which are Python as a user types it.
TYPES = (Backbone, Contest, Image, Judge, Path, Sample, SampleId, Votes)
NAMES = {one.__name__: one for one in (*TYPES, evaluate, score_matrix)}
NAMES |= {"ID": ID, "OUTPUT": OUTPUT, "PIXELS": PIXELS, "SAMPLE": SAMPLE}
NAMES |= {"SERVER": SERVER, "PIL": PIL}


@pytest.mark.parametrize(*table("mistakes.jsonl"))
def test_a_mistake_is_one_line(judge, call, message):
    assert re.search(message, refusal(eval, call, {**NAMES, "judge": judge}))


def test_a_password_in_an_address_is_not_repeated():
    with pytest.raises(VievalError, match="pass a pathlib.Path") as raised:
        Image("https://me:secret-word@example.org/a.png")
    assert "secret-word" not in str(raised.value)


def test_errors_of_the_users_own_code_stay_what_they_are(judge):
    def broken():
        yield PIXELS[0]
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        judge.score(broken(), "x")


def test_lists_serve_where_tuples_are_kept():
    votes = Votes("two_way", "first", ["first"])
    contest = Contest(ID, [SAMPLE, SAMPLE], votes, tags=("a",))
    assert contest.candidates == (SAMPLE, SAMPLE)
    assert contest.votes.annotators == ("first",)
    assert Sample(ID, OUTPUT, tags=["a"]).tags == ("a",)


def test_options_of_evaluate_may_be_a_mapping():
    [verdict] = evaluate([SAMPLE], judge="sharpness", options=NO_STORE)
    assert "not an image" in verdict.reason
