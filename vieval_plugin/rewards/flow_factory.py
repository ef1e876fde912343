"""Reward models for Flow-Factory that use a VIEval judge. Requires Flow-Factory.

`reward_model: vieval_plugin.rewards.flow_factory.JudgeRewardModel`, with `judge`,
`model`, `base_url` and other arguments of `Judge`. Flow-Factory silently ignores other
classes, so these inherit from its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flow_factory.rewards import (
    GroupwiseRewardModel,
    PointwiseRewardModel,
    RewardModelOutput,
)

from vieval_plugin.rewards.in_process import OpenReward, numbers, open_reward
from vieval_plugin.rewards.reward import RewardValue, imputed
from vieval_plugin.rewards.samples import Conditions
from vieval_plugin.text.errors import VievalError

_OPTIONS = (
    "model",
    "base_url",
    "setting",
    "scorer",
    "options",
    "on_failure",
    "num_concurrent",
    "timeout",
    "patience",
    "temperature",
)


class _Opened:
    """A reward that its configuration names."""

    required_fields = ("prompt", "image")
    use_tensor_inputs = False

    def __init__(self, config: Any, accelerator: Any) -> None:
        super().__init__(config, accelerator)  # type: ignore[call-arg]  # of the class beside it
        self.reward = _opened(config)

    def __call__(
        self,
        prompt: Sequence[str],
        image: Any = None,
        video: Any = None,
        condition_images: Any = None,
        **unused: Any,
    ) -> Any:
        """The rewards of a batch or group; VievalError where an image has none."""
        if video:
            raise VievalError("videos are not supported; generate images")
        images = () if image is None else image
        conditions = () if condition_images is None else condition_images
        samples = self.reward.samples(prompt, images, conditions)
        values = self.impute(self.reward.values(samples))
        positions = [number for number, value in enumerate(values) if value.imputed]
        return RewardModelOutput(
            rewards=numbers(values),
            extra_info={"imputed": positions} if positions else None,
        )

    def impute(self, values: list[RewardValue]) -> list[RewardValue]:
        """The values, with those of failed images filled where the reward does so."""
        return values


class JudgeRewardModel(_Opened, PointwiseRewardModel):  # type: ignore[misc]  # of a package without types
    """The score of a judge, an image at a time."""


class JudgeGroupRewardModel(_Opened, GroupwiseRewardModel):  # type: ignore[misc]  # of a package without types
    """The score of a judge, or the share of wins of one that compares, for all images of a prompt
    together.

    `on_failure: neutral` in its configuration gives a failed image the mean of the others, up to
    `max_imputed` of a group.
    """

    def __init__(self, config: Any, accelerator: Any) -> None:
        super().__init__(config, accelerator)
        self.neutral = _setting(config, "on_failure") == "neutral"
        max_imputed = _setting(config, "max_imputed")
        self.max_imputed = 0.1 if max_imputed is None else float(max_imputed)

    def impute(self, values: list[RewardValue]) -> list[RewardValue]:
        return imputed(values, self.max_imputed) if self.neutral else values


def _opened(config: Any) -> OpenReward:
    """The reward that a configuration names, and the arguments of its judges."""
    settings = {name: _setting(config, name) for name in _OPTIONS}
    roles = _setting(config, "role") or "source"
    roles = (roles,) if isinstance(roles, str) else tuple(roles)
    conditions = Conditions(_setting(config, "kind") or "", roles)
    arguments = {name: value for name, value in settings.items() if value is not None}
    definition = _setting(config, "judge")
    if not definition:
        raise VievalError(
            "the reward has no judge; set `judge: JUDGE` or `judge: JUDGE:ASPECT` next to "
            "reward_model"
        )
    return open_reward(
        str(definition),
        conditions,
        int(_setting(config, "attempts") or 3),
        **arguments,
    )


def _setting(config: Any, name: str) -> Any:
    """A setting of a reward's configuration, in any of the ways that Flow-Factory
    versions store extra settings.
    """
    for attribute in ("extra_kwargs", "reward_model_kwargs"):
        settings = getattr(config, attribute, None) or {}
        if name in settings:
            return settings[name]
    return getattr(config, name, None)
