"""Agreement of human annotators with one another, and what is made of their ratings before a
judge is compared with them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from vieval_plugin.stats.correlation import (
    Coefficient,
    Floats,
    Ints,
    correlation,
    resampled_correlations,
)

Level: TypeAlias = Literal["nominal", "ordinal", "interval"]

# bounds the memory of the comparison of all values with all: 8 MB an array of doubles
_CELLS_AT_ONCE = 1_000_000


def annotator_mean(ratings: ArrayLike, added_last: int | None = None) -> Floats:
    """Mean over annotators: what a judge's score of an item is compared with.

    With `added_last` the sum is taken in floating point with that annotator last, which decides how
    near-ties fall; without it the mean is rounded to nine decimals so that equal means are equal.

    Args:
        ratings: shape (annotators, items), on any scale.
        added_last: the index of the annotator whom a published computation adds last.

    Returns:
        Shape (items,), on the scale of the ratings; NaN for an item that a annotator did not rate
        (see `mean_of_known`).

    >>> annotator_mean([[0.0, 1.0], [0.5, 1.0], [1.0, 1.0]]).tolist()
    [0.5, 1.0]
    """
    values = np.asarray(ratings, dtype=float)
    if added_last is None:
        return np.asarray(np.round(values.mean(axis=0), 9))
    total = np.zeros(values.shape[1])
    preceding = [
        annotator for annotator in range(len(values)) if annotator != added_last
    ]
    for annotator in [*preceding, added_last]:
        total = total + values[annotator]
    return total / len(values)


def leave_one_out_points(labels: Sequence[float]) -> list[float]:
    """Points of an item's labels, 1 for one that most of the others have; none where these tie.

    Args:
        labels: 0 or 1 of each annotator.

    >>> leave_one_out_points([1, 1, 1, 0, 1]), leave_one_out_points([1, 0])
    ([1.0, 1.0, 1.0, 0.0, 1.0], [0.0, 0.0])
    """
    total = sum(labels)
    other_annotators = len(labels) - 1
    points = []
    for label in labels:
        doubled = 2 * (total - label)
        if doubled != other_annotators:
            points.append(float(label == (doubled > other_annotators)))
    return points


def mean_of_known(ratings: ArrayLike) -> Floats:
    """Mean over the annotators whose ratings are known, rounded as in `annotator_mean`.

    Args:
        ratings: shape (annotators, items), on any scale; NaN marks a missing rating.

    Returns:
        Shape (items,), on the scale of the ratings; NaN where no annotator gave one.

    >>> mean_of_known([[1.0, float("nan")], [2.0, float("nan")], [float("nan"), 3.0]]).tolist()
    [1.5, 3.0]
    """
    values = np.asarray(ratings, dtype=float)
    is_rated = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        sums = np.where(is_rated, values, 0.0).sum(axis=0)
        return np.asarray(np.round(sums / is_rated.sum(axis=0), 9))


def impute_mean(ratings: ArrayLike) -> Floats:
    """Ratings with each that is missing filled by the mean of the item's other annotators.

    Args:
        ratings: shape (annotators, items), on any scale; NaN marks a missing rating.

    Returns:
        Shape (annotators, items), on the scale of the ratings; NaN where no annotator gave one.

    >>> impute_mean([[1.0, 4.0], [2.0, float("nan")], [float("nan"), 3.0]]).tolist()
    [[1.0, 4.0], [2.0, 3.5], [1.5, 3.0]]
    """
    values = np.asarray(ratings, dtype=float)
    return np.where(
        np.isnan(values),
        mean_of_known(values),
        values,
    )


def leave_one_out(ratings: ArrayLike, coefficient: Coefficient = "spearman") -> Floats:
    """Correlation of each annotator with the mean of the others: the ceiling a judge may be
    measured by.

    Args:
        ratings: shape (annotators, items), two annotators or more, on any scale.
        coefficient: as for `correlation.correlation`.

    Returns:
        Shape (annotators,), each in [-1, 1]; NaN where a annotator, or the mean of the others, is
        constant.

    Raises:
        ValueError: for fewer than two annotators, or another shape.

    Source: VIEScore (Ku et al., ACL 2024), "human-human correlation".

    >>> leave_one_out([[0, 1, 2], [0, 1, 2], [2, 1, 0]]).round(3).tolist()
    [nan, nan, -1.0]
    """
    values = _two_or_more(ratings)
    correlations = []
    for annotator, annotator_ratings in enumerate(values):
        other_mean = _mean_without(values, annotator)
        correlations.append(correlation(annotator_ratings, other_mean, coefficient))
    return np.array(correlations)


def leave_one_out_resampled(
    ratings: ArrayLike,
    counts: Ints,
    coefficient: Coefficient = "spearman",
) -> Floats:
    """`leave_one_out` in each bootstrap resample, for its interval.

    Args:
        ratings: as for `leave_one_out`, shape (annotators, items).
        counts: number of occurrences of each item in each resample, shape (resamples, items).
        coefficient: as for `correlation.correlation`.

    Returns:
        Shape (annotators, resamples), each in [-1, 1]; NaN where undefined in a resample.

    Raises:
        ValueError: as `leave_one_out` does.

    >>> leave_one_out_resampled([[0, 1, 2], [0, 2, 1]], np.array([[1, 1, 1], [0, 1, 1]]))
    array([[ 0.5, -1. ],
           [ 0.5, -1. ]])
    """
    values = _two_or_more(ratings)
    correlations = []
    for rater, ratings in enumerate(values):
        correlations.append(
            resampled_correlations(
                ratings, _mean_without(values, rater), counts, coefficient
            )
        )
    return np.array(correlations)


def krippendorff_alpha(ratings: ArrayLike, level: Level = "ordinal") -> float:
    """Krippendorff's alpha: how far annotators agree beyond what the frequencies of the values
    alone would give.

    One less the observed over the expected disagreement. Observed: the mean of the squared
    difference of two ratings of one item by different annotators, each item weighing as many
    ratings as it has. Expected: the same over all pairs of ratings, of whichever items. Only items
    with two ratings or more enter either.

    Args:
        ratings: shape (annotators, items), any number of annotators; NaN marks a missing rating.
        level: what a difference is. `nominal`: 1 unless equal; `ordinal`: how many ratings lie
            between the two values, half of those at either included; `interval`: c - k.

    Returns:
        1 for perfect agreement, 0 for chance, below 0 for less; NaN where fewer than two different
        values are left.

    Source: Krippendorff 2011, Computing Krippendorff's Alpha-Reliability; Krippendorff, Content
    Analysis, chapter 12.

    >>> krippendorff_alpha([[0, 1, 0, 1], [0, 1, 0, 1]])
    1.0
    >>> nan = float("nan")
    >>> round(krippendorff_alpha([[1, 2, 3, nan], [1, 2, nan, 3], [1, 3, 3, 3]], "nominal"), 3)
    0.71
    """
    values = np.asarray(ratings, dtype=float)
    annotator_counts = (~np.isnan(values)).sum(axis=0)
    values = values[:, annotator_counts >= 2]
    is_rated = ~np.isnan(values)
    levels, level_index, counts = np.unique(
        values[is_rated], return_inverse=True, return_counts=True
    )
    if len(levels) < 2:
        return math.nan
    if level == "ordinal":
        # the ratings between two values, half of those at either, are the difference of the values'
        # mean ranks
        levels = np.cumsum(counts) - counts / 2
        values[is_rated] = levels[level_index.reshape(-1)]
    annotators_of_item = is_rated.sum(axis=0)
    observed = 0.0
    for annotator_a_ratings, annotator_b_ratings in permutations(values, 2):
        squares = _squared_differences(annotator_a_ratings, annotator_b_ratings, level)
        observed += np.nansum(squares / (annotators_of_item - 1))
    block = max(1, _CELLS_AT_ONCE // len(levels))
    expected = 0.0
    for start in range(0, len(levels), block):
        rows = slice(start, start + block)
        squares = _squared_differences(levels[rows, None], levels, level)
        expected += float(counts[rows] @ squares @ counts)
    return float(1 - (counts.sum() - 1) * observed / expected)


def _squared_differences(
    first_values: Floats,
    second_values: Floats,
    level: Level,
) -> Floats:
    """The squared difference of values that are broadcast against each other, NaN where either
    is.
    """
    if level == "nominal":
        is_undefined = np.isnan(first_values) | np.isnan(second_values)
        return np.where(is_undefined, np.nan, first_values != second_values)
    return (first_values - second_values) ** 2


def _mean_without(values: Floats, annotator: int) -> Floats:
    return annotator_mean(np.delete(values, annotator, axis=0))


def _two_or_more(ratings: ArrayLike) -> Floats:
    values = np.asarray(ratings, dtype=float)
    if values.ndim != 2 or len(values) < 2:
        raise ValueError(
            "ratings must have shape (annotators, items) with at least two annotators, "
            f"got {values.shape}"
        )
    return values
