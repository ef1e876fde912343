"""Pixels of trainers: one picture where one is meant, and a count of what was clipped."""

import sys

import numpy as np
import pytest

from tests.refusals import refuses
from tests.work import run_process
from vieval_plugin.images import decode
from vieval_plugin.rewards.in_process import open_reward

torch = pytest.importorskip("torch")

from tests.rewards import trainers  # noqa: E402
from vieval_plugin.rewards import verl_omni  # noqa: E402
from vieval_plugin.rewards.flow_grpo import judge_reward  # noqa: E402

NO_STORE = {"store": {"use": False}}
FLOATS = torch.tensor(np.random.RandomState(0).rand(2, 3, 20, 20)).float()


async def test_one_picture_is_meant():
    entry = {"required": True, "reward": "sharpness"}
    with pytest.raises(RuntimeError, match="one image, got 2"):
        await trainers.verl_omni(verl_omni.compute_score, FLOATS, "x", entry)
    reward = judge_reward("sharpness", options=NO_STORE)("cpu")
    refuses("one image, got 2", reward, torch.stack([FLOATS, FLOATS]), ["x"] * 2)
    refuses("number, 3, height, width", reward, FLOATS[0], ["x"] * 3)


def test_pixels_are_what_was_generated():
    reward = open_reward("sharpness", options=NO_STORE)
    clipped = FLOATS.clone()
    clipped[0].view(-1)[:10] = 1.45
    [first, second] = reward.samples(["x", "y"], clipped)
    expected = (clipped.clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).numpy()
    for sample, pixels in zip((first, second), expected, strict=True):
        assert np.array_equal(np.asarray(decode(sample.images["output"])), pixels)


def test_clipped_pictures_are_counted_in_one_line_at_the_end():
    script = """
import numpy as np
from vieval_plugin.rewards.in_process import pictures
for number in range(5):
    batch = np.full((2, 20, 20, 3), 0.5)
    batch[0, 0, 0] = 1.3 if number < 3 else 1.01
    pictures(batch)
"""
    [line] = run_process([sys.executable, "-c", script], check=True).stderr.splitlines()
    assert "3 of 10 images" in line
