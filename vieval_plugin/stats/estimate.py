"""The `Estimate` type: a number with its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike

from vieval_plugin.stats.correlation import Floats

_MOST_OWNERS = 3
_ROUNDING = 1e-9


@dataclass(frozen=True)
class ImageModelCoverage:
    """The image models and parts that an average is over, of all that there are."""

    image_models: int = 0
    all_image_model_count: int = 0
    parts: int = 0
    all_part_count: int = 0
    #: Samples of the image models.
    samples: int = 0

    def __str__(self) -> str:
        """Return the basis of an average, in words; empty for all of the data."""
        if (self.image_models, self.parts) == (
            self.all_image_model_count,
            self.all_part_count,
        ):
            return ""
        parts = ""
        if self.all_part_count > 1:
            parts = f"{self.parts} of {self.all_part_count} task types, "
        return (
            f"{parts}{self.image_models} of {self.all_image_model_count} image models"
        )


@dataclass(frozen=True)
class Estimate:
    """A value with its 95% interval; an end that is 0 but for rounding is 0, in all that is decided
    and shown.

    >>> Estimate(0.1, -1e-11, 0.15).low
    0.0
    """

    #: The value, NaN where undefined.
    value: float
    #: Lower end of the interval, NaN where it has none.
    low: float = math.nan
    #: Upper end of the interval, NaN where it has none.
    high: float = math.nan
    #: Its values in the bootstrap, shape (resamples,), empty where it has none.
    resamples: Floats = field(
        default_factory=lambda: np.zeros(0), repr=False, compare=False
    )
    #: Number of samples that it is of.
    n: int = 0
    #: Why it, or a part of what it averages, is undefined; what a reason is of stands before it,
    #: with a colon.
    reasons: tuple[str, ...] = ()
    #: The parts that count as 0, in the same way.
    zeros: tuple[str, ...] = ()
    #: What an average rests on.
    coverage: ImageModelCoverage = field(default=ImageModelCoverage(), repr=False)

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            if abs(getattr(self, name)) < _ROUNDING:
                object.__setattr__(self, name, 0.0)

    @property
    def defined(self) -> bool:
        """False if the value is missing."""
        return not math.isnan(self.value)

    @property
    def has_interval(self) -> bool:
        """False without ends, where both are one number, and where the value lies outside of them.

        Resamples of items that are alike say nothing of chance, and those of few items may all lie
        to one side of the value.

        >>> Estimate(0.5, 0.4, 0.6).has_interval, Estimate(0.5).has_interval, Estimate(0.5, 0.5, 0.5).has_interval
        (True, False, False)
        >>> Estimate(0.81, 0.83, 0.99).has_interval
        False
        """
        has_width = not math.isclose(self.low, self.high, abs_tol=_ROUNDING)
        return has_width and self.low - _ROUNDING <= self.value <= self.high + _ROUNDING

    @property
    def negated(self) -> Estimate:
        """The same difference the other way round, without resamples."""
        return Estimate(
            value=0.0 - self.value,
            low=0.0 - self.high,
            high=0.0 - self.low,
        )

    def clipped(
        self,
        minimum: float,
        maximum: float,
    ) -> Estimate:
        """Return the same with value and ends inside a scale."""
        ends = np.array([self.value, self.low, self.high], dtype=float)
        value, low, high = np.clip(ends, minimum, maximum).tolist()
        return replace(
            self,
            value=value,
            low=low,
            high=high,
        )

    @property
    def sample_count(self) -> str:
        """Number of samples behind the value, of those with a score if these are more.

        >>> Estimate(0.5, n=9).sample_count
        '9'
        >>> Estimate(0.5, n=9, coverage=ImageModelCoverage(1, 2, 1, 1, samples=5)).sample_count
        '5 of 9'
        """
        samples = self.coverage.samples
        if 0 < samples < self.n:
            return f"{samples} of {self.n}"
        return str(self.n)

    @property
    def reason(self) -> str:
        """Reason why the value is missing, in brief; empty if it is defined."""
        if self.defined:
            return ""
        return because(self.reasons)


def because(reasons: Sequence[str]) -> str:
    """Reasons in brief, those that are alike together.

    Args:
        reasons: `whose: why` each, or `why` alone.

    >>> because(["SDEdit: all scores of the judge are equal", "Glide: all scores of the judge are equal", "no sample"])
    'all scores of the judge are equal: SDEdit, Glide; no sample'
    """
    owners: dict[str, list[str]] = {}
    for reason in reasons:
        owner, colon, why = reason.partition(": ")
        if colon:
            owners.setdefault(why, []).append(owner)
        else:
            owners.setdefault(reason, [])
    texts = []
    for why, names in owners.items():
        text = why
        if names:
            text += f": {', '.join(names[:_MOST_OWNERS])}"
        if len(names) > _MOST_OWNERS:
            text += ", ..."
        texts.append(text)
    return "; ".join(texts)


def total(
    values: ArrayLike,
    population: int,
    level: float = 0.95,
) -> Estimate:
    """The total of non-negative values over a population, from those of a random part of it.

    Args:
        values: those of the part, drawn without replacement, shape (n,), each >= 0.
        population: the number of all, at least n.
        level: the share of such intervals that hold the total, in (0, 1); right as far as means of
            n values are normal.

    Returns:
        The estimate and its interval by Student's t, never below the sum of the sample; exact where
        that is all, and an interval of NaN for a single value of several. NaN where a value is.

    Raises:
        ValueError: without values, or for a population smaller than they are.

    Source: Cochran 1977, Sampling Techniques, chapter 2 (simple random sampling, with its finite
    population correction).

    >>> everything = total([2, 2, 2], 100)
    >>> everything.value, everything.low, everything.high
    (200.0, 200.0, 200.0)
    >>> part = total([1.0, 3.0], 10)
    >>> part.value, part.low, round(part.high, 2)
    (20.0, 4.0, 133.65)
    """
    sample = np.asarray(values, dtype=float).reshape(-1)
    n = len(sample)
    if n == 0 or population < n:
        raise ValueError(
            f"`values` must have 1 to {population} entries (the population), got {n}"
        )
    sample_total = float(sample.sum())
    estimate = float(sample.mean()) * population
    if n == population:
        return Estimate(
            value=sample_total,
            low=sample_total,
            high=sample_total,
        )
    if n == 1:
        return Estimate(estimate)
    deviation = float(sample.std(ddof=1))
    unseen_share = 1 - n / population
    error = population * deviation / math.sqrt(n) * math.sqrt(unseen_share)
    reach = error * float(scipy.stats.t.ppf((1 + level) / 2, n - 1))
    return Estimate(
        value=estimate,
        low=max(sample_total, estimate - reach),
        high=estimate + reach,
    )
