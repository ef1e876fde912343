"""Statistics of scores against binary labels and preferences."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vieval_plugin.stats.correlation import Floats


def auroc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Area under the ROC curve, in [0, 1]: how often a positive outscores a negative, ties counting half.

    `labels` are 0 or 1. NaN where one class is empty. The Mann-Whitney form (Hanley, McNeil 1982).

    >>> auroc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    counts = np.ones((1, len(np.asarray(labels))), dtype=np.int64)
    return float(resampled_auroc(labels, scores, counts)[0])


def resampled_auroc(labels: ArrayLike, scores: ArrayLike, counts: NDArray[np.int64]) -> Floats:
    """`auroc` in each bootstrap draw, shape (draws,); `counts` as for `resampled_correlations`."""
    y, x = np.asarray(labels, dtype=float), np.asarray(scores, dtype=float)
    if len(y) == 0:
        return np.full(len(counts), math.nan)
    order = np.argsort(x, kind="stable")
    _, starts = np.unique(x[order], return_index=True)
    positive = np.add.reduceat((counts * y)[:, order], starts, axis=1)
    negative = np.add.reduceat((counts * (1 - y))[:, order], starts, axis=1)
    below = np.cumsum(negative, axis=1) - negative
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(
            (positive * (below + negative / 2)).sum(axis=1) / (positive.sum(axis=1) * negative.sum(axis=1))
        )


def accuracy(preferred: ArrayLike, first: ArrayLike, second: ArrayLike) -> float:
    """Share of pairs in which the scores agree with a preference, in [0, 1]; NaN for no pair.

    `preferred` is 1 where the first is preferred, 0 where the second is, 0.5 for a tie. Equal scores count half where one is
    preferred; a tie in preference is right only for equal scores.

    >>> accuracy([1, 0, 1], [0.9, 0.2, 0.3], [0.1, 0.5, 0.3])
    0.8333333333333334
    """
    right = _right(preferred, first, second)
    return float(right.mean()) if len(right) else math.nan


def resampled_accuracy(preferred: ArrayLike, first: ArrayLike, second: ArrayLike, counts: NDArray[np.int64]) -> Floats:
    """`accuracy` in each bootstrap draw, shape (draws,)."""
    return np.asarray(counts @ _right(preferred, first, second) / counts.sum(axis=1))


def _right(preferred: ArrayLike, first: ArrayLike, second: ArrayLike) -> Floats:
    wanted = np.sign(np.asarray(preferred, dtype=float) - 0.5)
    given = np.sign(np.asarray(first, dtype=float) - np.asarray(second, dtype=float))
    return np.asarray(np.where(wanted == given, 1.0, np.where((given == 0) & (wanted != 0), 0.5, 0.0)))
