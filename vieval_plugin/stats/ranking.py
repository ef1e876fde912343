"""Rank image models by mean score, and systems by pairwise tests."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike

from vieval_plugin.stats.bootstrap import Ints
from vieval_plugin.stats.correlation import Floats


def ranks(mean_scores: ArrayLike) -> Floats:
    """Ranks of image models by their mean scores.

    Args:
        mean_scores: a finite mean score for each image model, shape (models,); higher is better.

    Returns:
        Shape (models,), from 1 (the highest mean) to the number of models; ties get their average
        rank.

    >>> ranks([0.2, 0.9, 0.2]).tolist()
    [2.5, 1.0, 2.5]
    """
    return scipy.stats.rankdata(-np.asarray(mean_scores, dtype=float))


def footrule(mean_scores: ArrayLike, reference_means: ArrayLike) -> float:
    """Spearman's footrule between two rankings of the same image models: the sum of absolute
    differences of ranks.

    Args:
        mean_scores: mean scores by one annotator, shape (models,).
        reference_means: mean scores by the other, shape (models,), on any scale.

    Returns:
        0 for the same ranking, at most half the square of the number of models.

    Source: Spearman 1906; as used in VIEScore (Ku et al., ACL 2024), Table 5.

    >>> footrule([3, 2, 1], [3, 1, 2])
    2.0
    """
    return float(np.abs(ranks(mean_scores) - ranks(reference_means)).sum())


def resampled_means(scores: ArrayLike, counts: Ints) -> Floats:
    """The mean score of each image model in each resample of a bootstrap over items,
    such as prompts.

    Args:
        scores: shape (models, items), in any unit; NaN where a model was not given an item or has
            no score.
        counts: number of occurrences of each item in each resample, shape (resamples, items); see
            `bootstrap.cluster_counts`.

    Returns:
        Shape (resamples, models); NaN for a model of which a resample has no item.

    >>> resampled_means([[1.0, 3.0], [2.0, np.nan]], np.array([[1, 1], [0, 2]]))
    array([[ 2.,  2.],
           [ 3., nan]])
    """
    table = np.asarray(scores, dtype=float)
    is_scored = ~np.isnan(table)
    sums = counts @ np.where(is_scored, table, 0.0).T
    numbers = counts @ is_scored.T
    means = np.full(sums.shape, np.nan)
    return np.asarray(np.divide(sums, numbers, out=means, where=numbers > 0))


def resampled_rankings(
    means: ArrayLike, reference_means: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    """`footrule`, Spearman's rho and Kendall's tau-b between the ranking of each
    resample and a fixed reference ranking.

    Args:
        means: mean scores of each resample, shape (resamples, models); see `resampled_means`.
        reference_means: mean scores by the other, shape (models,), on any scale.

    Returns:
        Each of shape (resamples,); NaN for a resample in which a model has no mean, or where the
        statistic is undefined.

    >>> [values.round(4).tolist() for values in resampled_rankings([[3, 2, 1], [1, 2, np.nan]], [3, 1, 2])]
    [[2.0, nan], [0.5, nan], [0.3333, nan]]
    """
    resampled = np.asarray(means, dtype=float)
    is_complete = ~np.isnan(resampled).any(axis=1)
    resampled_ranks = np.asarray(scipy.stats.rankdata(-resampled[is_complete], axis=1))
    reference_ranks = ranks(reference_means)
    model_a, model_b = np.triu_indices(resampled.shape[1], k=1)
    signs = np.sign(resampled_ranks[:, model_a] - resampled_ranks[:, model_b])
    sign = np.sign(reference_ranks[model_a] - reference_ranks[model_b])
    centred_ranks = resampled_ranks - (resampled.shape[1] + 1) / 2
    centred_reference = reference_ranks - (resampled.shape[1] + 1) / 2
    distances = np.abs(resampled_ranks - reference_ranks).sum(axis=1)
    statistics = (
        distances,
        _cosines(centred_ranks, centred_reference),
        _cosines(signs, sign),
    )
    shares = np.full((3, len(resampled)), np.nan)
    shares[:, is_complete] = statistics
    footrules, rhos, taus = shares
    return footrules, rhos, taus


def _cosines(rows: Floats, reference: Floats) -> Floats:
    """The cosine of each row's angle with a reference; NaN where one is 0."""
    squares = (rows**2).sum(axis=1) * (reference**2).sum()
    norms = np.sqrt(squares)
    cosines = np.full(len(rows), np.nan)
    np.divide(rows @ reference, norms, out=cosines, where=squares > 0)
    return cosines


def holm(p_values: ArrayLike) -> Floats:
    """P-values of a family of tests, adjusted so that the chance of any false rejection stays at
    the level.

    Args:
        p_values: shape (tests,), in [0, 1]; NaN marks a test that was not possible and is no part
            of the family.

    Returns:
        Shape (tests,), in [0, 1], none below the one given; NaN where that is.

    Source: Holm 1979, A simple sequentially rejective multiple test procedure.

    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    adjusted = np.full(p.shape, np.nan)
    tests = int((~np.isnan(p)).sum())
    order = np.argsort(p, kind="stable")[:tests]  # NaN sorts last
    factors = np.arange(len(order), 0, -1)
    products = np.maximum.accumulate(p[order] * factors)
    adjusted[order] = np.minimum(1.0, products)
    return adjusted


def rank_ranges(beats: ArrayLike) -> tuple[Ints, Ints]:
    """The best and the worst rank of each system that pairwise tests leave.

    The best is 1 and the number of systems that are significantly better, the worst the number of
    all less those that are significantly worse. Significance is not transitive: of a > b > c where
    only a beats c, a has 1-2, b 1-3, c 2-3.

    Args:
        beats: True where the system of the row is significantly better (after `holm`) than that of
            the column, shape (systems, systems).

    Returns:
        Whole numbers from 1, each of shape (systems,).

    Raises:
        ValueError: for a matrix of another shape, or two systems that beat each other.

    >>> [ranks.tolist() for ranks in rank_ranges([[0, 0, 1], [0, 0, 0], [0, 0, 0]])]
    [[1, 1, 2], [2, 3, 3]]
    """
    wins = np.asarray(beats, dtype=bool)
    is_square = wins.ndim == 2 and wins.shape[0] == wins.shape[1]
    if not is_square or (wins & wins.T).any():
        raise ValueError(
            "`beats` must be a square matrix in which no two systems beat each other"
        )
    best = np.asarray(1 + wins.sum(axis=0), dtype=np.int64)
    worst = np.asarray(len(wins) - wins.sum(axis=1), dtype=np.int64)
    return best, worst
