"""A number with what is known of how sure it is: the one type for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from vieval_plugin.stats.correlation import Floats

_NAMED = 3
_ROUNDING = 1e-9


@dataclass(frozen=True)
class ImageModelCoverage:
    """The image models with a value of all that there are, and the parts."""

    image_models: int = 0
    all_image_model_count: int = 0
    parts: int = 0
    all_part_count: int = 0

    def __str__(self) -> str:
        """Return what an average rests on, in words; empty where it is everything."""
        if (self.image_models, self.parts) == (self.all_image_model_count, self.all_part_count):
            return ""
        parts = f"{self.parts} of {self.all_part_count} task types, " if self.all_part_count > 1 else ""
        return f"{parts}{self.image_models} of {self.all_image_model_count} image models"


@dataclass(frozen=True)
class Estimate:
    """A value with its 95% interval, NaN where undefined; the ends are NaN too where it has no interval.

    `resamples` are its values in the bootstrap, shape (resamples,), empty where it has none; `n` is how many samples it
    is of. `reasons` say why it, or a part of what it averages, is undefined, as `whose: why` or `why` alone; `zeros` name
    the parts that count as 0 in the same way. `coverage` is what an average rests on.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    resamples: Floats = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)
    n: int = 0
    reasons: tuple[str, ...] = ()
    zeros: tuple[str, ...] = ()
    coverage: ImageModelCoverage = field(default=ImageModelCoverage(), repr=False)

    @property
    def defined(self) -> bool:
        """False where there is no value."""
        return not math.isnan(self.value)

    @property
    def has_interval(self) -> bool:
        """False without ends, and where both are one number: resamples of items that are alike say nothing of chance.

        >>> Estimate(0.5, 0.4, 0.6).has_interval, Estimate(0.5).has_interval, Estimate(0.5, 0.5, 0.5).has_interval
        (True, False, False)
        """
        return not math.isnan(self.low) and not math.isclose(self.low, self.high, abs_tol=_ROUNDING)

    @property
    def negated(self) -> Estimate:
        """The same difference the other way round, without resamples."""
        return Estimate(-self.value, -self.high, -self.low)

    def within(self, least: float, most: float) -> Estimate:
        """Return the same with value and ends inside a scale."""
        value, low, high = (float(np.clip(end, least, most)) for end in (self.value, self.low, self.high))
        return replace(self, value=value, low=low, high=high)

    @property
    def reason(self) -> str:
        """Why there is no value, in brief; empty where there is one."""
        return "" if self.defined else because(self.reasons)


def because(reasons: Sequence[str]) -> str:
    """Reasons in brief, those that are alike together.

    Args:
        reasons: `whose: why` each, or `why` alone.

    >>> because(["SDEdit: the judge is constant", "Glide: the judge is constant", "no sample"])
    'the judge is constant: SDEdit, Glide; no sample'
    """
    owners: dict[str, list[str]] = {}
    for reason in reasons:
        owner, colon, why = reason.partition(": ")
        owners.setdefault(why if colon else reason, []).extend([owner] if colon else [])
    return "; ".join(
        f"{why}{': ' * bool(named)}{', '.join(named[:_NAMED])}{', ...' * (len(named) > _NAMED)}"
        for why, named in owners.items()
    )
