"""A benchmark's own statistics as estimates: a value with the interval of its resamples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vieval_plugin.meta_evaluation.observations import Estimate
from vieval_plugin.stats.bootstrap import cluster_counts, interval
from vieval_plugin.stats.correlation import Coefficient, Floats, correlation, resampled_correlations, undefined
from vieval_plugin.stats.options import StatisticsOptions

Counts: TypeAlias = NDArray[np.int64]
"""How often each row occurs in each bootstrap draw, shape (draws, rows)."""


class Computed(NamedTuple):
    """A statistic of some rows: its value, its resamples from counts of the rows, and which rows are drawn together.

    `resample` turns counts of shape (draws, rows) into draws of shape (draws,); `groups` names each row's cluster;
    `reason` says why the value is undefined, where it is.
    """

    value: float
    resample: Callable[[Counts], Floats]
    groups: Sequence[str]
    reason: str


def estimated(computed: Computed, name: str, options: StatisticsOptions) -> Estimate:
    """Turn a computed statistic into an estimate with its interval.

    Args:
        computed: a statistic of rows that do not depend on the order in which samples were judged.
        name: that of the part (`benchmark/part`); it joins the seed, so that parts are resampled independently.
        options: the number of draws, and the seed.

    Returns:
        The value with its 95% interval, on the statistic's own scale; NaN with a reason where it is undefined.

    >>> values = np.array([1.0, 2.0, 3.0])
    >>> mean = Computed(2.0, lambda counts: counts @ values / 3, ["a", "b", "c"], "")
    >>> found = estimated(mean, "benchmark/part", StatisticsOptions(draws=100))
    >>> 1 <= found.low < found.value < found.high <= 3
    True
    """
    if math.isnan(computed.value):
        undrawn = np.full(options.draws, np.nan)
        return Estimate(math.nan, math.nan, math.nan, undrawn, computed.reason or "undefined")
    seed = [options.seed, *name.encode()]
    draws = computed.resample(cluster_counts(computed.groups, options.draws, seed))
    low, high = interval(draws)
    return Estimate(computed.value, low, high, draws)


def correlated(judged: Floats, rated: Floats, groups: Sequence[str], coefficient: Coefficient) -> Computed:
    """The correlation of a judge's scores with ratings.

    Args:
        judged: the judge's scores, shape (rows,).
        rated: people's, shape (rows,), on any scale.
        groups: what each row is drawn together with, one name a row.
        coefficient: as for `stats.correlation.correlation`.

    Returns:
        The coefficient, in [-1, 1], to be given to `estimated`.

    Raises:
        ValueError: where `judged` and `rated` have different lengths.

    >>> correlated(np.array([0.1, 0.2, 0.4]), np.array([1.0, 2.0, 5.0]), ["a", "b", "c"], "kendall").value
    1.0
    """
    return Computed(
        correlation(judged, rated, coefficient),
        lambda counts: resampled_correlations(judged, rated, counts, coefficient),
        groups,
        undefined(judged, rated),
    )


def mean_over_parts(parts: Sequence[Estimate]) -> Estimate:
    """The plain mean over a benchmark's parts of a statistic, with an interval from their independent draws.

    Args:
        parts: one estimate a part, all with the same number of draws; not none.

    Returns:
        The mean, on the statistic's own scale; NaN if it is undefined in a part.

    >>> half = Estimate(0.5, 0.4, 0.6, np.array([0.4, 0.6]))
    >>> mean_over_parts([half, Estimate(1.0, 1.0, 1.0, np.array([1.0, 1.0]))]).value
    0.75
    """
    draws = np.mean([part.draws for part in parts], axis=0)
    low, high = interval(draws)
    reasons = tuple(dict.fromkeys(part.reason for part in parts if part.reason))
    return Estimate(math.fsum(part.value for part in parts) / len(parts), low, high, draws, ", ".join(reasons))
