"""What a training is made by: everything that is chosen, and what of it is drawn at which step.

What happens at a step follows from its number and the seed alone, so that a training that was killed goes on as if it had
not been.
"""

from __future__ import annotations

import math
import random
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from vieval_plugin.judges.adiee.question import Images
from vieval_plugin.training.tuning import Tuning

Answer: TypeAlias = Literal["token", "number"]
SCORE_WEIGHT = 10.0
"""What the score's L1 counts against the text's cross-entropy; the paper's."""


@dataclass(frozen=True)
class Recipe:
    """How a scorer of edits is trained.

    With the answer `number` neither token nor head is there and the model learns to say a whole number from 0 to 10: the
    paper's ablation.
    """

    tuning: Tuning
    answer: Answer = "token"
    images: Images = "two"
    pack: str = "adiee/v1"

    def options(self) -> dict[str, Any]:
        """All that was chosen, by name."""
        return {**asdict(self.tuning), "answer": self.answer, "images": self.images, "pack": self.pack}


def rate(tuning: Tuning, step: int) -> float:
    """The learning rate at a step from 0 on: rising over the first 3% of the steps, then falling evenly.

    >>> [round(rate(Tuning("", steps=100, learning_rate=1.0), step), 2) for step in (0, 2, 50, 99)]
    [0.33, 1.0, 0.52, 0.01]
    """
    rising = max(1, math.ceil(0.03 * tuning.steps))
    return tuning.learning_rate * min((step + 1) / rising, (tuning.steps - step) / (tuning.steps - rising + 1))


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
