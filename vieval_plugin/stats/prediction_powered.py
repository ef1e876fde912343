"""Means of people's ratings from many scores of a judge and a few ratings: prediction-powered
inference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy
from numpy.typing import ArrayLike

from vieval_plugin.stats.bootstrap import Ints, factorize
from vieval_plugin.stats.comparison import Bools
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.estimate import Estimate


class PredictionPoweredMean(NamedTuple):
    """The estimated mean of people's ratings, in their unit.

    `weight` is how much of the judge went in, in [0, 1]: 0 where its scores say nothing of
    people's. `deviations` are what each group adds to the estimate's error, by its name: their
    squares sum to its variance, of which `degrees` are the degrees of freedom, rated groups less
    strata.
    """

    mean: Estimate
    weight: float
    deviations: Mapping[Hashable, float] = MappingProxyType({})
    degrees: int = 0


#: Groups that an end of an interval counts more than were rated.
_MORE_GROUPS = 0.2

OfWeight: TypeAlias = Callable[[float], PredictionPoweredMean]


def prediction_powered_mean(
    ratings: ArrayLike,
    scores: ArrayLike,
    groups: Sequence[Hashable] | None = None,
    level: float = 0.95,
    strata: Sequence[Hashable] | None = None,
    weight: float | None = None,
) -> PredictionPoweredMean:
    """The mean that people's ratings would have over all items, of which people rated some and a
    judge scored all.

    The judge's mean over the unrated items, times a weight, plus what it misses on the rated ones.
    So the estimate is right on average however poor the judge is, if the rated items are a random
    part of all; the better the judge, the shorter the interval. The weight is the one that makes
    the interval shortest.

    Args:
        ratings: a rating an item, shape (items,), NaN where people gave none.
        scores: the judge's score of each item, shape (items,), on the same scale.
        groups: what each item was drawn together with, such as its prompt; none means that each was
            drawn by itself.
        level: the share of such intervals that hold the truth, in (0, 1); right for some 50 rated
            groups and more.
        strata: what each item was chosen for rating among, such as its kind, where of some a larger
            share was rated than of others: each counts by its number of items. Strata with fewer
            than two rated groups are taken together. A group lies in one stratum.
        weight: that of the judge, in [0, 1]; 0 leaves people's ratings alone. None for the one that
            makes the interval shortest.

    Returns:
        The estimate with its normal interval; NaN with fewer than two rated groups. Without unrated
        items the mean of ratings.

    Raises:
        ValueError: for other shapes, or a score that is not finite.

    Source: Angelopoulos, Duchi and Zrnic 2023, PPI++ (the estimator and its weight); sums over
    groups take the place of items, as in any linearised variance of clusters (Liang and Zeger
    1986); strata as in the combined regression estimator of Cochran 1977, Sampling Techniques,
    section 7.10.

    >>> ratings, scores = [0.9, 0.4, 0.6, np.nan, np.nan, np.nan], [1.0, 0.5, 0.7, 0.9, 0.3, 0.6]
    >>> round(prediction_powered_mean(ratings, scores).mean.value, 3)
    0.591
    """
    all_ratings = np.asarray(ratings, dtype=float)
    all_scores = np.asarray(scores, dtype=float)
    items = len(all_ratings)
    is_table = all_ratings.ndim == 1 and all_scores.shape == all_ratings.shape
    if not is_table or not np.isfinite(all_scores).all():
        raise ValueError(
            "each item must have a finite score and a rating (NaN if unrated)"
        )
    if groups is None:
        groups = range(items)
    if strata is None:
        strata = [0] * items
    names, members = factorize(groups)
    _, stratum_codes = factorize(strata)
    stratum = _joined(stratum_codes, members, ~np.isnan(all_ratings))
    parts = _strata(all_ratings, all_scores, members, stratum)
    if not parts or any(part.rated_groups < 2 for part in parts):
        undefined = Estimate(math.nan, reasons=("fewer than two rated prompts",))
        return PredictionPoweredMean(
            mean=undefined,
            weight=math.nan,
        )
    shares = np.array([part.items for part in parts]) / items
    if weight is None:
        weight = _best_weight(parts, shares)
    mean = math.fsum(
        share * part.mean(weight) for share, part in zip(shares, parts, strict=True)
    )
    deviations = _group_deviations(parts, shares, weight, len(names))
    published = deviations
    # the authors' interval of one stratum is without that correction
    if len(parts) == 1:
        published = parts[0].deviations(weight, len(names))
    quantile = float(scipy.stats.norm.ppf(0.5 + level / 2))
    estimate = _mean_interval(mean, published, quantile)
    deviation_by_group = dict(zip(names, deviations.tolist(), strict=True))
    degrees = sum(part.rated_groups for part in parts) - len(parts)
    return PredictionPoweredMean(
        mean=estimate,
        weight=weight,
        deviations=deviation_by_group,
        degrees=degrees,
    )


def _strata(
    ratings: Floats,
    scores: Floats,
    members: Ints,
    stratum: Ints,
) -> list[_Stratum]:
    parts = []
    for number in np.unique(stratum):
        inside = stratum == number
        part = _Stratum.from_items(ratings[inside], scores[inside], members[inside])
        parts.append(part)
    return parts


def _group_deviations(
    parts: Sequence[_Stratum],
    shares: Floats,
    weight: float,
    groups: int,
) -> Floats:
    """Contribution of each group to the error of the mean over strata."""
    deviations = np.zeros(groups)
    for share, part in zip(shares, parts, strict=True):
        # deviations from the mean of a few groups are too small
        correction = part.rated_groups / (part.rated_groups - 1)
        scale = share * math.sqrt(correction)
        deviations += scale * part.deviations(weight, groups)
    return deviations


def _best_weight(parts: Sequence[_Stratum], shares: Floats) -> float:
    """The weight of the judge that makes the interval shortest."""
    gained_terms = []
    needed_terms = []
    for share, part in zip(shares, parts, strict=True):
        gained_terms.append(share**2 * part.shared)
        needed_terms.append(share**2 * part.spread)
    needed = math.fsum(needed_terms)
    if needed > 0:
        return float(np.clip(math.fsum(gained_terms) / needed, 0, 1))
    return 0.0


def bounded_interval(
    powered: PredictionPoweredMean, groups: int
) -> tuple[float, float]:
    """The 95% interval of a mean on a scale from 0 to 1, which holds also where most ratings lie at
    one end.

    Each end is Student's, as if a fifth of a group more had been rated, whose mean is that end of
    the scale. Of few ratings that are nearly all 0 the normal interval is too short, and has no
    width where all are.

    Args:
        powered: of `prediction_powered_mean`.
        groups: how many were rated.

    Source: `bench/corrected_means.py` has its coverage.

    >>> zeros = prediction_powered_mean([0.0] * 20, [0.0] * 20)
    >>> [round(end, 2) for end in bounded_interval(zeros, 20)]
    [0.0, 0.06]
    """
    value = float(np.clip(powered.mean.value, 0, 1))
    deviations = powered.deviations.values()
    deviation_squares = math.fsum(deviation**2 for deviation in deviations)
    squares = groups * (groups - 1) * deviation_squares
    total = groups + _MORE_GROUPS
    quantile = float(scipy.stats.t.ppf(0.975, total - 1))
    ends = []
    for end, side in ((0.0, -1.0), (1.0, 1.0)):
        mean = (groups * value + _MORE_GROUPS * end) / total
        distance_square = (value - end) ** 2
        spread = squares + groups * _MORE_GROUPS / total * distance_square
        error = math.sqrt(spread / total / (total - 1))
        ends.append(mean + side * quantile * error)
    low, high = np.clip(ends, 0, 1).tolist()
    return low, high


def common_weight(first: OfWeight, second: OfWeight) -> float:
    """The one weight of the judge for both of two means that makes the interval of their difference
    shortest.

    With a weight for each mean, a judge that follows the prompts' difficulty and no more gets much
    weight, although difficulty cancels in the difference.

    Args:
        first, second: the mean of each by the weight of the judge, groups called alike; of two
            rated groups or more.

    Returns:
        The weight, in [0, 1]; 0 where all is rated.

    Source: as for `prediction_powered_mean`: the power-tuned weight, of the per-prompt difference
    where both are rated.

    >>> ratings, scores = [0.9, 0.4, 0.6, np.nan], [0.8, 0.4, 0.5, 0.7]
    >>> first = lambda weight: prediction_powered_mean(ratings, scores, weight=weight)
    >>> second = lambda weight: prediction_powered_mean([0.0, 0.0, 0.0, np.nan], [0.0] * 4, weight=weight)
    >>> round(common_weight(first, second), 2)
    1.0
    """
    rating_deviations = _deviations(first(0.0), second(0.0))
    corrected_deviations = _deviations(first(1.0), second(1.0))
    judge_deviations = rating_deviations - corrected_deviations
    squares = float(judge_deviations @ judge_deviations)
    if squares > 0:
        return float(np.clip(rating_deviations @ judge_deviations / squares, 0, 1))
    return 0.0


def prediction_powered_difference(
    first: PredictionPoweredMean,
    second: PredictionPoweredMean,
    level: float = 0.95,
    fitted: bool = False,
) -> tuple[Estimate, float]:
    """The difference of two estimated means, first less second, and its two-sided p-value.

    Groups that both have, such as prompts of which each made an image, count once: what the two
    have in common in them cancels.

    Args:
        first, second: of `prediction_powered_mean`, groups called alike.
        level: as for `prediction_powered_mean`.
        fitted: whether both have `common_weight`, which costs one degree of freedom.

    Returns:
        The estimate with its interval, and p in [0, 1], both by Student's t with the degrees of
        freedom of the mean that has fewer; NaN where one of the two is undefined.

    Source: as for `prediction_powered_mean`; the variance of a difference of two linearised
    estimates is the sum of squares of the differences of their contributions. Where all is rated,
    this is Student's paired t-test of groups.

    >>> better = prediction_powered_mean([0.9, 0.4, 0.6], [0.9, 0.4, 0.6], ["a", "b", "c"])
    >>> worse = prediction_powered_mean([0.7, 0.2, 0.5], [0.9, 0.4, 0.6], ["a", "b", "c"])
    >>> difference, p = prediction_powered_difference(better, worse)
    >>> round(difference.value, 3), round(p, 3)
    (0.167, 0.038)
    """
    if not (first.mean.defined and second.mean.defined):
        reasons = first.mean.reasons or second.mean.reasons
        return Estimate(math.nan, reasons=reasons), math.nan
    value = first.mean.value - second.mean.value
    all_degrees = min(first.degrees, second.degrees)
    degrees = max(all_degrees - fitted, 1)
    deviations = _deviations(first, second) * math.sqrt(all_degrees / degrees)
    error = math.sqrt(float((deviations**2).sum()))
    if error > 0:
        t_statistic = abs(value) / error
        p = float(2 * scipy.stats.t.sf(t_statistic, degrees))
    else:
        p = float(value == 0)
    t_quantile = scipy.stats.t.ppf(0.5 + level / 2, degrees)
    return _mean_interval(value, deviations, float(t_quantile)), p


def _deviations(first: PredictionPoweredMean, second: PredictionPoweredMean) -> Floats:
    """Contribution of each group to the error of the difference."""
    groups = {**first.deviations, **second.deviations}
    first_deviations = [first.deviations.get(group, 0.0) for group in groups]
    second_deviations = [second.deviations.get(group, 0.0) for group in groups]
    differences: Floats = np.array(first_deviations) - np.array(second_deviations)
    return differences


def _mean_interval(
    value: float,
    deviations: Floats,
    quantile: float,
) -> Estimate:
    reach = quantile * math.sqrt(float((deviations**2).sum()))
    return Estimate(
        value=value,
        low=value - reach,
        high=value + reach,
    )


@dataclass(frozen=True)
class _Stratum:
    """Items of which the rated ones are a random part. The best weight of the judge is `shared`
    over `spread`.
    """

    #: NaN of an item that people did not rate.
    ratings: Floats
    scores: Floats
    #: Their groups.
    members: Ints
    #: What the judge and people have in common in the variance of the mean.
    shared: float
    #: The judge's part of that variance.
    spread: float

    @classmethod
    def from_items(
        cls,
        ratings: Floats,
        scores: Floats,
        members: Ints,
    ) -> _Stratum:
        rated = ~np.isnan(ratings)
        n = int(rated.sum())
        unrated = int((~rated).sum())
        if not n or not unrated:
            return cls(
                ratings=ratings,
                scores=scores,
                members=members,
                shared=0.0,
                spread=0.0,
            )
        is_any = np.ones(len(scores), dtype=bool)
        score_deviations = _centred(scores, is_any, members)
        groups = len(np.unique(members))
        variance = (score_deviations**2).sum() / len(scores)
        spread = variance * groups / max(groups - 1, 1)
        products = _centred(ratings, rated, members) * _centred(scores, rated, members)
        shared = products.sum() / n
        inverse_counts = 1 / n + 1 / unrated
        return cls(
            ratings=ratings,
            scores=scores,
            members=members,
            shared=float(shared / n),
            spread=float(spread * inverse_counts),
        )

    @property
    def items(self) -> int:
        return len(self.ratings)

    @property
    def rated_groups(self) -> int:
        return len(np.unique(self.members[~np.isnan(self.ratings)]))

    def mean(self, weight: float) -> float:
        rated = ~np.isnan(self.ratings)
        if rated.all():
            return float(self.ratings.mean())
        residuals = (self.ratings - weight * self.scores)[rated]
        prediction = weight * self.scores[~rated].mean()
        return float(residuals.mean() + prediction)

    def deviations(
        self,
        weight: float,
        groups: int,
    ) -> Floats:
        """Contribution of each of all `groups` to the error of the mean; 0 of those in other
        strata.
        """
        rated = ~np.isnan(self.ratings)
        if rated.all():
            return _centred(self.ratings, rated, self.members, groups) / len(
                self.ratings
            )
        residuals = _centred(
            self.ratings - weight * self.scores, rated, self.members, groups
        )
        rating_deviations = residuals / rated.sum()
        scores = _centred(self.scores, ~rated, self.members, groups)
        score_deviations = weight * scores / (~rated).sum()
        return np.asarray(rating_deviations + score_deviations)


def _centred(
    values: Floats,
    where: Bools,
    members: Ints,
    groups: int = 0,
) -> Floats:
    """The sum over each group of how far its items among `where` lie above the mean of those."""
    mean = values[where].mean()
    deviations = np.where(where, values - mean, 0.0)
    return np.asarray(np.bincount(members, deviations, groups))


def _joined(
    stratum: Ints,
    members: Ints,
    rated: Bools,
) -> Ints:
    """Strata, those with fewer than two rated groups taken together, and with the next smallest
    if that is not enough.
    """
    joined: Ints = stratum.copy()
    while len(numbers := np.unique(joined)) > 1:
        group_counts = []
        for number in numbers:
            is_inside = rated & (joined == number)
            group_counts.append(len(np.unique(members[is_inside])))
        if min(group_counts) >= 2:
            break
        order = np.argsort(group_counts, kind="stable")
        smallest, following = numbers[order[:2]]
        joined[joined == smallest] = following
    return joined
