"""Correlation coefficients, of a sample and of many bootstrap resamples of it at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats: TypeAlias = NDArray[np.float64]
Coefficient: TypeAlias = Literal["spearman", "pearson", "kendall"]

# bounds the memory of bootstrap draws: 16 MB an array of doubles
_CELLS_AT_ONCE = 2_000_000


def correlation(x: ArrayLike, y: ArrayLike, coefficient: Coefficient = "spearman") -> float:
    """How well two lists of scores of the same items go together, as SciPy computes it.

    Args:
        x: finite scores, shape (items,), on any scale.
        y: the other scores of the same items, shape (items,).
        coefficient: `spearman` (ties get their mean rank), `pearson`, or `kendall` (tau-b).

    Returns:
        The coefficient, in [-1, 1]; NaN for fewer than two items or a constant vector (see `undefined`).

    Raises:
        ValueError: for anything but two vectors of the same length.

    Source: Spearman 1904; Pearson 1895; Kendall 1945 (tau-b).

    >>> round(correlation([1, 2, 3, 4], [1, 3, 2, 4]), 6)
    0.8
    >>> correlation([1, 1, 1], [1, 2, 3])
    nan
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"two vectors of the same length are needed, not shapes {x.shape} and {y.shape}")
    if undefined(x, y):
        return float("nan")
    measure: Any = {"spearman": stats.spearmanr, "pearson": stats.pearsonr, "kendall": stats.kendalltau}[coefficient]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.NearConstantInputWarning)
        return float(measure(x, y).statistic)


