"""Agreement of human raters with one another."""

from __future__ import annotations

from typing import Literal

import krippendorff
import numpy as np
from numpy.typing import ArrayLike, NDArray

from vieval_plugin.stats.correlation import Floats, Kind, correlation, resampled_correlations


def rater_mean(ratings: ArrayLike, added_last: int | None = None) -> Floats:
    """Mean over raters, shape (items,), of ratings of shape (raters, items).

    With `added_last` the sum is taken in floating point with that rater last, which decides how near-ties fall; without
    it the mean is rounded to nine decimals so that equal means are equal.

    >>> rater_mean([[0.0, 1.0], [0.5, 1.0], [1.0, 1.0]]).tolist()
    [0.5, 1.0]
    """
    values = np.asarray(ratings, dtype=float)
    if added_last is None:
        return np.asarray(np.round(values.mean(axis=0), 9))
    total = np.zeros(values.shape[1])
    for rater in [r for r in range(len(values)) if r != added_last] + [added_last]:
        total = total + values[rater]
    return np.asarray(total / len(values))


def mean_of_given(ratings: ArrayLike) -> Floats:
    """Mean over the raters who gave a rating, shape (items,), of ratings of shape (raters, items) in which NaN is none.

    Rounded as in `rater_mean`; NaN where no rater gave one.

    >>> mean_of_given([[1.0, float("nan")], [2.0, float("nan")], [float("nan"), 3.0]]).tolist()
    [1.5, 3.0]
    """
    values = np.asarray(ratings, dtype=float)
    given = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.round(np.where(given, values, 0.0).sum(axis=0) / given.sum(axis=0), 9))


def impute_mean(ratings: ArrayLike) -> Floats:
    """Ratings of shape (raters, items) with each that is missing (NaN) filled by the mean of the item's other raters.

    >>> impute_mean([[1.0, 4.0], [2.0, float("nan")], [float("nan"), 3.0]]).tolist()
    [[1.0, 4.0], [2.0, 3.5], [1.5, 3.0]]
    """
    values = np.asarray(ratings, dtype=float)
    return np.asarray(np.where(np.isnan(values), mean_of_given(values), values))


def leave_one_out(ratings: ArrayLike, kind: Kind = "spearman") -> Floats:
    """Correlation of each rater with the mean of the others, shape (raters,); ratings have shape (raters, items).

    NaN where undefined. Two raters or more are needed, else ValueError. Source: VIEScore, "human-human correlation".

    >>> leave_one_out([[0, 1, 2], [0, 1, 2], [2, 1, 0]]).round(3).tolist()
    [nan, nan, -1.0]
    """
    values = _two_or_more(ratings)
    return np.array([correlation(values[r], _others(values, r), kind) for r in range(len(values))])


def leave_one_out_resampled(ratings: ArrayLike, counts: NDArray[np.int64], kind: Kind = "spearman") -> Floats:
    """`leave_one_out` in each bootstrap draw, shape (raters, draws); `counts` as for `resampled_correlations`."""
    values = _two_or_more(ratings)
    return np.array([resampled_correlations(values[r], _others(values, r), counts, kind) for r in range(len(values))])


def krippendorff_alpha(
    ratings: ArrayLike, level: Literal["nominal", "ordinal", "interval", "ratio"] = "ordinal"
) -> float:
    """Krippendorff's alpha of ratings of shape (raters, items), at most 1; NaN marks a rating not given.

    `level` is `nominal`, `ordinal`, `interval` or `ratio`. NaN when every rating is the same. Computed by the
    `krippendorff` package (Krippendorff 2011).

    >>> krippendorff_alpha([[0, 1, 0, 1], [0, 1, 0, 1]])
    1.0
    """
    values = np.asarray(ratings, dtype=float)
    if len(np.unique(values[~np.isnan(values)])) < 2:
        return float("nan")
    return float(krippendorff.alpha(reliability_data=values, level_of_measurement=level))


def _others(values: Floats, rater: int) -> Floats:
    return rater_mean(np.delete(values, rater, axis=0))


def _two_or_more(ratings: ArrayLike) -> Floats:
    values = np.asarray(ratings, dtype=float)
    if values.ndim != 2 or len(values) < 2:
        raise ValueError(f"ratings of two or more raters are needed, shape (raters, items), not {values.shape}")
    return values
