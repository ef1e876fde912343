"""Test question answering on a real vLLM with random weights (`make test-vllm`)."""

import json

import pytest

from tests.extras import VLLM_URL, served_by_vllm
from tests.fake_server import FakeServer
from tests.pictures import plain
from vieval_plugin import Judge

IS_CAT = {"id": 1, "question": "Is there a cat?", "parents": []}
IS_RED = {"id": 2, "question": "Is it red?", "parents": [1]}
ANIMAL = {"question": "What is it?", "answer": "a dog"}
ANIMAL["choices"] = ["a cat", "a dog", "a bird"]
COLOUR = {"question": "What colour is it?", "answer": "red"}
QUESTIONS = {
    "dsg": [IS_CAT, IS_RED],
    "tifa": [ANIMAL, ANIMAL],
    "vq2a": [{"question": "What is it?", "answer": "a cat"}, COLOUR],
}

pytestmark = pytest.mark.vllm


@pytest.mark.parametrize("setting", QUESTIONS)
def test_answers_in_words_and_in_probabilities(setting):
    model = served_by_vllm()["id"]

    def listing(request):
        schema = request["response_format"]["json_schema"]["schema"]
        listed = {"questions": QUESTIONS[setting]}
        is_list = "questions" in schema["properties"]
        return json.dumps(listed if is_list else {"probe": "vieval"})

    pictures = [plain(colour, (56, 56)) for colour in ("red", "blue")]
    about = {"texts": {"prompt": "a red cat"}}
    rows = [{"images": {"output": picture}, **about} for picture in pictures]
    with FakeServer(reply=listing) as writer:
        backbone = {"model": "fake", "base_url": writer.base_url}
        asked = {"question_answering": {"backbones": {"questions": "writer"}}}
        options = {"store": {"use": False}, "backbones": {"writer": backbone}}
        named = {"model": model, "base_url": VLLM_URL, "setting": setting}
        named["options"] = {**options, "judges": asked}
        with Judge("question_answering", **named) as judge:
            verdicts = judge(rows)
    assert len(verdicts) == 2
    for verdict in verdicts:
        assert verdict.status.usable, verdict.reason
        if setting == "vq2a":
            low, high = verdict.bounds["SC"]
            # exact, as this server says the probability of any token
            assert 0 < low == high < 1
        else:
            assert verdict.scores["SC"] in (0.0, 0.5, 1.0)
