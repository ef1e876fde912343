"""Question answering on a real vLLM with a model of random weights: `make test-vllm`. Another
backbone writes questions.
"""

import json

import pytest

from tests.extras import VLLM_URL, served_by_vllm
from tests.fake_server import FakeServer
from tests.pictures import plain
from vieval_plugin import Judge

QUESTIONS = {
    "dsg": [
        {"id": 1, "question": "Is there a cat?", "parents": []},
        {"id": 2, "question": "Is it red?", "parents": [1]},
    ],
    "tifa": [
        {
            "question": "What is it?",
            "choices": ["a cat", "a dog", "a bird"],
            "answer": "a dog",
        }
    ]
    * 2,
    "vq2a": [
        {"question": "What is it?", "answer": "a cat"},
        {"question": "What colour is it?", "answer": "red"},
    ],
}

pytestmark = pytest.mark.vllm


@pytest.mark.parametrize("setting", QUESTIONS)
def test_answers_in_words_and_in_probabilities(setting):
    model = served_by_vllm()["id"]

    def listing(request):
        properties = request["response_format"]["json_schema"]["schema"]["properties"]
        return json.dumps(
            {"questions": QUESTIONS[setting]}
            if "questions" in properties
            else {"probe": "vieval"}
        )

    with FakeServer(reply=listing) as writer:
        options = {
            "store": {"use": False},
            "backbones": {"writer": {"model": "fake", "base_url": writer.base_url}},
            "judges": {"question_answering": {"backbones": {"questions": "writer"}}},
        }
        with Judge(
            "question_answering",
            model=model,
            base_url=VLLM_URL,
            setting=setting,
            options=options,
        ) as judge:
            pictures = [plain(colour, (56, 56)) for colour in ("red", "blue")]
            verdicts = judge(
                [
                    {"images": {"output": p}, "texts": {"prompt": "a red cat"}}
                    for p in pictures
                ]
            )
    for verdict in verdicts:
        print(
            setting,
            verdict.scores,
            verdict.bounds,
            [(step.label, step.answer[:40]) for step in verdict.trace[1:]],
        )
        assert verdict.status.usable, verdict.reason
        if setting == "vq2a":
            low, high = verdict.bounds["SC"]
            assert (
                0 < low == high < 1
            )  # exact, as this server says the probability of any token
        else:
            assert verdict.scores["SC"] in (0.0, 0.5, 1.0)
    assert len(verdicts) == 2
