"""Rewards in a trainer's own process: judges that are open there, and open again where they are sent or forked to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vieval_plugin import config
from vieval_plugin.api.conversion import Format, GivenImage, image, in_threads
from vieval_plugin.api.judge import Judge
from vieval_plugin.judges.protocol import Sample
from vieval_plugin.rewards.reward import (
    Reward,
    RewardValue,
    failure_message,
    read_terms,
    require_a_score_each,
    reward_values,
)
from vieval_plugin.rewards.samples import PLAIN, Conditions, require_equally_many, sample_of
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.text.errors import VievalError

_BATCH_AXES = 4


@dataclass(frozen=True)
class OpenReward:
    """A reward whose judges are open."""

    #: The reward as its user wrote it.
    definition: str
    #: Its judges by name.
    judges: Mapping[str, Judge] = field(repr=False)
    #: Meaning of images that come beside an output.
    conditions: Conditions = PLAIN
    #: Format that pixels are written in for a judge.
    image_format: Format = "png"

    @property
    def reward(self) -> Reward:
        """The reward with its judges, made ready anew as they cannot be pickled."""
        return Reward("reward", read_terms(self.definition, lambda name: self.judges[name].prepared))

    def samples(
        self, prompts: Iterable[str], outputs: Iterable[GivenImage], images: Sequence[Sequence[GivenImage]] = ()
    ) -> list[Sample]:
        """The samples of a batch.

        Args:
            prompts: a text an output.
            outputs: what was generated, each anything that `Judge` takes for an image.
            images: for each output the images that were given with its prompt; none at all where none were.

        Raises:
            VievalError: they are not as many, or one is no image.
        """
        texts, pictures = list(prompts), list(outputs)
        references = list(images) or [()] * len(pictures)
        require_equally_many(texts, pictures, references)

        def sample(number: int) -> Sample:
            pixels = (pictures[number], *references[number])
            output, *conditions = [image(picture, self.image_format) for picture in pixels]
            return sample_of(number, texts[number], output, conditions, self.conditions)

        return in_threads(sample, len(pictures))

    def values(self, samples: Sequence[Sample]) -> list[RewardValue]:
        """The reward of each sample, or why it has none; all are of one group where the reward compares them.

        Raises:
            VievalError: the backbone is away.
        """
        reward = self.reward
        verdicts = [self._judge(term.judge)(term.to_judge(samples)) for term in reward.terms]
        return reward_values(reward, len(samples), verdicts)

    async def values_async(self, samples: Sequence[Sample]) -> list[RewardValue]:
        """`values` for a running event loop."""
        reward = self.reward
        judging = [self._judge(term.judge).judge_async(term.to_judge(samples)) for term in reward.terms]
        return reward_values(reward, len(samples), await asyncio.gather(*judging))

    def _judge(self, prepared: PreparedJudge) -> Judge:
        return next(judge for judge in self.judges.values() if judge.prepared is prepared)


def open_reward(definition: str, conditions: Conditions = PLAIN, attempts: int = 3, **judge: Any) -> OpenReward:
    """Open the judges of a reward.

    Args:
        definition: `JUDGE`, `JUDGE:ASPECT`, or a sum such as `0.7*viescore:SC+0.3*sharpness`.
        conditions: what images beside an output mean.
        attempts: how often a question is asked until its answer can be read.
        judge: further arguments of `Judge`, such as model and base_url; `options` may also be the path of a file, and
            `on_failure` is `neutral` where the trainer gets the mean of a group for a member that failed.

    Raises:
        VievalError: there is no such judge, aspect or argument, or it may fail on a sample that is complete.
    """
    judges: dict[str, Judge] = {}
    is_neutral = judge.pop("on_failure", "") == "neutral"
    if isinstance(file := judge.get("options"), str):
        judge["options"] = config.read(file)

    def opened(name: str) -> PreparedJudge:
        if name not in judges:
            judges[name] = Judge(name, attempts=attempts, **judge)
        return judges[name].prepared

    terms = read_terms(definition, opened)
    if not is_neutral:
        require_a_score_each(terms)
    return OpenReward(definition, judges, conditions, judge.get("image_format", "png"))


def numbers(values: Sequence[RewardValue]) -> list[float]:
    """The rewards as numbers; VievalError where some have none, as no number stands for a failure."""
    if message := failure_message(values):
        raise VievalError(message)
    return [value.value for value in values if value.value is not None]


def pictures(batch: Any) -> list[Any]:
    """The pictures of a batch.

    Tensors and arrays may be (number, 3, height, width) or (number, height, width, 3), floats from 0 to 1 or uint8; floats
    a little outside are cut off, as trainers do. Anything else, such as a list of pictures of Pillow, is taken as it is.

    Raises:
        VievalError: a tensor or array of another shape.
    """
    if isinstance(batch, (list, tuple)):
        return [picture for item in batch for picture in (pictures(item[None]) if _is_array(item) else [item])]
    if not _is_array(batch):
        return list(batch)
    if hasattr(batch, "detach"):
        batch = (batch.detach().float() if batch.is_floating_point() else batch.detach()).cpu()
    array = np.asarray(batch)
    if array.ndim != _BATCH_AXES or 3 not in (array.shape[1], array.shape[-1]):
        raise VievalError(f"images of shape {tuple(array.shape)} are no batch; pass (number, 3, height, width)")
    if array.shape[-1] != 3:
        array = array.transpose(0, 2, 3, 1)
    return list(array if array.dtype == np.uint8 else array.clip(0, 1))


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "ndim")
