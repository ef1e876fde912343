"""Non-inferiority test with a margin, robust to one additional failed prompt."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import scipy
from numpy.typing import ArrayLike

from vieval_plugin.stats.bootstrap import group_sums
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.decisions import (
    ADVISED_MARGIN,
    INTERVAL_REACH,
    ONE_SIDED_LEVEL,
    POWER,
    POWER_REACH,
)
from vieval_plugin.stats.estimate import Estimate

Decision: TypeAlias = Literal["not_worse", "worse", "undecided"]

MOST_ITEMS = 1_000_000


@dataclass(frozen=True)
class MeanOfDifferences:
    """The mean of differences of items (such as prompts), the new system less the old one."""

    #: The mean.
    value: float
    #: Its standard error.
    error: float
    #: Number of items.
    n: int
    #: The most that an item can fall: the whole scale of a score, one half of a win rate.
    fall: float = 1.0

    @classmethod
    def from_differences(
        cls,
        differences: ArrayLike,
        groups: Sequence[Hashable],
        fall: float = 1.0,
    ) -> MeanOfDifferences:
        """Return the mean of differences, shape (items,). Differences in one group,
        such as a prompt, count as one item.

        Source: Cochran 1977, Sampling Techniques, section 6.4 (a mean over clusters of unequal
        size); with one difference a group it is Student's standard error. NaN with fewer than two
        groups.
        """
        sums, sizes = group_sums(np.asarray(differences, dtype=float), groups)
        n = len(sums)
        total = float(sizes.sum())
        if n < 2:
            only_value = math.nan
            if n:
                only_value = float(sums.sum()) / total
            return cls(
                value=only_value,
                error=math.nan,
                n=n,
                fall=fall,
            )
        value = float(sums.sum()) / total
        squares = float(((sums - value * sizes) ** 2).sum())
        error = math.sqrt(n / (n - 1) * squares) / total
        return cls(
            value=value,
            error=error,
            n=n,
            fall=fall,
        )

    @property
    def low(self) -> float:
        """Lower confidence limit used by the gate (Student's), with one additional
        difference of -fall.
        """
        return float(low_with_one_fall(self.value, self.error, self.n, self.fall))

    @property
    def plain_low(self) -> float:
        """The lower end of Student's 95% interval of these differences alone."""
        return 2 * self.value - self.high

    @property
    def high(self) -> float:
        """The upper end of Student's 95% interval of these differences alone."""
        if self.n > 1:
            t_quantile = scipy.stats.t.ppf(1 - ONE_SIDED_LEVEL, self.n - 1)
            return self.value + float(t_quantile) * self.error
        return math.nan

    def decision(self, margin: float) -> Decision:
        """Return what the two ends show for a margin from 0 on, in the unit of the differences.

        >>> MeanOfDifferences(0.0, 0.01, 200).decision(0.05), MeanOfDifferences(-0.1, 0.01, 200).decision(0.05)
        ('not_worse', 'worse')
        >>> MeanOfDifferences(0.0, 0.0, 20).decision(0.05)
        'undecided'
        """
        if self.low > -margin:
            return "not_worse"
        if self.high < -margin:
            return "worse"
        return "undecided"

    def items_needed(self, margin: float) -> float:
        """Number of items with which the gate decides in four of five cases, if mean
        and spread stay; infinite if none would.

        Accurate to two digits.
        """
        n = np.unique(np.geomspace(2, MOST_ITEMS, 2000).astype(int))
        error = self.error * np.sqrt(self.n / n)
        spare = error * scipy.stats.norm.ppf(POWER)
        low = low_with_one_fall(self.value, error, n, self.fall)
        passing = low - spare > -margin
        t_quantile = scipy.stats.t.ppf(1 - ONE_SIDED_LEVEL, n - 1)
        high = self.value + t_quantile * error
        failing = high + spare < -margin
        decided = np.flatnonzero(passing | failing)
        if len(decided):
            return float(n[decided[0]])
        return math.inf


def low_with_one_fall(
    value: ArrayLike,
    error: ArrayLike,
    n: ArrayLike,
    fall: float = 1.0,
) -> Floats:
    """Lower end of Student's one-sided interval of n differences and one more, of minus `fall`.

    n prompts can miss rare failures of a generator: with t alone a new generator of
    which 3% of the prompts fall by .6 passes at a margin of its own loss in 14% of
    trials of 20 prompts. One bad prompt more than was seen keeps it at 5% at most
    (`bench/gate.py`).

    Args:
        value: mean of the differences.
        error: its standard error, of the same shape.
        n: number of differences, from 1.
        fall: the most that a difference can fall.

    Source: Student's t; the added item is that of `bench/gate.py`, whose docstring has the numbers.
    """
    value = np.asarray(value, dtype=float)
    error = np.asarray(error, dtype=float)
    n = np.asarray(n, dtype=float)
    fall_square = n / (n + 1) * (value + fall) ** 2
    squares = (n - 1) * n * error**2 + fall_square
    mean = (n * value - fall) / (n + 1)
    reach = scipy.stats.t.ppf(1 - ONE_SIDED_LEVEL, n)
    variance = squares / n / (n + 1)
    return np.asarray(mean - reach * np.sqrt(variance))


def fewest_items(margin: float, fall: float = 1.0) -> float:
    """Fewest items with which equal systems, which differ on none of them, could pass; infinite for
    a margin of 0.

    >>> [fewest_items(margin) for margin in (0.05, 0.02, 0.01)]
    [60.0, 148.0, 296.0]
    """
    if margin <= 0:
        return math.inf
    # 15: above 1 + t of one degree of freedom
    most_items = math.ceil(15 * fall / margin) + 1
    n = np.arange(1, most_items + 1)
    is_enough = low_with_one_fall(0.0, 0.0, n, fall) > -margin
    return float(n[np.argmax(is_enough)])


def more_failures_p(more: int, fewer: int) -> float:
    """The one-sided p that the new system fails more often, by the items on which one of the two
    fails and the other does not.

    Args:
        more: items on which the new one alone fails.
        fewer: items on which the old one alone fails.

    Source: McNemar 1947, Note on the sampling error of the difference between correlated
    proportions; exact, by the binomial distribution.

    >>> more_failures_p(6, 0), more_failures_p(2, 2)
    (0.015625, 0.6875)
    """
    return float(scipy.stats.binom.sf(more - 1, more + fewer, 0.5))


def control_change(own: ArrayLike, spoilt: ArrayLike) -> Estimate:
    """Mean change of scores from images of a build to the same images spoilt, with Student's 95%
    interval.

    Args:
        own: scores of the build, shape (prompts,), two or more.
        spoilt: scores of its spoilt images on the same prompts, same shape.

    Source: ICH E10 2000, Choice of Control Group, section 1.5 (assay sensitivity): a trial that
    finds no difference must have been able to find one.

    >>> change = control_change([0.8, 0.9, 0.7], [0.1, 0.3, 0.1])
    >>> round(change.value, 3), change.high < -0.05
    (-0.633, True)
    """
    changes = np.asarray(spoilt, dtype=float) - np.asarray(own, dtype=float)
    mean = MeanOfDifferences.from_differences(changes, range(len(changes)))
    low = 2 * mean.value - mean.high
    return Estimate(
        value=mean.value,
        low=low,
        high=mean.high,
        n=len(changes),
    )


def exact_share(successes: int, n: int) -> Estimate:
    """Share with its exact 95% interval.

    Source: Clopper and Pearson 1934, The use of confidence or fiducial limits illustrated in the
    case of the binomial.

    >>> share = exact_share(17, 20)
    >>> round(share.low, 3), round(share.high, 3)
    (0.621, 0.968)
    """
    quantile = scipy.stats.beta.ppf
    failures = n - successes
    low = 0.0
    if successes:
        low = float(quantile(ONE_SIDED_LEVEL, successes, failures + 1))
    high = 1.0
    if successes < n:
        high = float(quantile(1 - ONE_SIDED_LEVEL, successes + 1, failures))
    return Estimate(
        value=successes / n,
        low=low,
        high=high,
        n=n,
    )


def prompts_for_margin(spread: float, margin: float = ADVISED_MARGIN) -> float:
    """Number of prompts with which four of five pairs of equal generators pass a gate, to two
    digits; infinite if none.

    Args:
        spread: standard deviation of the differences of prompts.
        margin: of the gate.

    >>> prompts_for_margin(0.3), prompts_for_margin(0.2)
    (330.0, 180.0)
    """
    difference = MeanOfDifferences(value=0.0, error=spread, n=1)
    needed = difference.items_needed(margin)
    if math.isinf(needed):
        return needed
    return round(needed, 1 - math.floor(math.log10(needed)))


def smallest_difference(spread: float, prompts: int) -> float:
    """Smallest difference of means that `prompts` prompts detect in four of five cases.

    >>> round(smallest_difference(0.3, 200), 3)
    0.059
    """
    return (INTERVAL_REACH + POWER_REACH) * spread / math.sqrt(prompts)
