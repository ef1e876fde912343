"""Compute rewards inside the trainer process. Judges are reopened after pickling or
forking.

Pixels are clipped where a generator's rounding or its decoder's overshoot explains
values beyond 0 and 1. Any other range is left as it is, so that
`vieval_plugin.api.conversion.image` raises the same error as `Judge.score`.
"""

from __future__ import annotations

import asyncio
import atexit
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vieval_plugin import config
from vieval_plugin.api.conversion import Format, GivenImage, convert_in_threads, image
from vieval_plugin.api.judge import Judge
from vieval_plugin.judges.arguments import require_several
from vieval_plugin.judges.protocol import Sample
from vieval_plugin.rewards.reward import (
    Reward,
    RewardValue,
    failure_message,
    read_terms,
    require_a_score_each,
    reward_values,
)
from vieval_plugin.rewards.samples import (
    PLAIN,
    Conditions,
    require_equally_many,
    sample_of,
)
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import say
from vieval_plugin.text.wording import plural

_AXES = 3
_CHANNELS = 3
_ROUNDING = 0.02  # beyond 0 and 1, which is clipped in silence
_OVERSHOOT = 0.5  # beyond 0 and 1, which a decoder does not exceed
_OVERSHOOT_SHARE = 0.01  # of a picture's values


@dataclass(frozen=True)
class OpenReward:
    """A reward whose judges are open."""

    #: The reward as its user wrote it.
    definition: str
    judges: Mapping[str, Judge] = field(repr=False)
    #: Meaning of images that come beside an output.
    conditions: Conditions = PLAIN
    #: Format that pixels are written in for a judge.
    image_format: Format = "png"

    @property
    def reward(self) -> Reward:
        """The reward with its judges, built again because they cannot be pickled."""
        terms = read_terms(self.definition, lambda name: self.judges[name].prepared)
        return Reward("reward", terms)

    def samples(
        self,
        prompts: Iterable[str],
        outputs: Iterable[GivenImage],
        images: Iterable[Iterable[GivenImage]] = (),
    ) -> list[Sample]:
        """The samples of a batch.

        Args:
            prompts: one prompt per output.
            outputs: what was generated, as `pictures` takes a batch.
            images: for each output the images that were given with its prompt,
                likewise; empty without condition images.

        Raises:
            VievalError: the lengths differ, or an item is not an image.
        """
        texts = list(prompts)
        generated = pictures(outputs)
        references = [*map(pictures, images)] or [[]] * len(generated)
        require_equally_many(texts, generated, references)

        def sample(number: int) -> Sample:
            pixels = (generated[number], *references[number])
            output, *given = [image(picture, self.image_format) for picture in pixels]
            return sample_of(
                number,
                texts[number],
                output,
                given,
                self.conditions,
            )

        return convert_in_threads(sample, len(generated))

    def values(self, samples: Sequence[Sample]) -> list[RewardValue]:
        """The reward of each sample, or why it has none; all are of one group where the reward
        compares them.

        Raises:
            VievalError: the backbone cannot be reached.
        """
        reward = self.reward
        verdicts = [
            self._judge(term.judge)(term.to_judge(samples)) for term in reward.terms
        ]
        return reward_values(reward, len(samples), verdicts)

    async def values_async(self, samples: Sequence[Sample]) -> list[RewardValue]:
        """`values` for a running event loop."""
        reward = self.reward
        judging = [
            self._judge(term.judge).judge_async(term.to_judge(samples))
            for term in reward.terms
        ]
        return reward_values(
            reward,
            len(samples),
            await asyncio.gather(*judging),
        )

    def _judge(self, prepared: PreparedJudge) -> Judge:
        judges = self.judges.values()
        return next(judge for judge in judges if judge.prepared is prepared)


