"""What every adapter of a trainer does: rewards of `Judge`, or an error, of pixels in range."""

import asyncio
import types

import numpy as np
import pytest

from tests.fake_server import FakeServer
from vieval_plugin import Judge, VievalError

torch = pytest.importorskip("torch")

from tests.rewards import trainers  # noqa: E402
from vieval_plugin.rewards import verl_omni  # noqa: E402
from vieval_plugin.rewards.flow_grpo import judge_reward  # noqa: E402
from vieval_plugin.rewards.prompt_writer import prompt_writer_reward  # noqa: E402

PIXELS = np.random.RandomState(0).randint(0, 256, (2, 20, 20, 3)).astype(np.uint8)
FLOATS = torch.tensor(PIXELS).permute(0, 3, 1, 2).float().contiguous() / 255
PROMPTS = ["a red cube", "a blue ball"]
ERRORS = (VievalError, RuntimeError)
FACTORY = "vieval_plugin.rewards.flow_factory"


def flow_grpo(judge, batch, prompts, **fields):
    return judge_reward(judge, **fields)("cpu")(batch, prompts)[0]


def flow_grpo_list(judge, batch, prompts, **fields):
    return flow_grpo(judge, list(batch), prompts, **fields)


def prompt_writer(judge, batch, prompts, **fields):
    """As ms-swift calls it; TRL has prompts in place of messages."""
    messages = [[{"role": "user", "content": text}] for text in prompts]
    with Judge(judge, **fields) as opened:
        reward = prompt_writer_reward(opened, lambda texts: batch)
        return reward(prompts, messages=messages)


def flow_factory_adapter(name):
    def rewards(judge, batch, prompts, **fields):
        with pytest.MonkeyPatch.context() as patch:
            bases = trainers.install_flow_factory(patch)
            config = types.SimpleNamespace(extra_kwargs={"judge": judge, **fields})
            given = {"prompt": prompts, "image": batch}
            path = f"{FACTORY}.{name}"
            return trainers.flow_factory(bases, path, config, given).tolist()

    return rewards


def verl_omni_adapter(shape):
    def rewards(judge, batch, prompts, **fields):
        entry = {"required": True, "reward": judge, **fields}
        values = []
        for image, prompt in zip(batch, prompts, strict=True):
            image = image if shape == "CHW" else image[None]
            asked = trainers.verl_omni(verl_omni.compute_score, image, prompt, entry)
            values.append(asyncio.run(asked))
        return values

    return rewards


ADAPTERS = {
    "flow_grpo": flow_grpo,
    "flow_grpo_list": flow_grpo_list,
    "prompt_writer": prompt_writer,
    "flow_factory": flow_factory_adapter("JudgeRewardModel"),
    "flow_factory_group": flow_factory_adapter("JudgeGroupRewardModel"),
    "verl_omni": verl_omni_adapter("CHW"),
    "verl_omni_batch": verl_omni_adapter("NCHW"),
}


@pytest.fixture(params=ADAPTERS.values(), ids=ADAPTERS)
def adapter(request):
    return request.param


def at(server):
    return {"model": "fake", "base_url": server.base_url}


def test_rewards_are_those_of_a_judge(adapter, server, store):
    with Judge("viescore", **at(server)) as judge:
        expected = judge.score(PIXELS, PROMPTS).tolist()
    for batch in (FLOATS, torch.tensor(PIXELS).permute(0, 3, 1, 2)):
        found = adapter("viescore", batch, PROMPTS, **at(server))
        assert found == pytest.approx(expected, abs=1e-7)  # some are of float32


def test_a_failure_is_an_error_and_no_number(adapter, store):
    prose = {"reply": lambda request: "no score at all", "schema_support": "ignored"}
    fails = pytest.raises(ERRORS, match="no reward for .*parse_failure")
    with FakeServer(**prose) as server, fails:
        adapter("viescore", FLOATS, PROMPTS, **at(server))


def beyond(share, value):
    """FLOATS whose white has moved to `value` in a share of the first picture's values."""
    moved = FLOATS.clone()
    count = round(share * moved[0].numel())
    moved[0].view(-1)[:count] = value
    return moved


RANGES = {
    "0 to 1": (FLOATS, None),
    "uint8": (torch.tensor(PIXELS).permute(0, 3, 1, 2), None),
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


def require_range(adapter, batch, refused):
    if refused is None:
        assert len(adapter("sharpness", batch, PROMPTS)) == 2
        return
    with pytest.raises(ERRORS, match=refused):
        adapter("sharpness", batch, PROMPTS)


ranges = pytest.mark.parametrize(("batch", "refused"), RANGES.values(), ids=RANGES)


@ranges
def test_a_range_is_right_or_refused(adapter, batch, refused):
    require_range(adapter, batch, refused)


@ranges
def test_a_range_of_sources_is_right_or_refused(batch, refused):
    def flow_grpo_sources(judge, sources, prompts):
        return judge_reward("ssim")("cpu")(PIXELS, prompts, ref_images=sources)[0]

    require_range(flow_grpo_sources, batch, refused)
