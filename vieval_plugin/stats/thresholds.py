"""Votes from two scores, by two thresholds: how near is a tie, and how high is good.

No paper states the rule. Ours: scores no more than `tie` apart are a tie, which is "both good"
where their mean is at least `good`, else "both bad"; otherwise the higher score wins. Thresholds
are chosen on other groups than those that they are used on (`nested`), or, as an upper bound that
is no accuracy of a judge, on the same (`best_thresholds`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vieval_plugin.stats.bootstrap import Ints, Seed, factorize
from vieval_plugin.stats.comparison import Bools
from vieval_plugin.stats.correlation import Floats, paired_vectors
from vieval_plugin.stats.votes import (
    BOTH_BAD,
    BOTH_GOOD,
    FIRST,
    NONE,
    SECOND,
    TIE,
    VoteScheme,
)


class Thresholds(NamedTuple):
    """Scores no more than `tie` (>= 0) apart are tied; tied ones are both good where their mean
    is at least `good`.
    """

    tie: float
    good: float


def vote_of_scores(
    first: ArrayLike,
    second: ArrayLike,
    tie: float = 0.0,
    good: float = -math.inf,
) -> Ints:
    """The vote that two scores stand for, as the rule above says.

    Args:
        first: a judge's score of the first candidate, shape (contests,), on any scale.
        second: that of the second, shape (contests,).
        tie: scores no more than this apart are a tie; equal ones always are. By default only these.
        good: the mean from which on a tie is `BOTH_GOOD`. By default every tie is: the two kinds
            are not told apart.

    Returns:
        Codes of `votes`, shape (contests,); `NONE` where a score is NaN.

    Raises:
        ValueError: for a `tie` that is not >= 0, or for shapes that differ.

    >>> vote_of_scores([0.9, 0.5, 0.2, float("nan")], [0.1, 0.6, 0.2, 1.0], tie=0.2, good=0.5).tolist()
    [0, 2, 3, -1]
    """
    if not tie >= 0:
        raise ValueError(f"tie must be at least 0, got {tie}")
    first_scores, second_scores = paired_vectors(first, second)
    distance, middle = _distance_and_mean(first_scores, second_scores)
    tied = np.where(middle >= good, BOTH_GOOD, BOTH_BAD)
    winner = np.where(first_scores > second_scores, FIRST, SECOND)
    votes = np.where(distance <= tie, tied, winner)
    is_unscored = np.isnan(first_scores) | np.isnan(second_scores)
    return np.where(is_unscored, NONE, votes).astype(np.int64)


def best_thresholds(
    first: ArrayLike,
    second: ArrayLike,
    human: ArrayLike,
    scheme: VoteScheme = "four_way",
) -> Thresholds:
    """The thresholds of highest accuracy on these contests.

    Exact: of `tie`, 0 and each distance of a contest that people tie is tried, as raising it up to
    another contest only loses; of `good`, each mean of such a contest that is a tie then, and -inf
    (all ties are both good) and inf (both bad). Of several pairs that are equally accurate it is
    that of the smallest `tie`, then of the smallest `good`. Takes time in proportion to the square
    of the number of contests that people tie: 5 ms for 2,000.

    Args:
        first: as for `vote_of_scores`; a contest in which either score is NaN changes nothing.
        second: as for `vote_of_scores`.
        human: people's codes, shape (contests,).
        scheme: what is maximised. `three_way` does not tell ties apart: `good` is -inf; `decisive`
            wants no ties: `tie` is 0 too.

    Returns:
        The two thresholds, in the unit of the scores.

    Raises:
        ValueError: for shapes that differ.

    >>> best_thresholds([0.9, 0.5, 0.2], [0.1, 0.6, 0.2], [FIRST, BOTH_GOOD, BOTH_BAD]).good
    0.55
    """
    first_scores, second_scores = paired_vectors(first, second)
    human_votes = np.asarray(human)
    if human_votes.shape != first_scores.shape:
        shapes = f"{human_votes.shape} and {first_scores.shape}"
        raise ValueError(f"each contest must have one human vote, got shapes {shapes}")
    distance, middle = _distance_and_mean(first_scores, second_scores)
    won = _won_distances(distance, human_votes, first_scores > second_scores)
    tied = _tied_contests(human_votes, scheme, distance, middle)
    if scheme == "decisive" or len(tied) == 0:
        return Thresholds(
            tie=0.0,
            good=-math.inf,
        )
    distance = distance[tied]
    middle = middle[tied]
    good = human_votes[tied] == BOTH_GOOD
    separates_ties = scheme != "three_way"
    # how many of the n nearest are right under the best `good`, n from 0
    gained = _most_right(middle, good) if separates_ties else np.arange(len(tied) + 1)
    tie_candidates = np.unique(np.append(distance, 0.0))
    nearest = np.searchsorted(distance, tie_candidates, side="right")
    # argmax takes the first, which is the smallest
    tied_wins = np.searchsorted(won, tie_candidates, side="right")
    best = int(np.argmax(gained[nearest] - tied_wins))
    n = nearest[best]
    lowest_good = -math.inf
    if separates_ties:
        lowest_good = _best_good(middle[:n], good[:n])
    return Thresholds(
        tie=float(tie_candidates[best]),
        good=lowest_good,
    )


def nested(
    first: ArrayLike,
    second: ArrayLike,
    human: ArrayLike,
    groups: Sequence[Hashable],
    folds: int = 5,
    seed: Seed = 0,
    scheme: VoteScheme = "four_way",
) -> Ints:
    """Votes from scores with thresholds that never saw the contests they are used on: by
    cross-validation over groups.

    Args:
        first: as for `vote_of_scores`.
        second: as for `vote_of_scores`.
        human: people's codes, shape (contests,).
        groups: what must not be parted, shape (contests,): contests of one instruction.
        folds: how many; as many as there are groups where these are fewer.
        seed: a number, or several that together are one: it decides which groups are in a fold.
        scheme: as for `best_thresholds`.

    Returns:
        Codes of `votes`, shape (contests,), for `votes.points` and the same scheme.

    Raises:
        ValueError: for fewer than two folds, contests of a single group, or shapes that differ.

    >>> nested([0.9, 0.5, 0.6, 0.1], [0.1, 0.6, 0.7, 0.9], [FIRST, BOTH_GOOD, BOTH_GOOD, SECOND], "abcd").tolist()
    [0, 2, 2, 1]
    """
    first_scores, second_scores = paired_vectors(first, second)
    human_votes = np.asarray(human)
    fold = fold_of(groups, folds, seed)
    if fold.shape != first_scores.shape or human_votes.shape != first_scores.shape:
        raise ValueError(
            "each contest must have a group and a human vote, got shapes "
            f"{first_scores.shape}, {fold.shape} and {human_votes.shape}"
        )
    votes = np.full(first_scores.shape, NONE, dtype=np.int64)
    for held_out in np.unique(fold):
        inside = fold == held_out
        outside = fold != held_out
        thresholds = best_thresholds(
            first_scores[outside], second_scores[outside], human_votes[outside], scheme
        )
        votes[inside] = vote_of_scores(
            first_scores[inside], second_scores[inside], *thresholds
        )
    return votes


def fold_of(
    groups: Sequence[Hashable],
    folds: int = 5,
    seed: Seed = 0,
) -> Ints:
    """The fold of each contest: whole groups at random, as many in each fold, give or take one.

    Args:
        groups: as for `nested`, shape (contests,).
        folds: as for `nested`.
        seed: as for `nested`.

    Returns:
        Whole numbers from 0, shape (contests,).

    Raises:
        ValueError: for fewer than two folds, or contests of a single group.

    >>> np.bincount(fold_of(["a", "b", "c", "d", "e"], folds=2)).tolist()
    [3, 2]
    """
    names, index = factorize(groups)
    if folds < 2 or len(names) == 1:
        raise ValueError(
            f"at least 2 folds and 2 groups are required, got {folds} and {len(names)}"
        )
    fold_of_group = np.random.default_rng(seed).permutation(len(names)) % folds
    return np.asarray(fold_of_group[index], dtype=np.int64)


def _tied_contests(
    human_votes: Ints,
    scheme: VoteScheme,
    distance: Floats,
    middle: Floats,
) -> Ints:
    """Indices of the contests with finite scores that people tie, the nearest scores first."""
    ties = (
        (BOTH_GOOD, BOTH_BAD, TIE) if scheme == "three_way" else (BOTH_GOOD, BOTH_BAD)
    )
    is_finite = np.isfinite(distance) & np.isfinite(middle)
    tied = np.flatnonzero(np.isin(human_votes, ties) & is_finite)
    return tied[np.argsort(distance[tied], kind="stable")]


def _won_distances(
    distance: Floats,
    human_votes: Ints,
    is_first_higher: Bools,
) -> Floats:
    """Sorted distances of the contests in which people prefer the higher score."""
    winner = np.where(is_first_higher, FIRST, SECOND)
    is_won = (distance > 0) & (human_votes == winner)
    return np.sort(distance[is_won])


def _distance_and_mean(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Computed in one place, so that thresholds taken from them fit to the last bit; equal
    infinities are 0 apart.
    """
    with np.errstate(invalid="ignore"):
        distance = np.where(first == second, 0.0, np.abs(first - second))
        return distance, (first + second) / 2


