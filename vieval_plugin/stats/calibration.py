"""Calibration of a judge's scores to people's ratings by isotonic regression, and whether it
helps on held-out labels.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from vieval_plugin.stats.bootstrap import (
    Seed,
    cluster_counts,
    expanded_interval,
    factorize,
    group_sums,
)
from vieval_plugin.stats.comparison import Bools
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.decisions import (
    INTERVAL_REACH,
    LEAST_LABELS,
    LEAST_PROMPTS,
    POWER_REACH,
)
from vieval_plugin.stats.estimate import Estimate

#: Parts of the prompts that are held out in turn.
FOLDS = 20
#: The largest number of labels that is advised: more nobody gives for a calibration.
MOST_LABELS = 1000
_POWER = (
    (INTERVAL_REACH + POWER_REACH) / INTERVAL_REACH
)  # of an interval's reach: 0 is outside of the intervals of four of five samples


class Labels(NamedTuple):
    """Labels, one an image: a judge's score, people's mean rating, and task type, prompt and
    generator by name.

    No two task types have a prompt of one name.
    """

    scores: Floats
    ratings: Floats
    kinds: Sequence[str]
    prompts: Sequence[str]
    generators: Sequence[str]

    @property
    def large_kinds(self) -> list[str]:
        """Task types with labels enough for a function of their own; the others take the common
        one, of all labels.
        """
        return [
            kind
            for kind in dict.fromkeys(self.kinds)
            if self.in_kinds([kind]).are_enough
        ]

    @property
    def are_enough(self) -> bool:
        """True where they are enough to fit a function, and to hold some out."""
        return len(self.kinds) >= LEAST_LABELS and len({*self.prompts}) >= LEAST_PROMPTS

    def in_kinds(self, kinds: Collection[str]) -> Labels:
        """Return the labels of some task types."""
        return self.where(np.isin(self.kinds, list(kinds)))

    def where(self, mask: Bools) -> Labels:
        """Return the labels that a mask has, shape (labels,)."""
        names = (
            [name for name, is_kept in zip(column, mask, strict=True) if is_kept]
            for column in self[2:]
        )
        return Labels(
            self.scores[mask],
            self.ratings[mask],
            *names,
        )


class Improvement(NamedTuple):
    """Squared error of calibrated scores less that of raw scores, and less that of the best
    constant.

    `over_raw` and `over_constant` are on held-out labels, `apparent` on those that each was fitted
    on.
    """

    over_raw: Estimate
    over_constant: Estimate
    apparent: tuple[float, float]

    @property
    def accepted(self) -> bool:
        """True where both intervals lie below 0."""
        return self.over_raw.high < 0 and self.over_constant.high < 0

    def labels_needed(self, labels: int) -> int | None:
        """The number of labels, from 10 to 10, with which four of five attempts would be accepted,
        as far as these tell.

        With ever more labels the held-out and the apparent difference meet halfway, at a rate of
        one by their number, and intervals shrink with its root. None where neither `MOST_LABELS`
        nor ten times as many would do.
        """
        fewest = 10 * math.ceil(labels / 10)
        largest = min(10 * labels, MOST_LABELS)
        numbers = np.arange(fewest, largest + 1, 10)
        share = labels / numbers
        bounds = []
        for estimate, apparent in zip(self[:2], self.apparent, strict=True):
            middle = (estimate.value + apparent) / 2
            center = middle + (estimate.value - apparent) / 2 * share
            reach = _POWER * (estimate.high - estimate.value) * np.sqrt(share)
            bounds.append(center + reach)
        sufficient = numbers[np.max(bounds, axis=0) < 0]
        return next((int(number) for number in sufficient), None)


def isotonic_fit(scores: ArrayLike, ratings: ArrayLike) -> tuple[Floats, Floats]:
    """The increasing function of scores that is nearest to people's ratings by squared error.

    Args:
        scores: the judge's, shape (labels,), on its own scale.
        ratings: people's means, shape (labels,), in their unit.

    Returns:
        Its knots, scores and ratings, for `numpy.interp`: straight between two of them, constant
        beyond the first and last.

    Source: Barlow et al. 1972, Statistical Inference under Order Restrictions (pool adjacent
    violators).

    >>> isotonic_fit([0.2, 0.4, 0.6, 0.8], [0.1, 0.5, 0.3, 0.9])
    (array([0.2, 0.4, 0.6, 0.8]), array([0.1, 0.4, 0.4, 0.9]))
    """
    levels, index, counts = np.unique(scores, return_inverse=True, return_counts=True)
    rating_sums = np.bincount(index, np.asarray(ratings, dtype=float))
    fitted = isotonic_regression(rating_sums / counts, weights=counts).x
    steps = np.diff(fitted, prepend=-np.inf, append=np.inf) > 0
    is_knot = steps[:-1] | steps[1:]
    return levels[is_knot], fitted[is_knot]


def fits(labels: Labels) -> dict[str, tuple[Floats, Floats]]:
    """The knots of each task type, fitted on its labels or, where these are few, on all."""
    large = labels.large_kinds
    knots = dict.fromkeys(labels.kinds, isotonic_fit(labels.scores, labels.ratings))
    for kind in large:
        kind_labels = labels.in_kinds([kind])
        knots[kind] = isotonic_fit(kind_labels.scores, kind_labels.ratings)
    return knots


def held_out(
    labels: Labels,
    seed: Seed | None,
    by_generator: bool = False,
) -> Floats:
    """Predict each label from labels with other prompts, of its task type or of all, a twentieth of
    the prompts at a time.

    Args:
        labels: all of them.
        seed: of the parts of the prompts; None to leave nothing out.
        by_generator: predict it from labels of other generators alone.

    Returns:
        Calibrated scores, and the mean and the median of the labels that they were fitted on, shape
        (3, labels); NaN where none are left.
    """
    names, prompt = factorize(labels.prompts)
    rng = np.random.default_rng(seed)
    fold = (rng.permutation(len(names)) % FOLDS)[prompt]
    kinds = np.array(labels.kinds)
    large = labels.large_kinds
    stratum = factorize([kind if kind in large else "" for kind in labels.kinds])[1]
    columns = stratum, fold, factorize(labels.generators)[1] * by_generator
    predicted = np.full((3, len(fold)), np.nan)
    for values in {*zip(*(column.tolist() for column in columns), strict=True)}:
        in_stratum, in_fold, is_own = (
            column == value for column, value in zip(columns, values, strict=True)
        )
        test = in_stratum & in_fold & is_own
        same_function = in_stratum | (kinds[test][0] not in large)
        train = (
            same_function & ~(in_fold & (seed is not None)) & ~(is_own & by_generator)
        )
        if train.any():
            predicted[:, test] = _predictions(labels, train, test)
    return predicted


def _predictions(
    labels: Labels,
    train: Bools,
    test: Bools,
) -> Floats:
    """Ratings of held-out labels by the function fitted on the others, their mean and
    their median; one row each.
    """
    ratings = labels.ratings[train]
    held_out = labels.scores[test]
    fitted = np.interp(held_out, *isotonic_fit(labels.scores[train], ratings))
    constants = np.array([[ratings.mean()], [np.median(ratings)]])
    constant_rows = np.broadcast_to(constants, (2, len(held_out)))
    return np.vstack([fitted, constant_rows])


def improvement(
    labels: Labels,
    predicted: Floats,
    resamples: int,
    seed: Seed,
) -> Improvement:
    """Compare squared errors on held-out labels, with 95% intervals by a paired bootstrap over
    prompts.

    Args:
        labels: as they were given to `held_out`.
        predicted: by `held_out`.
        resamples: of the bootstrap.
        seed: its own.

    >>> people = np.random.default_rng(0).uniform(size=200)
    >>> labels = Labels(people**3, people, ["tig"] * 200, [f"prompt {number}" for number in range(200)], ["model"] * 200)
    >>> improvement(labels, held_out(labels, 0), 200, 0).accepted
    True
    """
    names, _ = factorize(labels.prompts)
    counts = cluster_counts(
        [str(name) for name in names],
        resamples,
        seed,
    )
    calibrated, constant, _ = (predicted - labels.ratings) ** 2
    fitted, mean, _ = (held_out(labels, None) - labels.ratings) ** 2
    raw = (labels.scores - labels.ratings) ** 2

    def gain(differences: Floats) -> Estimate:
        sums, items = group_sums(differences, labels.prompts)
        means = counts @ sums / (counts @ items)
        low, high = expanded_interval(means, len(names))
        return Estimate(
            value=float(sums.sum() / items.sum()),
            low=low,
            high=high,
        )

    apparent = float((fitted - raw).mean()), float((fitted - mean).mean())
    return Improvement(
        over_raw=gain(calibrated - raw),
        over_constant=gain(calibrated - constant),
        apparent=apparent,
    )


def refused_kinds(
    labels: Labels,
    predicted: Floats,
    resamples: int,
    seed: Seed,
) -> dict[str, Improvement]:
    """Task types with a function of their own that is not shown to be better, each by its own
    held-out labels.

    Args:
        labels, predicted, resamples, seed: as for `improvement`.
    """
    refused = {}
    for kind in labels.large_kinds:
        is_own = np.array(labels.kinds) == kind
        own_labels = labels.where(is_own)
        better = improvement(own_labels, predicted[:, is_own], resamples, seed)
        if not better.accepted:
            refused[kind] = better
    return refused


def tied_share(scores: Sequence[float], prompts: Sequence[Hashable]) -> float:
    """The share of pairs on one prompt whose scores are equal, in [0, 1]; NaN without such pairs.

    >>> tied_share([0.5, 0.5, 0.7, 0.5], ["a", "a", "a", "b"]).__round__(3)
    0.333
    """
    prompt_scores = list(zip(prompts, scores, strict=True))
    by_prompt = np.bincount(factorize(prompts)[1])
    by_score = np.bincount(factorize(prompt_scores)[1])
    pairs = (by_prompt * (by_prompt - 1)).sum()
    ties = (by_score * (by_score - 1)).sum()
    if pairs:
        return float(ties / pairs)
    return math.nan
