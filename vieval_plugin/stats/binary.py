"""Binary labels and preferences: area under the ROC curve, accuracy on pairs, and the scores of
Winoground and EqBen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from vieval_plugin.stats.correlation import Floats, Ints


def auroc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Area under the ROC curve: the share of (1, 0) pairs of items in which the 1 has the higher
    score.

    Equal scores count half: the statistic of Mann and Whitney over the number of such pairs.

    Args:
        labels: 0 or 1 (or False and True), shape (items,).
        scores: the judge's score of each item, shape (items,), on any scale; infinite ones are in
            order.

    Returns:
        The area, in [0, 1], 0.5 by chance; NaN where one class is missing.

    Raises:
        ValueError: for another label, a NaN, or vectors of different lengths.

    Source: Mann and Whitney 1947; Hanley and McNeil 1982 (that it is the area).

    >>> auroc([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.9])
    0.875
    """
    counts = np.ones((1, np.size(labels)), dtype=np.int64)
    return float(resampled_auroc(labels, scores, counts)[0])


def resampled_auroc(
    labels: ArrayLike,
    scores: ArrayLike,
    counts: Ints,
) -> Floats:
    """`auroc` in each bootstrap resample, for its interval. Equal to repeating the items.

    Args:
        labels: as for `auroc`, shape (items,).
        scores: as for `auroc`, shape (items,).
        counts: number of occurrences of each item in each resample, shape (resamples, items).

    Returns:
        Shape (resamples,), in [0, 1]; NaN for a resample without one of the classes.

    Raises:
        ValueError: as `auroc` does.

    >>> resampled_auroc([0, 1, 1], [0.5, 0.5, 0.9], np.array([[1, 1, 1], [1, 2, 0], [0, 1, 2]]))
    array([0.75, 0.5 ,  nan])
    """
    label_values, score_values = _vectors(labels, scores)
    if not np.isin(label_values, (0, 1)).all():
        raise ValueError("labels must be 0 or 1")
    if len(label_values) == 0:
        return np.full(len(counts), np.nan)
    order = np.argsort(score_values, kind="stable")
    _, starts = np.unique(score_values[order], return_index=True)
    # by group of equal scores: how many ones and how many zeros each draw has there
    by_label = []
    for label in (1, 0):
        labelled_counts = counts * (label_values == label)
        by_label.append(np.add.reduceat(labelled_counts[:, order], starts, axis=1))
    positives, negatives = by_label
    # a 1 wins against all zeros of lower groups and half of its own group's; doubled, so that all
    # stays whole
    doubled_wins = 2 * np.cumsum(negatives, axis=1) - negatives
    twice_won = (positives * doubled_wins).sum(axis=1)
    pairs = positives.sum(axis=1) * negatives.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(twice_won / (2 * pairs))


def preference_points(
    preferred_first: ArrayLike,
    score_first: ArrayLike,
    score_second: ArrayLike,
) -> Floats:
    """Points of preference pairs, whose mean is how often the one that people prefer has the higher
    score.

    A pair counts 1 if scores and label say the same, a half if just one of them is a tie, and 0 if
    they contradict each other: `1 - |label - what the scores say|`. Scores are tied where equal.

    Args:
        preferred_first: 1 where people prefer the first, 0 the second, 0.5 for a tie, shape
            (pairs,).
        score_first: the judge's score of the first, shape (pairs,), on any scale.
        score_second: that of the second, shape (pairs,).

    Returns:
        Shape (pairs,), each 0, 0.5 or 1.

    Raises:
        ValueError: for another label, a NaN, or vectors of different lengths.

    Source: the code of Kirstain et al. 2023 (Pick-a-Pic), whose threshold below which scores are
    tied is 0 here.

    >>> preference_points([1, 0, 0.5, 1], [0.9, 0.8, 0.3, 0.2], [0.1, 0.9, 0.3, 0.2]).tolist()
    [1.0, 1.0, 1.0, 0.5]
    """
    label, first, second = _vectors(preferred_first, score_first, score_second)
    if not np.isin(label, (0, 0.5, 1)).all():
        raise ValueError(
            "labels must be 1 (the first is preferred), 0 (the second) or 0.5 (a tie)"
        )
    says = np.where(
        first > second,
        1.0,
        np.where(first < second, 0.0, 0.5),
    )
    return 1 - np.abs(label - says)


def right_points(scores: ArrayLike) -> Floats:
    """Points of examples in which a judge gets images and texts that differ in little right: by
    text, image and group.

    Text: each image scores strictly higher with its own text than with the other. Image: each text
    scores strictly higher with its own image than with the other. Group: both.

    Args:
        scores: how well a text fits an image, shape (examples, 2 images, 2 texts), on any scale;
            image i belongs to text i, and NaN marks a score that is not there.

    Returns:
        Shape (3, examples), each 1 or 0; NaN for an example without all four scores. The means are
        the three scores.

    Raises:
        ValueError: for another shape.

    Source: Thrush et al. 2022 (Winoground), equations 1-3.

    >>> right_points([[[0.9, 0.2], [0.3, 0.8]], [[0.9, 0.2], [0.5, 0.5]]]).tolist()
    [[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]]
    """
    table = np.asarray(scores, dtype=float)
    if table.ndim != 3 or table.shape[1:] != (2, 2):
        raise ValueError(
            f"scores must have shape (examples, 2 images, 2 texts), got {table.shape}"
        )
    # a row an image, a column a text: those that belong together are on the diagonal
    (first_match, first_mismatch), (second_mismatch, second_match) = table.transpose(
        1, 2, 0
    )
    text = (first_match > first_mismatch) & (second_match > second_mismatch)
    image = (first_match > second_mismatch) & (second_match > first_mismatch)
    mask = np.isnan(table).any(axis=(1, 2))
    return np.where(
        mask,
        np.nan,
        [text, image, text & image],
    )


def resampled_mean(values: ArrayLike, counts: Ints) -> Floats:
    """Mean of a vector in each bootstrap resample, for the interval of a mean or a share.

    Args:
        values: shape (items,), in any unit; NaN entries are left out.
        counts: number of occurrences of each item in each resample, shape (resamples, items).

    Returns:
        Shape (resamples,), in the unit of `values`; NaN where nothing is left.

    >>> resampled_mean([0.0, 1.0, float("nan")], np.array([[1, 1, 1], [1, 3, 0], [0, 0, 3]]))
    array([0.5 , 0.75,  nan])
    """
    values = np.asarray(values, dtype=float)
    is_defined = ~np.isnan(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        sums = counts @ np.where(is_defined, values, 0.0)
        return np.asarray(sums / (counts @ is_defined))


def _vectors(*arrays: ArrayLike) -> list[Floats]:
    vectors = [np.asarray(array, dtype=float) for array in arrays]
    shapes = {vector.shape for vector in vectors}
    if vectors[0].ndim != 1 or len(shapes) > 1:
        raise ValueError(
            "vectors must have the same length, got shapes "
            f"{[vector.shape for vector in vectors]}"
        )
    if any(np.isnan(vector).any() for vector in vectors):
        raise ValueError(
            "labels and scores must not be NaN; leave out items without them"
        )
    return vectors