def _levels(middle: Floats, good: Bools) -> tuple[Floats, Ints]:
    """The values of `good` to try, ascending; and to each contest how many of them suit it if it
    is good.
    """
    levels = np.unique(middle)
    # a contest that is good wants `good` no higher than its mean, one that is bad wants it higher
    candidates = np.concatenate([[-math.inf], levels[1:], [math.inf]])
    return candidates, np.searchsorted(levels, middle) + 1


def _most_right(middle: Floats, good: Bools) -> Ints:
    """Number of right contests among the n first, under the best `good` for these n; shape
    (contests + 1,).
    """
    levels, suiting = _levels(middle, good)
    right = np.zeros(len(levels), dtype=np.int64)
    most_right_counts = np.zeros(len(middle) + 1, dtype=np.int64)
    for n, (number, is_good) in enumerate(
        zip(suiting.tolist(), good.tolist(), strict=True)
    ):
        if is_good:
            right[:number] += 1
        else:
            right[number:] += 1
        most_right_counts[n + 1] = right.max()
    return most_right_counts


def _best_good(middle: Floats, good: Bools) -> float:
    """The smallest best `good` for these contests."""
    if len(middle) == 0:
        return -math.inf
    levels, suiting = _levels(middle, good)
    # of those before `suiting` a good contest is right, of the others a bad one
    goods = np.bincount(suiting[good], minlength=len(levels) + 1)
    bads = np.bincount(suiting[~good], minlength=len(levels) + 1)
    right_goods = goods.sum() - np.cumsum(goods)
    right = right_goods + np.cumsum(bads)
    best = int(np.argmax(right[: len(levels)]))
    return float(levels[best])
