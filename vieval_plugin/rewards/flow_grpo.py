"""A judge as a reward of flow_grpo, and of others that score a batch of images in their own
process.

In flow_grpo's `rewards.py` add it to `score_functions`, which call it with a device::

    from vieval_plugin.rewards.flow_grpo import judge_reward

    score_functions = {
        ...,
        "judge": judge_reward("viescore", model="NAME", base_url="http://127.0.0.1:8000/v1"),
    }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from vieval_plugin.rewards.in_process import OpenReward, numbers, open_reward
from vieval_plugin.rewards.samples import Conditions


@dataclass(frozen=True)
class BatchReward:
    """A reward of batches. It can be pickled, and opens its judges again in another process."""

    #: The reward of each image.
    reward: OpenReward

    def __call__(
        self,
        images: Any,
        prompts: Sequence[str],
        metadata: Any = None,
        ref_images: Any = None,
    ) -> tuple[list[float], dict[str, Any]]:
        """The scores of a batch, and no further details.

        Args:
            images: (number, 3, height, width) of floats from 0 to 1, or (number, height, width, 3)
                of uint8.
            prompts: a text an image, also as an array.
            metadata: not used.
            ref_images: the sources of edits, one an image.

        Raises:
            VievalError: an image has no score, or the backbone is away: training is to stop, and
                not to learn from a 0.
        """
        sources = [] if ref_images is None else [[source] for source in ref_images]
        samples = self.reward.samples(
            map(str, prompts),
            images,
            sources,
        )
        return numbers(self.reward.values(samples)), {}


def judge_reward(
    reward: str,
    *,
    kind: str = "",
    roles: Sequence[str] = ("source",),
    attempts: int = 3,
    **judge: Any,
) -> Callable[[Any], BatchReward]:
    """A factory of a reward, which trainers call with the device of their model.

    Args:
        reward: `JUDGE`, `JUDGE:ASPECT` or a weighted sum of such.
        kind: that of all samples (default: an edit with a source, else `tig`).
        roles: what reference images are.
        attempts: how often a question is asked until its answer can be read.
        judge: further arguments of `Judge`, such as model and base_url.

    Raises:
        VievalError: there is no such judge, aspect or argument.
    """
    opened = open_reward(
        reward,
        Conditions(kind, tuple(roles)),
        attempts,
        **judge,
    )

    def factory(device: Any) -> BatchReward:
        del device  # the judge's model is elsewhere
        return BatchReward(opened)

    return factory
