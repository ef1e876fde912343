"""Means of people's ratings from many scores of a judge and a few ratings: prediction-powered inference."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from vieval_plugin.stats.bootstrap import numbered
from vieval_plugin.stats.comparison import Bools
from vieval_plugin.stats.correlation import Floats


class CorrectedMean(NamedTuple):
    """The estimated mean of people's ratings with the ends of its interval, all in the ratings' unit.

    `weight` is how much of the judge went in, in [0, 1]: 0 where its scores say nothing of people's.
    """

    mean: float
    low: float
    high: float
    weight: float


def corrected_mean(
    ratings: ArrayLike, scores: ArrayLike, groups: Sequence[Hashable] | None = None, level: float = 0.95
) -> CorrectedMean:
    """The mean that people's ratings would have over all items, of which people rated some and a judge scored all.

    The judge's mean over the unrated items, times a weight, plus what it misses on the rated ones. So the estimate is right
    on average however poor the judge is, if the rated items are a random part of all; the better the judge, the shorter
    the interval. The weight is the one that makes the interval shortest.

    Args:
        ratings: a rating an item, shape (items,), NaN where people gave none.
        scores: the judge's score of each item, shape (items,), on the same scale.
        groups: what each item was drawn together with, such as its prompt; none means that each was drawn by itself.
        level: the share of such intervals that hold the truth, in (0, 1); right for some 50 rated groups and more.

    Returns:
        The estimate with its normal interval; NaN with fewer than two rated groups. Without unrated items the mean of ratings.

    Raises:
        ValueError: for other shapes, or a score that is not finite.

    Source: Angelopoulos, Duchi and Zrnic 2023, PPI++ (the estimator and its weight); sums over groups take the place of
    items, as in any linearised variance of clusters (Liang and Zeger 1986).

    >>> round(corrected_mean([0.9, 0.4, 0.6, np.nan, np.nan, np.nan], [1.0, 0.5, 0.7, 0.9, 0.3, 0.6]).mean, 3)
    0.591
    """
    y, f = np.asarray(ratings, dtype=float), np.asarray(scores, dtype=float)
    if y.ndim != 1 or f.shape != y.shape or not np.isfinite(f).all():
        raise ValueError("a finite score and a rating or NaN are needed for each item")
    members = numbered(range(len(y)) if groups is None else groups)[1]
    rated = ~np.isnan(y)
    n, unrated = int(rated.sum()), int((~rated).sum())
    if len(np.unique(members[rated])) < 2:
        return CorrectedMean(float("nan"), float("nan"), float("nan"), float("nan"))

    def centred(values: Floats, where: Bools) -> Floats:
        """The sum over each group of how far its items among `where` lie above the mean of those."""
        deviations = np.where(where, values - values[where].mean(), 0.0)
        return np.asarray(np.bincount(members, deviations))

    weight = 0.0
    if unrated:
        everywhere = np.ones(len(f), dtype=bool)
        together = centred(f, everywhere)
        spread = (together**2).sum() / len(f) * len(together) / max(len(together) - 1, 1)
        shared = (centred(y, rated) * centred(f, rated)).sum() / n
        weight = float(np.clip(shared / ((1 + n / unrated) * spread), 0, 1)) if spread > 0 else 0.0
    missed = y - weight * f
    mean, influence = missed[rated].mean(), centred(missed, rated) / n
    if unrated:
        mean += weight * f[~rated].mean()
        influence = influence + weight * centred(f, ~rated) / unrated
    reach = stats.norm.ppf(0.5 + level / 2) * np.sqrt((influence**2).sum())
    return CorrectedMean(float(mean), float(mean - reach), float(mean + reach), weight)
