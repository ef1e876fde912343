"""Orders of generators from a judge's means and few labels, by a prior on how far ratings follow
scores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vieval_plugin.stats.bootstrap import Ints
from vieval_plugin.stats.correlation import Floats

#: Prior of the slope of people's ratings on a judge's scores: its mean, its standard deviation, and
#: the steepest slope.
PRIOR_SLOPE = 0.6
PRIOR_SPREAD = 0.4
STEEPEST_SLOPE = 1.5


class OrderLabels(NamedTuple):
    """Labels of images: the judge's scores, people's ratings, and generators and prompts by
    number, each (labels,).
    """

    scores: Floats
    ratings: Floats
    generators: Ints
    prompts: Ints


def order_values(judged: ArrayLike, labels: OrderLabels) -> Floats:
    """Values that generators are ordered by: the judge's means, drawn to people's as far as labels
    are sure.

    Args:
        judged: the judge's mean of each generator, shape (generators,).
        labels: of any of their images.

    Returns:
        Shape (generators,), in people's unit, less what all generators have in common; higher is
        better. A generator with fewer than two labels goes by the judge.

    Source: PROTOCOLS of this project, 16; Morris 1983, Parametric Empirical Bayes Inference.

    >>> labels = OrderLabels(*map(np.array, ([0.7, 0.7, 0.6, 0.6], [0.2, 0.3, 0.8, 0.9], [0, 0, 1, 1], [0, 1, 0, 1])))
    >>> order_values([0.7, 0.6], labels).round(2).tolist()
    [-0.3, 0.3]
    """
    means = np.asarray(judged, dtype=float)
    counts = np.bincount(labels.generators, minlength=len(means))
    base = _slope(labels) * (means - means.mean())
    is_labelled = counts >= 2
    if is_labelled.sum() < 2:
        return np.asarray(base)
    rating_sums = np.bincount(labels.generators, labels.ratings, len(means))
    rated = rating_sums / np.maximum(counts, 1)
    errors = _squared_errors(labels, rated, counts)
    errors[~is_labelled] = errors[is_labelled].mean()
    base = base - base[is_labelled].mean()
    labelled_gaps = rated - rated[is_labelled].mean() - base
    gaps = np.where(is_labelled, labelled_gaps, 0.0)
    excess = gaps @ gaps - errors[is_labelled].sum()
    spread = max(excess / is_labelled.sum(), 0.0)
    weights = np.zeros(len(means))
    if spread > 0:
        weights = spread / (spread + errors)
    return np.asarray(base + weights * gaps)


def _slope(labels: OrderLabels) -> float:
    """The slope of ratings on scores within prompts that two generators share, combined with its
    prior by precision.
    """
    counts = np.bincount(labels.prompts)
    is_shared = counts[labels.prompts] > 1
    prompts = labels.prompts[is_shared]
    scores = _within_prompts(labels.scores[is_shared], prompts)
    ratings = _within_prompts(labels.ratings[is_shared], prompts)
    squares = float(scores @ scores)
    slope = 0.0
    if squares > 0:
        slope = float(scores @ ratings) / squares
    residuals = ratings - slope * scores
    shared_prompts = int((counts > 1).sum())
    degrees = len(residuals) - shared_prompts - 1
    error = float(residuals @ residuals) / max(degrees, 1)
    if not (squares > 0 and error > 0):  # so few labels say nothing of a slope
        return PRIOR_SLOPE
    variance = error / squares
    weight = PRIOR_SPREAD**2 / (PRIOR_SPREAD**2 + variance)
    shrunk_slope = weight * slope + (1 - weight) * PRIOR_SLOPE
    return float(np.clip(shrunk_slope, 0, STEEPEST_SLOPE))


def _squared_errors(
    labels: OrderLabels,
    rated: Floats,
    counts: Ints,
) -> Floats:
    """Squared errors of people's means; what labels of one prompt have in common changes no
    order, and is left out.
    """
    residuals = labels.ratings - rated[labels.generators]
    is_shared = np.bincount(labels.prompts)[labels.prompts] > 1
    residuals = np.where(
        is_shared, _within_prompts(residuals, labels.prompts), residuals
    )
    squares = np.bincount(
        labels.generators,
        residuals**2,
        len(counts),
    )
    degrees = np.maximum(counts - 1, 1)
    return np.asarray(squares / degrees / np.maximum(counts, 1))


def _within_prompts(values: Floats, prompts: Ints) -> Floats:
    """Values less the mean of their prompt."""
    counts = np.bincount(prompts)
    means = np.bincount(prompts, values) / np.maximum(counts, 1)
    return np.asarray(values - means[prompts])
