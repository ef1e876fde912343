"""Correlation coefficients, of a sample and of many bootstrap resamples of it at once."""

from __future__ import annotations

import warnings
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats: TypeAlias = NDArray[np.float64]
Kind: TypeAlias = Literal["spearman", "pearson", "kendall"]

_CELLS_AT_ONCE = 2_000_000


def correlation(x: ArrayLike, y: ArrayLike, kind: Kind = "spearman") -> float:
    """Correlation of two vectors of the same length, in [-1, 1]; NaN where it is undefined.

    `spearman` ranks ties by their mean, `kendall` is tau-b, both as SciPy computes them. Undefined means fewer than two
    pairs or a constant vector.

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
    measure: Any = {"spearman": stats.spearmanr, "pearson": stats.pearsonr, "kendall": stats.kendalltau}[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.NearConstantInputWarning)
        return float(measure(x, y).statistic)


def undefined(x: ArrayLike, y: ArrayLike) -> str:
    """Why the correlation of two vectors is undefined, or an empty text where it is defined.

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


def resampled_correlations(x: ArrayLike, y: ArrayLike, counts: NDArray[np.int64], kind: Kind = "spearman") -> Floats:
    """Correlation of `x` and `y` in each bootstrap draw; NaN for a draw in which it is undefined.

    `counts` has shape (draws, len(x)) and says how often each pair occurs in a draw. Equal to repeating the pairs and
    calling `correlation`, without materialising the repeats. Kinds: `spearman` and `pearson`.
    Raises ValueError for another kind.
    """
    if kind not in ("spearman", "pearson"):
        raise ValueError(f"no resampled {kind}; use spearman or pearson")
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    out = np.full(len(counts), np.nan)
    if len(x) == 0:
        return out
    block = max(1, _CELLS_AT_ONCE // len(x))
    for start in range(0, len(counts), block):
        weights = counts[start : start + block].astype(float)
        if kind == "spearman":
            out[start : start + block] = _weighted_pearson(
                _weighted_ranks(x, weights), _weighted_ranks(y, weights), weights
            )
        else:
            tile = np.broadcast_to
            out[start : start + block] = _weighted_pearson(tile(x, weights.shape), tile(y, weights.shape), weights)
    return out


def _weighted_ranks(values: Floats, weights: Floats) -> Floats:
    """Mean ranks, shape of `weights`, of values that occur `weights` times in each row."""
    order = np.argsort(values, kind="stable")
    _, starts, group = np.unique(values[order], return_index=True, return_inverse=True)
    of_group = np.add.reduceat(weights[:, order], starts, axis=1)
    rank_of_group = np.cumsum(of_group, axis=1) - (of_group - 1) / 2
    ranks = np.empty_like(weights)
    ranks[:, order] = rank_of_group[:, group]
    return ranks


def _weighted_pearson(x: Floats, y: Floats, weights: Floats) -> Floats:
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        dx = x - (weights * x).sum(axis=1, keepdims=True) / total
        dy = y - (weights * y).sum(axis=1, keepdims=True) / total
        variances = (weights * dx * dx).sum(axis=1) * (weights * dy * dy).sum(axis=1)
        r = (weights * dx * dy).sum(axis=1) / np.sqrt(variances)
    # a constant vector leaves rounding dust, not an exact zero, where its weighted mean is inexact
    scale = (weights * x * x).sum(axis=1) * (weights * y * y).sum(axis=1)
    r[~(variances > 1e-24 * scale)] = np.nan
    return np.asarray(np.clip(r, -1.0, 1.0))
