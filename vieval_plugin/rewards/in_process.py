"""Rewards in a trainer's own process: judges that are open there, and open again where they are sent or forked to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vieval_plugin import config
from vieval_plugin.api.conversion import Format, GivenImage, image, in_threads
from vieval_plugin.api.judge import Judge
from vieval_plugin.judges.protocol import Sample
from vieval_plugin.rewards.pixels import pictures
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
        self, prompts: Iterable[str], outputs: Iterable[GivenImage], images: Iterable[Iterable[GivenImage]] = ()
    ) -> list[Sample]:
        """The samples of a batch.

        Args:
            prompts: a text an output.
            outputs: what was generated, as `pictures` takes a batch.
            images: for each output the images that were given with its prompt, likewise; none at all where none were.

        Raises:
            VievalError: they are not as many, or one is no image.
        """
        texts = list(prompts)
        generated = pictures(outputs)
        references = [pictures(given) for given in images] or [[]] * len(generated)
        require_equally_many(texts, generated, references)

        def sample(number: int) -> Sample:
            pixels = (generated[number], *references[number])
            output, *conditions = [image(picture, self.image_format) for picture in pixels]
            return sample_of(number, texts[number], output, conditions, self.conditions)

        return in_threads(sample, len(generated))

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
