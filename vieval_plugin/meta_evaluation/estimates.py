"""Estimates from the rows of a part: a value with the interval of its resamples, and averages
over parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from vieval_plugin.stats.bootstrap import (
    Ints,
    bias_corrected_interval,
    cluster_counts,
    expanded_interval,
    interval,
)
from vieval_plugin.stats.correlation import (
    Coefficient,
    Floats,
    correlation,
    resampled_correlations,
    undefined,
)
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.votes import share

#: How often each row occurs in each bootstrap resample, shape (resamples, rows).
Counts: TypeAlias = Ints


class Computed(NamedTuple):
    """A statistic of some rows before it has an interval."""

    value: float
    #: Turns counts of shape (resamples, rows) into values of shape (resamples,).
    resample: Callable[[Counts], Floats]
    #: Each row's cluster.
    clusters: Sequence[str]
    #: Reason why the value is undefined.
    reason: str
    #: True for a mean, whose interval is expanded for few clusters.
    is_mean: bool = False


_MOST_COUNTS = 10_000_000  # counts of rows in resamples that are in memory at once


@dataclass(frozen=True)
class Bootstrap:
    """The bootstrap of a part."""

    resamples: int
    #: Seed of its own.
    seed: tuple[int, ...]

    @classmethod
    def for_part(cls, name: str, options: StatisticsOptions) -> Bootstrap:
        """Return that of the part called `name` (`benchmark/part`), so that parts are resampled
        independently.
        """
        return cls(options.draws, (options.seed, *name.encode()))

    def estimate(self, computed: Computed) -> Estimate:
        """The computed statistic with its 95% interval, on its own scale; NaN with a reason where
        it is undefined.

        >>> values = np.array([1.0, 2.0, 3.0])
        >>> mean = Computed(2.0, lambda counts: counts @ values / 3, ["a", "b", "c"], "")
        >>> estimate = Bootstrap(100, (0,)).estimate(mean)
        >>> 1 <= estimate.low < estimate.value < estimate.high <= 3
        True
        """
        if math.isnan(computed.value):
            undefined_draws = np.full(self.resamples, np.nan)
            reason = computed.reason or "undefined"
            return Estimate(math.nan, resamples=undefined_draws, reasons=(reason,))
        rng = np.random.default_rng(self.seed)
        row_count = max(1, len(computed.clusters))
        block_size = max(1, _MOST_COUNTS // row_count)
        resampled_blocks = []
        for first in range(0, self.resamples, block_size):
            block = min(block_size, self.resamples - first)
            counts = cluster_counts(computed.clusters, block, rng)
            resampled_blocks.append(computed.resample(counts))
        resampled = np.concatenate(resampled_blocks)
        clusters = len(set(computed.clusters))
        if computed.is_mean:
            low, high = expanded_interval(resampled, clusters)
        else:
            low, high = interval(resampled)
        return Estimate(
            value=computed.value,
            low=low,
            high=high,
            resamples=resampled,
            n=len(computed.clusters),
        )

    def share(
        self, points: ArrayLike, clusters: Sequence[Hashable], reason: str = ""
    ) -> Estimate:
        """The mean of points with its interval; `reason` says why they are undefined, where they
        are.
        """
        return share(points, clusters, self.resamples, self.seed, reason)


def computed_correlation(
    judged: Floats, rated: Floats, clusters: Sequence[str], coefficient: Coefficient
) -> Computed:
    """The correlation of a judge's scores with ratings.

    Args:
        judged: the judge's scores, shape (rows,).
        rated: people's, shape (rows,), on any scale.
        clusters: what each row is resampled together with, one name a row.
        coefficient: as for `stats.correlation.correlation`.

    Returns:
        The coefficient, in [-1, 1].

    Raises:
        ValueError: where `judged` and `rated` have different lengths.

    >>> computed_correlation(np.array([0.1, 0.2, 0.4]), np.array([1.0, 2.0, 5.0]), ["a", "b", "c"], "kendall").value
    1.0
    """
    return Computed(
        value=correlation(judged, rated, coefficient),
        resample=lambda counts: resampled_correlations(
            judged, rated, counts, coefficient
        ),
        clusters=clusters,
        reason=undefined(judged, rated),
    )


def computed_mean(
    values: Sequence[float], clusters: Sequence[str], reason: str
) -> Computed:
    """The mean of some values.

    Args:
        values: one a row, on any scale; NaN none.
        clusters: what each row is resampled together with, one name a row.
        reason: why there is no mean, where there are no values.

    >>> computed_mean([0.5, 1.0], ["a", "b"], "").value
    0.75
    """
    array = np.asarray(values, dtype=float)

    def resampled(counts: Counts) -> Floats:
        numbers = np.maximum(counts.sum(axis=1), 1)
        return np.asarray((counts @ array) / numbers)

    mean = math.nan
    if len(array):
        mean = math.fsum(array) / len(array)
    return Computed(
        value=mean,
        resample=resampled,
        clusters=clusters,
        reason=reason,
        is_mean=True,
    )


def mean_over_parts(parts: Sequence[Estimate]) -> Estimate:
    """The plain mean over a benchmark's parts of a statistic, with an interval from their
    independent resamples.

    Args:
        parts: one estimate a part, all with the same number of resamples; not none.

    Returns:
        The mean, on the statistic's own scale; NaN if it is undefined in a part.

    >>> half = Estimate(0.5, 0.4, 0.6, np.array([0.4, 0.6]))
    >>> mean_over_parts([half, Estimate(1.0, 1.0, 1.0, np.array([1.0, 1.0]))]).value
    0.75
    """
    resampled = np.mean([part.resamples for part in parts], axis=0)
    low, high = interval(resampled)
    total = math.fsum(part.value for part in parts)
    n = sum(part.n for part in parts)
    reasons: dict[str, None] = {}
    for part in parts:
        reasons |= dict.fromkeys(part.reasons)
    return Estimate(
        value=total / len(parts),
        low=low,
        high=high,
        resamples=resampled,
        n=n,
        reasons=tuple(reasons),
    )


def sum_over_parts(parts: Sequence[Estimate]) -> Estimate:
    """The sum over parts of a count."""
    return Estimate(math.fsum(part.value for part in parts))


def bias_corrected(estimate: Estimate) -> Estimate:
    """An estimate with the interval that allows for biased resamples, such as those of
    annotators' agreement.
    """
    low, high = bias_corrected_interval(estimate.resamples, estimate.value)
    return replace(estimate, low=low, high=high)