def undefined(x: ArrayLike, y: ArrayLike) -> str:
    """Why the correlation of two vectors is undefined, in words, so that a report can say it beside the number.

    Args:
        x: scores, shape (items,).
        y: the other scores of the same items, shape (items,).

    Returns:
        The reason; empty where the correlation is defined.

    >>> undefined([1, 2], [3, 3])
    'the second variable is constant'
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(x) < 2:
        return f"{len(x)} pairs, two or more are needed"
    if np.all(x == x[0]):
        return "the first variable is constant"
    if np.all(y == y[0]):
        return "the second variable is constant"
    return ""


def resampled_correlations(
    x: ArrayLike,
    y: ArrayLike,
    counts: NDArray[np.int64],
    coefficient: Coefficient = "spearman",
    constant_second: float = np.nan,
) -> Floats:
    """`correlation` in each bootstrap draw, for the interval of a correlation.

    Equal to repeating the items and calling `correlation`, without materialising the repeats. Spearman's and Pearson's
    take time in proportion to draws x items, Kendall's tau-b to draws x items squared, as matrix products.

    Args:
        x: finite scores, shape (items,).
        y: the other scores of the same items, shape (items,).
        counts: how often each item occurs in each draw, shape (draws, items); see `bootstrap.cluster_counts`.
        coefficient: as for `correlation`.
        constant_second: the value of a draw in which `y` is constant and `x` is not; not for `kendall`.

    Returns:
        Shape (draws,), each in [-1, 1]; NaN for a draw in which the coefficient is undefined.

    >>> resampled_correlations([1, 2, 3], [1, 3, 2], np.array([[1, 1, 1], [2, 1, 0], [3, 0, 0]]), "kendall").round(3)
    array([0.333, 1.   ,   nan])
    """
    if coefficient == "kendall":
        return _weighted_kendall(np.asarray(x, dtype=float), np.asarray(y, dtype=float), counts)
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    out = np.full(len(counts), np.nan)
    if len(x) == 0:
        return out
    x, y, counts = _merged(x, y, counts)
    block = max(1, _CELLS_AT_ONCE // len(x))
    for start in range(0, len(counts), block):
        weights = counts[start : start + block].astype(float)
        if coefficient == "spearman":
            # Spearman's rho is Pearson's r of the ranks, and ranks change with what was drawn
            out[start : start + block] = _weighted_pearson(
                _weighted_ranks(x, weights), _weighted_ranks(y, weights), weights, constant_second
            )
        else:
            tile = np.broadcast_to
            out[start : start + block] = _weighted_pearson(
                tile(x, weights.shape), tile(y, weights.shape), weights, constant_second
            )
    return out


def weighted_pairs(counts: NDArray[np.int64], values: Callable[[slice, slice], NDArray[Any]]) -> Floats:
    """Sum over pairs of different items i < j of counts[i] * counts[j] * value(i, j) in each draw.

    What Kendall's tau-b and pairwise accuracy are made of. A sum is a bilinear form in the counts, so that all draws come
    from one product of matrices. The sums are exact integers: a block's products stay below 2^24 in single precision,
    else doubles are used. No more than a few blocks are held at once.

    Args:
        counts: how often each item occurs in each draw, shape (draws, items).
        values: given two slices of items, rows and columns, the block of the matrix of values, each -1, 0 or 1.

    Returns:
        Shape (draws,), whole numbers.

    >>> weighted_pairs(np.array([[1, 1, 1], [2, 1, 0]]), lambda rows, columns: np.ones((3, 3))[rows, columns])
    array([3., 2.])
    """
    draws, n = counts.shape
    precision: type[np.floating[Any]] = np.float32 if counts.sum(axis=1).max(initial=0) < 2**24 else np.float64
    weights = counts.astype(precision)
    out = np.zeros(draws)
    start = 0
    while start < n:
        rows = slice(start, min(n, start + max(1, _CELLS_AT_ONCE // max(n - start, draws))))
        block = np.triu(values(rows, slice(start, n)), 1).astype(weights.dtype)
        out += np.einsum("ij,ij->i", weights[:, rows], weights[:, start:] @ block.T, dtype=np.float64)
        start = rows.stop
    return out


def _weighted_kendall(x: Floats, y: Floats, counts: NDArray[np.int64]) -> Floats:
    """tau-b (Kendall 1945), in the order of operations of SciPy, so that the last digit is the same."""
    # ranks are in the same order as the values, and differences of ranks are always finite
    x, y = stats.rankdata(x), stats.rankdata(y)

    def same_order(rows: slice, columns: slice) -> Floats:
        return np.asarray(np.sign(x[rows, None] - x[columns]) * np.sign(y[rows, None] - y[columns]))

    total = counts.sum(axis=1)
    pairs = total * (total - 1) // 2
    with np.errstate(invalid="ignore", divide="ignore"):
        tau = weighted_pairs(counts, same_order) / np.sqrt(pairs - _ties(x, counts)) / np.sqrt(pairs - _ties(y, counts))
    return np.asarray(np.clip(tau, -1.0, 1.0))


def _ties(values: Floats, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of pairs with equal values in each draw, shape (draws,), an item's repeats included."""
    if len(values) == 0:
        return np.zeros(len(counts), dtype=np.int64)
    order = np.argsort(values, kind="stable")
    _, starts = np.unique(values[order], return_index=True)
    of_group = np.add.reduceat(counts[:, order], starts, axis=1)
    return np.asarray((of_group * (of_group - 1) // 2).sum(axis=1))


def _merged(x: Floats, y: Floats, counts: NDArray[np.int64]) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Items that are equal in both as one, drawn as often as all of them: the same sums, of far fewer terms for ratings."""
    order = np.lexsort((y, x))
    first = np.append(True, (np.diff(x[order]) != 0) | (np.diff(y[order]) != 0))
    if first.all():
        return x, y, counts
    starts = np.flatnonzero(first)
    return x[order][starts], y[order][starts], np.add.reduceat(counts[:, order], starts, axis=1)


def _weighted_ranks(values: Floats, weights: Floats) -> Floats:
    """Mean ranks, shape of `weights`, of values that occur `weights` times in each row."""
    order = np.argsort(values, kind="stable")
    _, starts, group = np.unique(values[order], return_index=True, return_inverse=True)
    of_group = np.add.reduceat(weights[:, order], starts, axis=1)
    # n items that are equal share the mean of the last n ranks so far
    rank_of_group = np.cumsum(of_group, axis=1) - (of_group - 1) / 2
    ranks = np.empty_like(weights)
    ranks[:, order] = rank_of_group[:, group]
    return ranks


def _weighted_pearson(x: Floats, y: Floats, weights: Floats, constant_second: float) -> Floats:
    """Pearson's r of each row of `x` and `y` under that row's weights, all of shape (draws, items)."""
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        dx = x - (weights * x).sum(axis=1, keepdims=True) / total
        dy = y - (weights * y).sum(axis=1, keepdims=True) / total
        spread = (weights * dx * dx).sum(axis=1)
        variances = spread * (weights * dy * dy).sum(axis=1)
        r = (weights * dx * dy).sum(axis=1) / np.sqrt(variances)
    # a constant vector leaves rounding dust, not an exact zero, where its weighted mean is inexact
    size = (weights * x * x).sum(axis=1)
    undefined_draws = ~(variances > 1e-24 * size * (weights * y * y).sum(axis=1))
    r[undefined_draws] = np.where(spread > 1e-12 * size, constant_second, np.nan)[undefined_draws]
    return np.asarray(np.clip(r, -1.0, 1.0))
