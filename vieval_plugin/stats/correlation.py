"""Correlation coefficients, of a sample and of many bootstrap resamples of it at once, and two
averages of them.

`paper_mean` is what the published code computes, `fisher_mean` Fisher's average.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Coefficient: TypeAlias = Literal["spearman", "pearson", "kendall"]

# bounds the memory of bootstrap resamples: 16 MB an array of doubles
_CELLS_AT_ONCE = 2_000_000
# The last value below 1 that four decimals can show. Nearer to 1, one resample in which two
# annotators happen to agree on everything would outweigh all other image models in the average.
_NEARLY_ONE = 0.9999


def correlation(
    x: ArrayLike,
    y: ArrayLike,
    coefficient: Coefficient = "spearman",
) -> float:
    """Correlation of two lists of scores of the same items, as SciPy computes it.

    Args:
        x: finite scores, shape (items,), on any scale.
        y: the other scores of the same items, shape (items,).
        coefficient: `spearman` (ties get their mean rank), `pearson`, or `kendall` (tau-b).

    Returns:
        The coefficient, in [-1, 1]; NaN for fewer than two items or a constant vector (see
        `undefined`).

    Raises:
        ValueError: for anything but two vectors of the same length.

    Source: Spearman 1904; Pearson 1895; Kendall 1945 (tau-b).

    >>> round(correlation([1, 2, 3, 4], [1, 3, 2, 4]), 6)
    0.8
    >>> correlation([1, 1, 1], [1, 2, 3])
    nan
    """
    x, y = paired_vectors(x, y)
    if undefined(x, y):
        return math.nan
    if coefficient == "spearman":  # spearmanr's number, without its p
        ranks = scipy.stats.rankdata(x), scipy.stats.rankdata(y)
        return float(np.corrcoef(*ranks)[1, 0])
    measure: Any = {"pearson": scipy.stats.pearsonr, "kendall": scipy.stats.kendalltau}[
        coefficient
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.stats.NearConstantInputWarning)
        return float(measure(x, y).statistic)


def paired_vectors(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    """Two vectors of the same length as arrays of floats; ValueError for anything else."""
    x = np.asarray(first, dtype=float)
    y = np.asarray(second, dtype=float)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(
            f"vectors must have the same length, got shapes {x.shape} and {y.shape}"
        )
    return x, y


def undefined(x: ArrayLike, y: ArrayLike) -> str:
    """Reason why the correlation of two vectors is undefined, in words for a report to show beside
    the number.

    Args:
        x: scores, shape (items,).
        y: the other scores of the same items, shape (items,).

    Returns:
        The reason; empty where the correlation is defined.

    >>> undefined([1, 2], [3, 3])
    'all values of the second variable are equal'
    """
    x = np.asarray(x, dtype=float)
    y = np.asarray(y, dtype=float)
    if len(x) < 2:
        return f"at least two pairs are needed, got {len(x)}"
    if np.all(x == x[0]):
        return "all values of the first variable are equal"
    if np.all(y == y[0]):
        return "all values of the second variable are equal"
    return ""


def resampled_correlations(
    x: ArrayLike,
    y: ArrayLike,
    counts: Ints,
    coefficient: Coefficient = "spearman",
    constant_y_correlation: float = np.nan,
) -> Floats:
    """`correlation` in each bootstrap resample, for the interval of a correlation.

    Equal to repeating the items and calling `correlation`, without materialising the repeats.
    Spearman's and Pearson's take time in proportion to resamples x items, Kendall's tau-b to
    resamples x items squared, as matrix products.

    Args:
        x: finite scores, shape (items,).
        y: the other scores of the same items, shape (items,).
        counts: number of occurrences of each item in each resample, shape (resamples, items); see
            `bootstrap.cluster_counts`.
        coefficient: as for `correlation`.
        constant_y_correlation: the value of a resample in which `y` is constant and `x` is not; not
            for `kendall`.

    Returns:
        Shape (resamples,), each in [-1, 1]; NaN for a resample in which the coefficient is
        undefined.

    >>> resampled_correlations([1, 2, 3], [1, 3, 2], np.array([[1, 1, 1], [2, 1, 0], [3, 0, 0]]), "kendall").round(3)
    array([0.333, 1.   ,   nan])
    """
    if coefficient == "kendall":
        return _weighted_kendall(
            np.asarray(x, dtype=float), np.asarray(y, dtype=float), counts
        )
    x = np.asarray(x, dtype=float)
    y = np.asarray(y, dtype=float)
    correlations = np.full(len(counts), np.nan)
    if len(x) == 0:
        return correlations
    x, y, counts = _merged(x, y, counts)
    block = max(1, _CELLS_AT_ONCE // len(x))
    for start in range(0, len(counts), block):
        weights = counts[start : start + block].astype(float)
        if coefficient == "spearman":
            # Spearman's rho is Pearson's r of the ranks, and ranks change with what was drawn
            x_rows = _weighted_ranks(x, weights)
            y_rows = _weighted_ranks(y, weights)
        else:
            x_rows = np.broadcast_to(x, weights.shape)
            y_rows = np.broadcast_to(y, weights.shape)
        correlations[start : start + block] = _weighted_pearson(
            x_rows, y_rows, weights, constant_y_correlation
        )
    return correlations


def paper_mean(correlations: Iterable[float], *, rounded: bool = True) -> float:
    """The published average of correlations: `tanh` of their mean. For comparison with printed
    tables; see `fisher_mean`.

    This is what the VIEScore, CIGEval and ADIEE code computes and the papers call Fisher Z; the
    arctanh is missing, so values are pulled toward 0.

    Args:
        correlations: coefficients in [-1, 1], of image models, of tasks or of annotators; NaN
            entries are left out.
        rounded: round them to four decimals first, as is done over image models and tasks; over
            annotators they are not: that, and only that, gives all 261 cells of Table 7 to the last
            digit.

    Returns:
        The average, in [-tanh 1, tanh 1]; NaN when no entry is defined.

    Source: the released code, checked against Tables 1-3 and 7 of VIEScore (Ku et al., ACL 2024).

    >>> round(paper_mean([0.5, 0.7]), 4)
    0.537
    """
    defined = (float(r) for r in correlations if not math.isnan(r))
    values = [round(r, 4) if rounded else r for r in defined]
    if values:
        return math.tanh(sum(values) / len(values))
    return math.nan


def fisher_mean(correlations: ArrayLike) -> float:
    """The average of correlations by Fisher's z: `tanh` of the mean of `arctanh`.

    Args:
        correlations: coefficients in [-1, 1], any shape; NaN entries are left out, `|r|` is clipped
            to 0.9999.

    Returns:
        The average, in [-0.9999, 0.9999]; NaN when no entry is defined.

    Source: Fisher 1921, On the "probable error" of a coefficient of correlation.

    >>> round(fisher_mean([0.5, 0.7]), 4)
    0.6096
    """
    values = np.asarray(correlations, dtype=float).reshape(-1)
    return float(fisher_mean_over(values[:, None])[0])


def fisher_mean_over(correlations: Sequence[Floats] | Floats) -> Floats:
    """`fisher_mean` in each bootstrap resample, for the interval of an average.

    Args:
        correlations: coefficients in [-1, 1], shape (parts, resamples); a NaN leaves its part out
            of that resample's average.

    Returns:
        Shape (resamples,), each in [-0.9999, 0.9999]; NaN for a resample in which no part is
        defined.

    >>> fisher_mean_over([[0.5, float("nan")], [0.7, 0.2]]).round(4)
    array([0.6096, 0.2   ])
    """
    values = np.asarray(correlations, dtype=float)
    defined = ~np.isnan(values)
    defined_values = np.where(defined, values, 0.0)
    z = np.arctanh(np.clip(defined_values, -_NEARLY_ONE, _NEARLY_ONE))
    if len(values) and defined.all():  # as in most of thousands of permutations
        return np.asarray(np.tanh(z.sum(axis=0) / len(values)))
    n = defined.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        sums = np.where(defined, z, 0.0).sum(axis=0)
        averages = np.tanh(sums / n)
    return np.where(n > 0, averages, np.nan)


def weighted_pairs(
    counts: Ints, values: Callable[[slice, slice], NDArray[Any]]
) -> Floats:
    """Sum over pairs of different items i < j of counts[i] * counts[j] * value(i, j) in each
    resample.

    What Kendall's tau-b and pairwise accuracy are made of. A sum is a bilinear form in the counts,
    so that all resamples come from one product of matrices. The sums are exact integers: a block's
    products stay below 2^24 in single precision, else doubles are used. No more than a few blocks
    are held at once.

    Args:
        counts: number of occurrences of each item in each resample, shape (resamples, items).
        values: given two slices of items, rows and columns, the block of the matrix of values, each
            -1, 0 or 1.

    Returns:
        Shape (resamples,), whole numbers.

    >>> weighted_pairs(np.array([[1, 1, 1], [2, 1, 0]]), lambda rows, columns: np.ones((3, 3))[rows, columns])
    array([3., 2.])
    """
    resamples, n = counts.shape
    precision: type[np.floating[Any]] = np.float64
    if counts.sum(axis=1).max(initial=0) < 2**24:
        precision = np.float32
    weights = counts.astype(precision)
    sums = np.zeros(resamples)
    start = 0
    while start < n:
        row_count = max(1, _CELLS_AT_ONCE // max(n - start, resamples))
        rows = slice(start, min(n, start + row_count))
        block = np.triu(values(rows, slice(start, n)), 1).astype(weights.dtype)
        sums += np.einsum(
            "ij,ij->i", weights[:, rows], weights[:, start:] @ block.T, dtype=np.float64
        )
        start = rows.stop
    return sums


def _weighted_kendall(
    x: Floats,
    y: Floats,
    counts: Ints,
) -> Floats:
    """tau-b (Kendall 1945), in the order of operations of SciPy, so that the last digit is the
    same.
    """
    # ranks are in the same order as the values, and differences of ranks are always finite
    x = scipy.stats.rankdata(x)
    y = scipy.stats.rankdata(y)

    def same_order(rows: slice, columns: slice) -> Floats:
        x_order = np.sign(x[rows, None] - x[columns])
        y_order = np.sign(y[rows, None] - y[columns])
        return x_order * y_order

    total = counts.sum(axis=1)
    pairs = total * (total - 1) // 2
    with np.errstate(invalid="ignore", divide="ignore"):
        x_norm = np.sqrt(pairs - _ties(x, counts))
        y_norm = np.sqrt(pairs - _ties(y, counts))
        tau = weighted_pairs(counts, same_order) / x_norm / y_norm
    return np.asarray(np.clip(tau, -1.0, 1.0))


def _ties(values: Floats, counts: Ints) -> Ints:
    """Number of pairs with equal values in each resample, shape (resamples,), an item's repeats
    included.
    """
    if len(values) == 0:
        return np.zeros(len(counts), dtype=np.int64)
    order = np.argsort(values, kind="stable")
    _, starts = np.unique(values[order], return_index=True)
    group_weights = np.add.reduceat(
        counts[:, order],
        starts,
        axis=1,
    )
    return np.asarray((group_weights * (group_weights - 1) // 2).sum(axis=1))


def _merged(
    x: Floats,
    y: Floats,
    counts: Ints,
) -> tuple[Floats, Floats, Ints]:
    """Items that are equal in both as one, drawn as often as all of them: the same sums, of far
    fewer terms for ratings.
    """
    order = np.lexsort((y, x))
    x_changes = np.diff(x[order]) != 0
    y_changes = np.diff(y[order]) != 0
    first = np.append(True, x_changes | y_changes)
    if first.all():
        return x, y, counts
    starts = np.flatnonzero(first)
    cell_counts = np.add.reduceat(
        counts[:, order],
        starts,
        axis=1,
    )
    return x[order][starts], y[order][starts], cell_counts


def _weighted_ranks(values: Floats, weights: Floats) -> Floats:
    """Mean ranks, shape of `weights`, of values that occur `weights` times in each row."""
    order = np.argsort(values, kind="stable")
    _, starts, group = np.unique(
        values[order],
        return_index=True,
        return_inverse=True,
    )
    group_weights = np.add.reduceat(
        weights[:, order],
        starts,
        axis=1,
    )
    # n items that are equal share the mean of the last n ranks so far
    rank_of_group = np.cumsum(group_weights, axis=1) - (group_weights - 1) / 2
    ranks = np.empty_like(weights)
    ranks[:, order] = rank_of_group[:, group]
    return ranks


def _weighted_pearson(
    x: Floats,
    y: Floats,
    weights: Floats,
    constant_y_correlation: float,
) -> Floats:
    """Pearson's r of each row of `x` and `y` under that row's weights, all of shape (resamples,
    items).
    """
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        dx = x - (weights * x).sum(axis=1, keepdims=True) / total
        dy = y - (weights * y).sum(axis=1, keepdims=True) / total
        spread = (weights * dx * dx).sum(axis=1)
        variances = spread * (weights * dy * dy).sum(axis=1)
        covariance = (weights * dx * dy).sum(axis=1)
        r = covariance / np.sqrt(variances)
    # a constant vector leaves rounding dust, not an exact zero, where its weighted mean is inexact
    size = (weights * x * x).sum(axis=1)
    y_size = (weights * y * y).sum(axis=1)
    is_constant = ~(variances > 1e-24 * size * y_size)
    constant_values = np.where(spread > 1e-12 * size, constant_y_correlation, np.nan)
    r[is_constant] = constant_values[is_constant]
    return np.asarray(np.clip(r, -1.0, 1.0))
