"""TRL trains a tiny model on judged images, and leaves out what has no reward."""

import hashlib
import json
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from tests.fake_server import FakeServer, _parts, score_count
from tests.pictures import plain
from tests.rewards.page import blocks_of
from tests.tiny_trainer import rewards_of_training

pytestmark = pytest.mark.slow


def drawn(texts):
    """An image for each text, of a colour that follows from it."""
    return [plain(tuple(hashlib.sha256(text.encode()).digest()[:3])) for text in texts]


def half_unreadable(request):
    """Scores that follow from the image; for about half of the images no score at all."""
    parts = [part for turn in request["messages"] for part in _parts(turn["content"])]
    shown = json.dumps([part["image_url"] for part in parts if "image_url" in part])
    digest = hashlib.sha256(shown.encode()).digest()
    text = " ".join(part.get("text", "") for part in parts)
    document = {"score": [digest[1] % 11] * score_count(text), "reasoning": "fine"}
    return json.dumps(document) if digest[0] % 2 else "no score at all"


def test_trl_trains_on_the_images_that_were_judged(tmp_path, store):
    answers = []
    unreadable = FakeServer(reply=half_unreadable, schema_support="ignored")
    pipeline = lambda texts, output_type: SimpleNamespace(images=drawn(texts))
    page = {"pipeline": pipeline}
    with unreadable as server, ExitStack() as opened:
        exec(blocks_of("TRL and ms-swift", server.base_url)[0], page)
        opened.enter_context(page["judge"])
        reward = page["reward"]

        def noted(**columns):
            answers.extend(reward(**columns))
            return answers[-len(columns["completions"]) :]

        prompts = ["a red cube", "a blue ball"] * 4
        path = tmp_path / "out"
        means = rewards_of_training([reward, noted], prompts, path, steps=3, batch=8)
    assert len(means) == 3
    assert None in answers
    assert any(answer is not None for answer in answers)
    assert all(0 <= mean <= 1 for mean in means)
