"""Stand-ins that load and call a reward as trainers do, written anew from how they behave.

What was read, in November 2026, of trainers that install nowhere without a GPU: flow_grpo at
54809b5 (`rewards.py`), Flow-Factory at b9e47bc (`rewards/abc.py`), UniRL at 5852cb4
(`reward/remote.py`), and VeRL-Omni's newest `reward_manager/multi.py`, in which `required` ends a
run (at cd1d113 it did not yet). TRL and ms-swift are run.
"""

import inspect
import sys
import types
from operator import mul

import torch


def flow_grpo(score_functions, weights):
    """flow_grpo's sum of rewards: a factory that has `device` among its names is given one."""
    called = {}
    for name in weights:
        factory = score_functions[name]
        on = ("cpu",) if "device" in factory.__code__.co_varnames else ()
        called[name] = factory(*on)

    def score(images, prompts, metadata):
        details = {
            name: function(images, prompts, metadata)[0]
            for name, function in called.items()
        }
        rows = zip(*(details[name] for name in weights), strict=True)
        total = [sum(map(mul, weights.values(), row)) for row in rows]
        return {**details, "avg": total}, {}

    return score


async def verl_omni(function, image, prompt, entry, extra_info=None):
    """VeRL-Omni's reward manager: a failure is 0 unless the reward is required."""
    assert inspect.iscoroutinefunction(function)
    given = {"data_source": "d", "solution_image": image, "ground_truth": prompt}
    given |= {"extra_info": extra_info or {}, "reward_router_address": None}
    given |= {"reward_model_tokenizer": None, "model_name": "generator"}
    own = ("path", "name", "weight", "required")
    more = {name: value for name, value in entry.items() if name not in own}
    try:
        return float((await function(**given, **more))["score"])
    except Exception as error:
        if entry.get("required"):
            raise RuntimeError(f"Required sub-reward failed: {error}") from error
        return 0.0


def install_flow_factory(monkeypatch):
    """A package `flow_factory` with the bases that its registry and processor look for."""

    class Base:
        def __init__(self, config, accelerator):
            self.config, self.accelerator = config, accelerator

    class PointwiseRewardModel(Base):
        pass

    class GroupwiseRewardModel(Base):
        pass

    class RewardModelOutput:
        def __init__(self, rewards, extra_info=None):
            self.rewards, self.extra_info = rewards, extra_info

    rewards = types.ModuleType("flow_factory.rewards")
    for kind in (PointwiseRewardModel, GroupwiseRewardModel, RewardModelOutput):
        setattr(rewards, kind.__name__, kind)
    package = types.ModuleType("flow_factory")
    package.rewards = rewards
    monkeypatch.setitem(sys.modules, "flow_factory", package)
    monkeypatch.setitem(sys.modules, "flow_factory.rewards", rewards)
    module = "vieval_plugin.rewards.flow_factory"
    monkeypatch.delitem(sys.modules, module, raising=False)
    return rewards


def flow_factory(bases, path, config, batch):
    """Flow-Factory's processor: it calls models of its bases with the fields they name."""
    module, _, name = path.rpartition(".")
    __import__(module)
    model = getattr(sys.modules[module], name)(config, None)
    if not isinstance(model, (bases.PointwiseRewardModel, bases.GroupwiseRewardModel)):
        return None
    names = inspect.signature(model.__call__).parameters
    given = {n: v for n, v in batch.items() if n in names and v is not None}
    output = model(**given)
    return torch.as_tensor(getattr(output, "rewards", output), dtype=torch.float32)