def open_reward(
    definition: str,
    conditions: Conditions = PLAIN,
    attempts: int = 3,
    **judge: Any,
) -> OpenReward:
    """Open the judges of a reward.

    Args:
        definition: `JUDGE`, `JUDGE:ASPECT`, or a sum such as `0.7*viescore:SC+0.3*sharpness`.
        conditions: what images beside an output mean.
        attempts: how often a question is asked until its answer can be read.
        judge: further arguments of `Judge`, such as model and base_url; `options` may also be the
            path of a file, and `on_failure` is `neutral` where the trainer gets the mean of a group
            for a member that failed.

    Raises:
        VievalError: a judge, aspect or argument is unknown, or the judge can fail on a
            complete sample.
    """
    judges = {}
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
    return OpenReward(
        definition,
        judges,
        conditions,
        judge.get("image_format", "png"),
    )


def numbers(values: Sequence[RewardValue]) -> list[float]:
    """The rewards as numbers; VievalError where some have none, as no number stands for a
    failure.
    """
    if message := failure_message(values):
        raise VievalError(message)
    return [value.value for value in values if value.value is not None]


@dataclass
class ClippedPictures:
    """Count of the pictures of this process whose overshoot was clipped, printed when the
    process ends.
    """

    #: Pictures of floats.
    pictures: int = 0
    #: Those that were clipped.
    clipped: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count(self, is_clipped: bool) -> None:
        """Count a picture."""
        with self._lock:
            if is_clipped and not self.clipped:
                atexit.register(self._say)
            self.pictures += 1
            self.clipped += is_clipped

    def line(self) -> str:
        """The line for the user."""
        clipped = f"{self.clipped:,} of {plural(self.pictures, 'image')}"
        return (
            f"vieval: clipped {clipped} to the range 0 to 1; in each, less than "
            f"{_OVERSHOOT_SHARE:.0%} of the values were more than {_ROUNDING} outside it"
        )

    def _say(self) -> None:
        say(self.line(), file=sys.stderr)


CLIPPED = ClippedPictures()


def pictures(batch: Any) -> list[Any]:
    """The pictures of a batch.

    Args:
        batch: a tensor or array (number, 3, height, width) or (number, height, width, 3), of floats
            from 0 to 1 or uint8, or a list of such pictures, of Pillow's pictures, paths or bytes.

    Raises:
        VievalError: a tensor or array has another shape, or holds several pictures where one is
            meant.
    """
    if not _is_array(batch):
        require_several(
            batch,
            "images",
            "a list of images, or a tensor (number, 3, height, width)",
        )
        return [_picture(item) for item in batch]
    array = _to_array(batch)
    if array.ndim <= _AXES:
        raise VievalError(
            f"images must have the shape (number, 3, height, width), got {tuple(array.shape)}"
        )
    return [_picture(item) for item in array]


def _picture(value: Any) -> Any:
    """A picture as `Judge` takes it; what is neither a tensor nor an array is returned as it is."""
    if not _is_array(value):
        return value
    array = _to_array(value)
    if array.ndim == _AXES + 1:
        if len(array) != 1:
            raise VievalError(
                f"each prompt must have one image, got {len(array)}; pass a prompt for each image"
            )
        array = array[0]
    if array.ndim != _AXES or _CHANNELS not in (array.shape[0], array.shape[-1]):
        raise VievalError(
            f"an image must have the shape (3, height, width), got {tuple(array.shape)}"
        )
    if array.shape[-1] != _CHANNELS:
        array = array.transpose(1, 2, 0)
    return _clip_overshoot(array) if array.dtype.kind == "f" else array


def _clip_overshoot(array: NDArray[Any]) -> NDArray[Any]:
    """Pixels from 0 to 1; as they are where rounding and overshoot do not explain those beyond."""
    outside = (array < -_ROUNDING) | (array > 1 + _ROUNDING)
    is_within_overshoot = array.min() >= -_OVERSHOOT and array.max() <= 1 + _OVERSHOOT
    if not is_within_overshoot or outside.mean() >= _OVERSHOOT_SHARE:
        return array
    CLIPPED.count(bool(outside.any()))
    return array.clip(0, 1)


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "ndim")


def _to_array(value: Any) -> NDArray[Any]:
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if value.is_floating_point():  # numpy has no bfloat16
            value = value.float()
    return np.asarray(value)
