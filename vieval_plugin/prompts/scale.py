"""Forms of a pack's questions and answers, and how the numbers of answers become scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

Combination: TypeAlias = Literal["min", "mean", "product", "geometric_mean"]
#: Place of a question's images: before its text or after it.
Order: TypeAlias = Literal["images_first", "text_first"]


@dataclass(frozen=True)
class Scale:
    """Mapping of a number to a score in [0, 1] that is better the higher it is.

    >>> Scale("linear", 0, 8)(6), Scale("linear", 0, 8, "lower")(6)
    (0.75, 0.25)
    >>> Scale("sigmoid", 0, 1)(0)
    0.5
    """

    #: `linear`: from 0 at `low` to 1 at `high`, and no further, so that numbers beyond are alike;
    #: `sigmoid`: no two are.
    kind: Literal["linear", "sigmoid"]
    #: Number of the score 0, of a sigmoid that of a half.
    low: float
    #: Number of the score 1, of a sigmoid that of 0.73.
    high: float
    #: With `lower`, less is better.
    better: Literal["higher", "lower"] = "higher"

    def __call__(self, value: float) -> float:
        position = (value - self.low) / (self.high - self.low)
        if self.better == "lower":
            position = 1 - position if self.kind == "linear" else -position
        if self.kind == "linear":
            return min(max(position, 0.0), 1.0)
        # the same either way, and neither overflows
        if position >= 0:
            return 1 / (1 + math.exp(-position))
        return math.exp(position) / (1 + math.exp(position))
