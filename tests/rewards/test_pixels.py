"""Pixels of trainers: the right range passes each adapter, a decoder's overshoot is counted, and
any other range is an error.
"""

import re
import sys
import types

import numpy as np
import pytest

from tests.refusals import refusal
from tests.work import run_process
from vieval_plugin import Judge
from vieval_plugin.images import decode
from vieval_plugin.rewards.in_process import open_reward

torch = pytest.importorskip("torch")

from tests.rewards import trainers  # noqa: E402
from vieval_plugin.rewards import verl_omni  # noqa: E402
from vieval_plugin.rewards.flow_grpo import judge_reward  # noqa: E402
from vieval_plugin.rewards.prompt_writer import prompt_writer_reward  # noqa: E402

NO_STORE = {"store": {"use": False}}
PIXELS = np.random.RandomState(0).randint(0, 256, (2, 20, 20, 3)).astype(np.uint8)
FLOATS = torch.tensor(PIXELS).permute(0, 3, 1, 2).float().contiguous() / 255


def beyond(share, value):
    """FLOATS whose white has moved to `value` in a share of the first picture's values."""
    moved = FLOATS.clone()
    count = round(share * moved[0].numel())
    moved[0].view(-1)[:count] = value
    return moved


RANGES = {
    "0 to 1": (FLOATS, None),
    "uint8": (torch.tensor(PIXELS), None),
    "float16": (FLOATS.half(), None),
    "rounding": (FLOATS * 1.04 - 0.02, None),
    "overshoot": (beyond(0.009, 1.45), None),
    "undershoot": (beyond(0.009, -0.45), None),
    "overshoot of many values": (beyond(0.02, 1.1), "between 0 and 1"),
    "overshoot of a half and more": (beyond(0.001, 1.6), "between 0 and 1"),
    "undershoot of a half and more": (beyond(0.001, -0.6), "between 0 and 1"),
    "-1 to 1": (FLOATS * 2 - 1, "-1 to 1"),
    "0 to 255": (FLOATS * 255, "0 to 255"),
    "not a number": (beyond(0.001, float("nan")), "between 0 and 1"),
    "infinite": (beyond(0.001, float("inf")), "between 0 and 1"),
    "whole numbers": ((FLOATS * 255).int(), "uint8"),
}


def flow_grpo(batch):
    return judge_reward("sharpness", options=NO_STORE)("cpu")(
        batch, ["x"] * len(batch)
    )[0]


def flow_grpo_list(batch):
    return flow_grpo(list(batch))


def flow_grpo_sources(batch):
    reward = judge_reward("ssim", options=NO_STORE)("cpu")
    return reward(PIXELS, ["x"] * len(batch), ref_images=batch)[0]


def prompt_writer(batch):
    with Judge("sharpness", options=NO_STORE) as judge:
        return prompt_writer_reward(judge, lambda texts: batch)(
            ["x"] * len(batch), ["x"] * len(batch)
        )


@pytest.fixture
def flow_factory(monkeypatch):
    bases = trainers.install_flow_factory(monkeypatch)
    extra_kwargs = {"judge": "sharpness", "options": NO_STORE}
    config = types.SimpleNamespace(extra_kwargs=extra_kwargs)
    path = "vieval_plugin.rewards.flow_factory.JudgeRewardModel"

    def rewards(batch):
        return trainers.flow_factory(
            bases, path, config, {"prompt": ["x"] * len(batch), "image": batch}
        )

    return rewards


@pytest.mark.parametrize(("batch", "refused"), RANGES.values(), ids=RANGES)
@pytest.mark.parametrize(
    "adapter", [flow_grpo, flow_grpo_list, flow_grpo_sources, prompt_writer]
)
def test_a_range_is_right_or_refused(adapter, batch, refused):
    if refused:
        assert re.search(refused, refusal(adapter, batch))
    else:
        assert len(adapter(batch)) == 2


@pytest.mark.parametrize("name", ["overshoot", "-1 to 1", "0 to 255"])
def test_flow_factory_refuses_the_same(flow_factory, name):
    batch, refused = RANGES[name]
    if refused:
        assert re.search(refused, refusal(flow_factory, batch))
    else:
        assert len(flow_factory(batch)) == 2


@pytest.mark.parametrize(
    "name", ["0 to 1", "rounding", "overshoot", "-1 to 1", "0 to 255"]
)
async def test_verl_omni_refuses_the_same(name):
    batch, refused = RANGES[name]
    entry = {"required": True, "reward": "sharpness", "options": ""}
    for image in (batch[0], batch[:1]):
        if refused:
            with pytest.raises(RuntimeError, match=refused):
                await trainers.verl_omni(verl_omni.compute_score, image, "x", entry)
        else:
            found = await trainers.verl_omni(verl_omni.compute_score, image, "x", entry)
            assert found > 0


async def test_one_picture_is_meant():
    entry = {"required": True, "reward": "sharpness"}
    with pytest.raises(RuntimeError, match="one image, got 2"):
        await trainers.verl_omni(verl_omni.compute_score, FLOATS, "x", entry)
    assert "one image, got 2" in refusal(flow_grpo, torch.stack([FLOATS, FLOATS]))
    assert "number, 3, height, width" in refusal(flow_grpo, FLOATS[0])


def test_pixels_are_what_was_generated():
    reward = open_reward("sharpness", options=NO_STORE)
    clipped = beyond(0.009, 1.45)
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
    ran = run_process([sys.executable, "-c", script], check=True)
    [line] = ran.stderr.splitlines()
    assert "3 of 10 images" in line
