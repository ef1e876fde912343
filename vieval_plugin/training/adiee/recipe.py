"""What a training is made by: everything that is chosen, and what of it is drawn at which step.

What happens at a step follows from its number and the seed alone, so that a training that was killed goes on as if it had
not been.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from vieval_plugin.judges.adiee.question import Images
from vieval_plugin.training.adiee.labels import LabelledEdit
from vieval_plugin.training.adiee.network import Tune

Answer: TypeAlias = Literal["token", "number"]
SCORE_WEIGHT = 10.0
"""What the score's L1 counts against the text's cross-entropy; the paper's."""


@dataclass(frozen=True)
class Recipe:
    """How a model is trained.

    With the answer `number` neither token nor head is there and the model learns to say a whole number from 0 to 10: the
    paper's ablation. An optimisation step sees `batch_size` edits `accumulate` times, in each process. `held_out` is the
    share of groups that is kept for measuring.
    """

    base: str
    tuning: Tune = "lora"
    answer: Answer = "token"
    images: Images = "two"
    pack: str = "adiee/v1"
    steps: int = 1000
    batch_size: int = 8
    accumulate: int = 1
    learning_rate: float = 1e-4
    held_out: float = 0.05
    seed: int = 0

    def rate(self, step: int) -> float:
        """The learning rate at a step from 0 on: rising over the first 3% of the steps, then falling evenly.

        >>> [round(Recipe("", steps=100, learning_rate=1.0).rate(step), 2) for step in (0, 2, 50, 99)]
        [0.33, 1.0, 0.52, 0.01]
        """
        rising = max(1, math.ceil(0.03 * self.steps))
        return self.learning_rate * min((step + 1) / rising, (self.steps - step) / (self.steps - rising + 1))


def split(edits: Sequence[LabelledEdit], recipe: Recipe) -> tuple[list[LabelledEdit], list[LabelledEdit]]:
    """The edits to learn from and those held out, whole groups of them; by the seed and the group's name alone."""
    held = {edit.group for edit in edits if _share(f"held out/{recipe.seed}/{edit.group}") < recipe.held_out}
    return [edit for edit in edits if edit.group not in held], [edit for edit in edits if edit.group in held]


def order(count: int, begin: int, end: int, seed: int) -> list[int]:
    """Places `begin` to `end` in an endless row of numbers below `count`, each of them once before any comes again.

    >>> sorted(order(3, 3, 6, seed=1))
    [0, 1, 2]
    """
    found = []
    for place in range(begin, end):
        epoch, within = divmod(place, count)
        found.append(_shuffled(count, f"epoch/{seed}/{epoch}")[within])
    return found


_kept: dict[tuple[int, str], list[int]] = {}


def _shuffled(count: int, name: str) -> list[int]:
    if (count, name) not in _kept:
        _kept.clear()  # an epoch comes but once
        _kept[count, name] = random.Random(name).sample(range(count), count)
    return _kept[count, name]


def _share(name: str) -> float:
    """A number in [0, 1) drawn for a name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") / 2**64
