"""Cluster bootstrap: whole instructions are resampled, not single images."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.correlation import Ints as Ints

RESAMPLES = 1000

Seed: TypeAlias = int | Sequence[int]
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def seed_tuple(seed: Seed) -> tuple[int, ...]:
    """A seed as a tuple, which can be a key and go before further numbers."""
    return (seed,) if isinstance(seed, int) else tuple(seed)


def cluster_counts(
    clusters: Sequence[str],
    resamples: int = RESAMPLES,
    seed: Seed | np.random.Generator = 0,
) -> Ints:
    """Count each row's occurrences in each resample of a cluster bootstrap.

    Resamples as many clusters as there are, with replacement; rows of a cluster come and go
    together. Clusters are taken in the order in which they first appear, so the resamples depend on
    row order and seed alone, not on what clusters are called.

    Args:
        clusters: the name of each row's cluster, such as the instruction that several image models
            were given.
        resamples: number of bootstrap resamples.
        seed: a seed, a sequence of seeds, or a random generator.

    Returns:
        Whole numbers >= 0, shape (resamples, rows). Where each row is a cluster of its own, each
        resample's sum is `rows`.

    Source: Efron 1979 (bootstrap); Field and Welsh 2007, Bootstrapping clustered data (the cluster
    bootstrap).

    >>> cluster_counts(["a", "a", "b"], resamples=3, seed=0).sum(axis=1).tolist()
    [3, 3, 2]
    """
    names, cluster_index = factorize(clusters)
    n = len(names)
    if n == 0:
        return np.zeros((resamples, 0), dtype=np.int64)
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=resamples)
    return np.asarray(counts[:, cluster_index], dtype=np.int64)


def interval(resamples: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """The percentile interval of bootstrap resamples.

    Args:
        resamples: the statistic in each resample, any shape; undefined ones (NaN) are left out.
        level: the share of resamples inside the interval, in (0, 1).

    Returns:
        Its ends (low, high), on the statistic's own scale; both NaN if no resample is defined.

    Source: Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapter 13.

    >>> interval([1.0, 2.0, 3.0], level=0.5)
    (1.5, 2.5)
    """
    values = _defined(resamples)
    if len(values) == 0:
        return math.nan, math.nan
    low, high = np.quantile(values, _end_shares(level))
    return float(low), float(high)


def expanded_interval(resamples: ArrayLike, clusters: int) -> tuple[float, float]:
    """The 95% percentile interval of a mean, expanded for the number of clusters: with
    few clusters the plain interval is too short.

    A percentile interval is the normal one with the variance divided by n instead of n − 1. This
    one takes the percentiles that Student's t with that variance asks for, and stays within the
    scale.

    Args:
        resamples: the mean in each resample, any shape; undefined ones (NaN) are left out.
        clusters: how many are resampled; of fewer than 2 the interval is the plain one.

    Returns:
        Its ends (low, high), on the mean's own scale; both NaN if no resample is defined.

    Source: Hesterberg 2015, What Teachers Should Know About the Bootstrap (The American
    Statistician 69): the expanded percentile.

    >>> [round(end) for clusters in (1, 6) for end in expanded_interval(np.arange(1001.0), clusters)]
    [25, 975, 2, 998]
    """
    if clusters < 2:
        return interval(resamples)
    t_quantile = special.stdtrit(clusters - 1, 0.975)
    reach = math.sqrt(clusters / (clusters - 1)) * t_quantile
    level = 1 - 2 * float(special.ndtr(-reach))
    return interval(resamples, level)


def bias_corrected_interval(
    resamples: ArrayLike,
    value: float,
    level: float = 0.95,
) -> tuple[float, float]:
    """The bias-corrected percentile interval, for a statistic whose resamples lie to one side of
    its value.

    An annotator's correlation with the others is an example: a resample repeats
    instructions, so that there are more image models on which two annotators agree in
    everything.

    Args:
        resamples: the statistic in each resample, any shape; undefined ones (NaN) are left out.
        value: the statistic itself.
        level: the share of resamples inside the interval, in (0, 1), where they are not biased.

    Returns:
        Its ends (low, high), on the statistic's own scale; both NaN if no resample is defined.

    Source: Efron 1981, Nonparametric standard errors and confidence intervals (BC).

    >>> bias_corrected_interval([1.0, 2.0, 3.0, 4.0, 5.0], 3.0, level=0.5) == interval([1.0, 2.0, 3.0, 4.0, 5.0], 0.5)
    True
    """
    values = _defined(resamples)
    if len(values) == 0:
        return math.nan, math.nan
    lower = np.count_nonzero(values < value)
    lower_or_equal = np.count_nonzero(values <= value)
    share_below = (lower + lower_or_equal) / (2 * len(values))
    smallest_share = 1 / len(values)
    bias = special.ndtri(np.clip(share_below, smallest_share, 1 - smallest_share))
    tails = special.ndtri(_end_shares(level))
    end_shares = special.ndtr(2 * bias + tails)
    low, high = np.quantile(values, end_shares)
    return float(low), float(high)


def _end_shares(level: float) -> list[float]:
    """The shares of resamples below the ends of an interval."""
    return [(1 - level) / 2, (1 + level) / 2]


def _defined(resamples: ArrayLike) -> Floats:
    values = np.asarray(resamples, dtype=float)
    return np.asarray(values[~np.isnan(values)])


def grouped(entries: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Values by key, both in the order in which they first appear.

    Args:
        entries: pairs of a key and one of its values.

    >>> grouped([("b", 1), ("a", 2), ("b", 3)])
    {'b': [1, 3], 'a': [2]}
    """
    groups: dict[K, list[V]] = {}
    for key, value in entries:
        groups.setdefault(key, []).append(value)
    return groups


def factorize(groups: Sequence[Hashable]) -> tuple[list[Hashable], Ints]:
    """Groups in the order in which they first appear, and the number of each item's own.

    Args:
        groups: the group of each item, shape (items,).

    Returns:
        The groups, and whole numbers from 0 of shape (items,).

    >>> factorize(["b", "a", "b"])
    (['b', 'a'], array([0, 1, 0]))
    """
    first_seen = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    group_index = np.array([first_seen[group] for group in groups], dtype=np.int64)
    return list(first_seen), group_index


def group_sums(values: ArrayLike, groups: Sequence[Hashable]) -> tuple[Floats, Floats]:
    """Sum and number of the values of each group: all that a bootstrap of means over groups needs.

    Args:
        values: shape (..., items), in any unit; NaN entries are left out.
        groups: the group of each item, shape (items,).

    Returns:
        The sums and the numbers, each of shape (groups,), groups in the order in which they first
        appear.

    Raises:
        ValueError: `groups` and `values` have different lengths.

    >>> group_sums([1.0, 2.0, float("nan")], ["a", "b", "a"])
    (array([1., 2.]), array([1., 1.]))
    """
    names, index = factorize(groups)
    table = np.asarray(values, dtype=float)
    if table.shape[-1:] != index.shape:
        raise ValueError(
            f"each item must have a group, got {len(index)} groups for shape {table.shape}"
        )
    rows = math.prod(table.shape[:-1])
    table = table.reshape(rows, len(index))
    is_defined = ~np.isnan(table)
    defined_values = np.where(is_defined, table, 0.0)
    totals = (defined_values.sum(axis=0), is_defined.astype(float).sum(axis=0))
    sums, items = (
        np.bincount(index, weights=total, minlength=len(names)).astype(float)
        for total in totals
    )
    return sums, items
