"""Paired tests and intervals of two systems on what both of them have scores of.

The two may be judges. Two generators whose images of the same prompts one judge scored are
compared by `MeanDifference` in the same way: an item is a prompt's score, and its group is the
prompt.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vieval_plugin.stats.bootstrap import (
    RESAMPLES,
    Ints,
    Seed,
    cluster_counts,
    factorize,
    group_sums,
    interval,
    seed_tuple,
)
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.decisions import SIGNIFICANCE_LEVEL
from vieval_plugin.stats.estimate import Estimate

Bools: TypeAlias = NDArray[np.bool_]

#: The most swaps of a pair's permutation test, and the exceedances at which it stops.
PERMUTATIONS = 10_000
EXCEEDANCES = 100
_REACH_IN_DEVIATIONS = 1.959964  # of a 95% interval to either side
# the test has p > SIGNIFICANCE_LEVEL just where it stops among so many swaps
_SWAPS_OF_INTERVAL = math.ceil(EXCEEDANCES / SIGNIFICANCE_LEVEL) - 1

_FIRST_BLOCK_SIZE = 64
# bounds the memory of what is drawn at once: 16 MB an array of doubles
_CELLS_AT_ONCE = 2_000_000
# differences that are equal but for rounding are equal: a share of the statistic's own scale
_ROUNDING = 1e-10


def independent_p(first: Estimate, second: Estimate) -> float:
    """The two-sided p-value of the difference of two estimates on different samples, from their 95%
    intervals.

    Source: Zou 2007, Toward using confidence intervals to compare correlations: the half-widths
    that face each other.

    Args:
        first: an estimate.
        second: another.

    Returns:
        In [0, 1]; NaN where one has no interval.

    >>> wide, narrow = Estimate(0.3, 0.0, 0.6), Estimate(0.5, 0.4, 0.6)
    >>> round(independent_p(wide, narrow), 2), round(independent_p(Estimate(0.1, 0.05, 0.15), narrow), 6)
    (0.22, 0.0)
    """
    low, high = sorted((first, second), key=lambda estimate: estimate.value)
    if not (low.has_interval and high.has_interval):
        return math.nan
    reach = math.hypot(low.high - low.value, high.value - high.low)
    if reach:
        deviations = _REACH_IN_DEVIATIONS * (high.value - low.value) / reach
        return math.erfc(deviations / math.sqrt(2))
    return math.nan


class PairedStatistic(Protocol):
    """A difference of two systems, first less second, as the test and the interval below need
    it.
    """

    units: int  # how many are swapped, each alone
    # of each group that the bootstrap resamples, shape (groups,): groups are drawn within their
    # stratum
    strata: Ints
    scale: float  # how large a difference may be: rounding is judged by it

    def estimates(self) -> tuple[float, float]:
        """Estimates of the first and of the second; NaN where undefined."""

    def swapped(self, swap: Bools) -> Floats:
        """The difference after each swap, shape (resamples,); `swap` says what changes sides,
        shape (resamples, units).
        """

    def resampled(self, counts: Ints) -> Floats:
        """The difference in each bootstrap resample, shape (resamples,), from counts of shape
        (resamples, groups).
        """


class PairedComparison(NamedTuple):
    """Both values, first less second, and the two-sided p-value in (0, 1]."""

    first: float
    second: float
    difference: Estimate
    p: float

    @property
    def turned(self) -> PairedComparison:
        """The same, second less first."""
        return PairedComparison(
            first=self.second,
            second=self.first,
            difference=self.difference.negated,
            p=self.p,
        )


def paired_comparison(
    statistic: PairedStatistic,
    resamples: int = RESAMPLES,
    seed: Seed = 0,
    intervals: bool = True,
) -> PairedComparison:
    """Two systems on the same samples or contests: difference, its interval, p of the permutation
    test.

    The interval of a difference of means is `sign_flip_interval`, which never contradicts p; of any
    other statistic it is the bootstrap's.

    Args:
        statistic: `MeanDifference`, `paired_correlations.CorrelationDifference` or another of that
            form.
        resamples: number of bootstrap resamples.
        seed: a number, or several that together are one; two systems with one seed have one stream,
            whoever else is there.
        intervals: False leaves out the difference's interval, which takes most of the time; its
            ends are NaN then.

    Returns:
        All numbers on the statistic's scale but p; NaN where an estimate is undefined.

    >>> paired_comparison(MeanDifference([1, 1, 1, 0], [0, 0, 1, 0], ["a", "a", "b", "c"]), resamples=100).difference.value
    0.5
    """
    first, second = statistic.estimates()
    means = unit_sums(statistic)
    if not intervals:
        ends = math.nan, math.nan
    elif means is None:
        ends = interval(resampled_differences(statistic, resamples, seed))
    else:
        ends = sign_flip_interval(*means, statistic.scale, seed)
    difference = Estimate(first - second, *ends)
    p = paired_permutation_p(statistic, seed)
    return PairedComparison(
        first=first,
        second=second,
        difference=difference,
        p=p,
    )


def sign_flip_interval(
    sums: Floats,
    items: Floats,
    scale: float,
    seed: Seed = 0,
) -> tuple[float, float]:
    """The 95% interval of a mean difference that belongs to its permutation test: all θ for which d
    − θ has p > .05.

    A swap divides the units into two halves, and the swapped difference of d − θ is as large as the
    observed one just where θ lies between the means of the two halves. So p falls in steps to
    either side of the mean difference, and the ends are order statistics of the halves' means: no θ
    is searched for. The swaps are those of `paired_permutation_p` for every θ: all up to 13 units,
    else the first 1,999, among which that test stops just where p > .05. So p is at most .05 if and
    only if 0 lies outside.

    Args:
        sums: the sum of each unit's differences, shape (units,).
        items: how many differences each unit has, or their weight, shape (units,).
        scale: as `PairedStatistic.scale`.
        seed: as for `paired_comparison`.

    Returns:
        The ends, on the differences' scale; NaN where one is infinite, as with fewer than 6 units,
        or without items.

    Source: Hartigan 1969, Using subsample values as typical values; Fisher 1935, The Design of
    Experiments, section 21.

    >>> low, high = sign_flip_interval(np.arange(1.0, 8.0), np.ones(7), 4.0)
    >>> round(low, 6), round(high, 6)
    (2.0, 6.0)
    """
    units = len(sums)
    total = items.sum()
    if not total:
        return math.nan, math.nan
    blocks = _swaps(units, _is_exact(units), _SWAPS_OF_INTERVAL, seed)
    columns = np.array([sums, items])
    halves_by_block = []
    for swap in blocks:
        halves_by_block.append(np.einsum("su,ku->ks", swap.astype(float), columns))
    half, count = np.concatenate(halves_by_block, axis=1)
    halves = np.array([half, sums.sum() - half])
    counts = np.array([count, total - count])
    # an empty half has no mean, and every θ is as extreme
    counts[counts < _ROUNDING * total] = np.nan
    slack = _ROUNDING * scale * total / 2 / counts
    rank = math.floor(SIGNIFICANCE_LEVEL * len(count))
    half_means = halves / counts
    lower_ends = (half_means - slack).min(axis=0)
    upper_ends = (half_means + slack).max(axis=0)
    low = np.sort(np.nan_to_num(lower_ends, nan=-np.inf))[rank]
    high = np.sort(np.nan_to_num(upper_ends, nan=np.inf))[-1 - rank]
    if np.isfinite([low, high]).all():
        return (float(low), float(high))
    return (math.nan, math.nan)


def paired_permutation_p(
    statistic: PairedStatistic,
    seed: Seed = 0,
    permutations: int = PERMUTATIONS,
    exceedances: int = EXCEEDANCES,
) -> float:
    """P-value of the paired permutation test, with as many permutations as the pair itself needs.

    If neither system is better, it does not matter which of the two gave which of a unit's scores.
    So each unit's are swapped with probability 1/2, and the difference is recomputed. A swap whose
    difference is undefined exceeds the observed one. Where all swaps are no more than
    `permutations`, each is taken once, and p is exact, whatever the seed. Else sampling stops at so
    many exceedances, as p is known well enough then: at 100, to a tenth of itself.

    Args:
        statistic: as for `compare`.
        seed: as for `compare`.
        permutations: the most swaps.
        exceedances: number of swaps with a difference as large as the observed one at which
            sampling stops.

    Returns:
        Two-sided p in (0, 1]: the share of all swaps, or `exceedances` over the swaps it took, else
        (1 + exceeding swaps) / (1 + `permutations`); NaN where the observed difference is
        undefined.

    Source: Noreen 1989, Computer-Intensive Methods (approximate randomization); Besag and Clifford
    1991, Sequential Monte Carlo p-values; Phipson and Smyth 2010 (the added 1).

    >>> paired_permutation_p(MeanDifference([1] * 8, [0] * 8, list("abcdefgh")))
    0.0078125
    """
    no_swap = np.zeros((1, statistic.units), dtype=bool)
    observed = statistic.swapped(no_swap)[0]
    if np.isnan(observed):
        return math.nan
    threshold = abs(observed) - _ROUNDING * statistic.scale
    is_exact = _is_exact(statistic.units, permutations)
    blocks = _swaps(statistic.units, is_exact, permutations, seed)
    exceeding = 0
    swaps = 0
    for swap in blocks:
        exceeds = np.flatnonzero(~(np.abs(statistic.swapped(swap)) < threshold))
        if exceeding + len(exceeds) >= exceedances and not is_exact:
            last_swap = int(exceeds[exceedances - exceeding - 1])
            return exceedances / (swaps + last_swap + 1)
        exceeding += len(exceeds)
        swaps += len(swap)
    if is_exact:
        return exceeding / swaps
    return (1 + exceeding) / (1 + permutations)


def _is_exact(units: int, permutations: int = PERMUTATIONS) -> bool:
    return (1 << min(units, 64)) <= permutations


def _swaps(
    units: int,
    is_exact: bool,
    permutations: int,
    seed: Seed,
) -> Iterator[Bools]:
    """Blocks of swaps: of an exact test all, else as many as `permutations` at random."""
    if is_exact:
        return _every_swap(units)
    return _random_swaps(units, permutations, seed)


def _every_swap(units: int) -> Iterator[Bools]:
    block = _largest_block(units)
    for start in range(0, 2**units, block):
        numbers = np.arange(start, min(start + block, 2**units))
        yield (numbers[:, None] >> np.arange(units)) % 2 == 1


def _random_swaps(
    units: int,
    permutations: int,
    seed: Seed,
) -> Iterator[Bools]:
    seeds = (*seed_tuple(seed), 1)
    sampled = 0
    block = _FIRST_BLOCK_SIZE
    while sampled < permutations:
        size = min(block, _largest_block(units), permutations - sampled)
        bits = _swap_bits(sampled, size, units, seeds)
        yield np.unpackbits(bits, axis=1, count=units).view(np.bool_)
        sampled += size
        block = 4 * block


# the pairs of one statistic have the same swaps, and to draw them takes longer than to test them
@lru_cache(maxsize=512)
def _swap_bits(
    start: int,
    size: int,
    units: int,
    seeds: tuple[int, ...],
) -> NDArray[np.uint8]:
    """Swaps `start` to `start + size` of a seed, eight to a byte."""
    generator = np.random.PCG64(seeds).advance(start * units)
    swaps = np.random.Generator(generator).random((size, units)) < 0.5
    return np.packbits(swaps, axis=1)


def _largest_block(units: int) -> int:
    return max(1, _CELLS_AT_ONCE // max(units, 1))


def resampled_differences(
    statistic: PairedStatistic,
    resamples: int = RESAMPLES,
    seed: Seed = 0,
) -> Floats:
    """The difference in each resample of the cluster bootstrap, the same groups for both judges.

    Args:
        statistic: as for `compare`.
        resamples: number of bootstrap resamples.
        seed: as for `compare`; with the same seed the same groups are drawn as by
            `bootstrap.cluster_counts`.

    Returns:
        Shape (resamples,), on the statistic's scale; NaN for a resample in which it is undefined.

    >>> resampled_differences(MeanDifference([1, 1], [0, 0], ["a", "b"]), resamples=3).tolist()
    [1.0, 1.0, 1.0]
    """
    rng = np.random.default_rng(seed)
    counts = np.zeros((resamples, len(statistic.strata)), dtype=np.int64)
    for stratum in np.unique(statistic.strata):
        groups = np.flatnonzero(statistic.strata == stratum)
        clusters = [str(group) for group in groups]
        counts[:, groups] = cluster_counts(clusters, resamples, rng)
    return statistic.resampled(counts)


class MeanDifference:
    """The difference of two means over the same items, such as the accuracies of two judges on the
    same contests.

    A group's items are swapped and drawn together. Scores are not standardised: both must be on one
    scale, as right and wrong are, or one judge's scores of two generators.

    Args:
        first: 1 where the first judge is right and 0 where it is wrong (or any score), shape (...,
            items).
        second: the same of the second, of the same shape; NaN in both marks an item that does not
            count.
        groups: what each item is drawn and swapped together with, shape (items,).

    Raises:
        ValueError: for other shapes, or an item that only one of the two has.

    Source: as for `paired_permutation_p`; whole groups: PROTOCOLS of this project, "Comparing two
    judges".

    >>> MeanDifference([1, 1, 0], [0, 1, 0], ["a", "a", "b"]).estimates()[0].__round__(3)
    0.667
    """

    def __init__(
        self,
        first: ArrayLike,
        second: ArrayLike,
        groups: Sequence[Hashable],
    ) -> None:
        self._first = np.asarray(first, dtype=float)
        self._second = np.asarray(second, dtype=float)
        if self._first.shape != self._second.shape:
            raise ValueError(
                f"arrays must have the same shape, got {self._first.shape} and "
                f"{self._second.shape}"
            )
        require_same_items(self._first, self._second)
        difference = self._first - self._second
        self.sums, self.items = group_sums(difference, groups)
        self.units = len(self.sums)
        self.strata = np.zeros(self.units, dtype=np.int64)
        item_count = max(float(self.items.sum()), 1.0)
        self.scale = float(np.nansum(np.abs(difference))) / item_count

    def estimates(self) -> tuple[float, float]:
        """The two means; NaN without items."""
        is_defined = ~np.isnan(self._first)
        if not is_defined.any():
            return math.nan, math.nan
        first = float(self._first[is_defined].mean())
        second = float(self._second[is_defined].mean())
        return first, second

    def swapped(self, swap: Bools) -> Floats:
        with np.errstate(invalid="ignore"):
            moved_sums = np.einsum(
                "su,u->s",
                swap.astype(float),
                self.sums,
            )
            return np.asarray((self.sums.sum() - 2 * moved_sums) / self.items.sum())

    def resampled(self, counts: Ints) -> Floats:
        weights = counts.astype(float)
        with np.errstate(invalid="ignore"):
            sums, items = (
                np.einsum("rg,g->r", weights, column)
                for column in (self.sums, self.items)
            )
            return np.asarray(sums / items)


class AveragedDifference:
    """The average of differences on several benchmarks, for a test and an interval over all of
    them.

    Each benchmark's groups are swapped and drawn among themselves.

    Args:
        statistics: the same two judges' on each benchmark; not none.
        weights: what each counts for; they are made to sum to 1.

    >>> parts = [MeanDifference(first, [0, 0], ["a", "b"]) for first in ([1, 1], [1, 0])]
    >>> AveragedDifference(parts, [1, 1]).estimates()
    (0.75, 0.0)
    """

    def __init__(
        self,
        statistics: Sequence[PairedStatistic],
        weights: Sequence[float],
    ) -> None:
        self.parts = tuple(statistics)
        self.weights = [weight / math.fsum(weights) for weight in weights]
        self.units = sum(statistic.units for statistic in statistics)
        self.scale = math.fsum(
            weight * statistic.scale
            for weight, statistic in zip(self.weights, statistics, strict=True)
        )
        strata = []
        for number, statistic in enumerate(statistics):
            strata += [(number, stratum) for stratum in statistic.strata.tolist()]
        _, self.strata = factorize(strata)
        self._groups = [len(statistic.strata) for statistic in statistics]

    def estimates(self) -> tuple[float, float]:
        """The two averages; NaN where one of the estimates is undefined."""
        pairs = np.array([statistic.estimates() for statistic in self.parts])
        first, second = np.array(self.weights) @ pairs
        return float(first), float(second)

    def swapped(self, swap: Bools) -> Floats:
        unit_counts = [statistic.units for statistic in self.parts]
        ends = np.cumsum(unit_counts)[:-1]
        swaps_by_part = np.split(swap, ends, axis=1)
        differences = [
            statistic.swapped(part_swaps)
            for statistic, part_swaps in zip(self.parts, swaps_by_part, strict=True)
        ]
        return self._averaged(differences)

    def resampled(self, counts: Ints) -> Floats:
        ends = np.cumsum(self._groups)[:-1]
        counts_by_part = np.split(counts, ends, axis=1)
        differences = [
            statistic.resampled(part_counts)
            for statistic, part_counts in zip(self.parts, counts_by_part, strict=True)
        ]
        return self._averaged(differences)

    def _averaged(self, differences: Sequence[Floats]) -> Floats:
        return np.array(self.weights) @ np.array(differences)


def unit_sums(statistic: PairedStatistic) -> tuple[Floats, Floats] | None:
    """The sum of each unit's differences and their number, or weight; None of a
    statistic that is not a mean of them.
    """
    if isinstance(statistic, MeanDifference):
        return statistic.sums, statistic.items
    if not isinstance(statistic, AveragedDifference):
        return None
    parts = [
        (unit_sums(part), weight)
        for part, weight in zip(statistic.parts, statistic.weights, strict=True)
    ]
    scaled = [
        np.array(means) * weight / means[1].sum()
        for means, weight in parts
        if means is not None
    ]
    if len(scaled) == len(parts):
        return tuple(np.concatenate(scaled, axis=1))
    return None


def require_same_items(first: Floats, second: Floats) -> None:
    """ValueError unless two tables of the same shape lack the same scores (NaN)."""
    is_mismatch = np.isnan(first) != np.isnan(second)
    mismatch_count = int(np.count_nonzero(is_mismatch))
    if mismatch_count:
        raise ValueError(
            "the two tables must have scores for the same items, "
            f"got {mismatch_count} with a score in only one"
        )
