"""Rankings of image models by their mean scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from vieval_plugin.stats.correlation import Floats, correlation


def ranks(mean_scores: ArrayLike) -> Floats:
    """Ranks 1 (highest mean) to n of image models, ties get their average rank.

    >>> ranks([0.2, 0.9, 0.2]).tolist()
    [2.5, 1.0, 2.5]
    """
    return np.asarray(stats.rankdata(-np.asarray(mean_scores, dtype=float)))


def footrule(mean_scores: ArrayLike, others: ArrayLike) -> float:
    """Spearman's footrule between two rankings of the same image models: the sum of absolute rank differences, >= 0.

    Source: VIEScore, Table 5.

    >>> footrule([3, 2, 1], [3, 1, 2])
    2.0
    """
    return float(np.abs(ranks(mean_scores) - ranks(others)).sum())


def rank_rho(mean_scores: ArrayLike, others: ArrayLike) -> float:
    """Spearman's rho between two rankings of the same image models, in [-1, 1]; NaN for a constant ranking.

    >>> rank_rho([3, 2, 1], [3, 1, 2])
    0.5
    """
    return correlation(mean_scores, others)
