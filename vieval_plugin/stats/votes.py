"""Contests: how often a judge's votes are those of people.

A vote is a code: `FIRST`, `SECOND`, `BOTH_GOOD`, `BOTH_BAD`, `TIE` where it is not known whether
both are good or bad, or `NONE` where a judge gave no answer, which is always wrong and never left
out. A scheme says what counts as right:

- `four_way`: the same code, so that a `TIE` is never right;
- `three_way`: all ties are one answer;
- `decisive`: only contests in which people prefer one count, and a judge's tie is wrong;
- `paper`: as `four_way`, but a `TIE` is right for both kinds of tie, as the authors of GenAI-Bench
  count it.

Most functions make or take *points*: 1 where right, 0 where wrong, NaN for what does not count.
`share` turns points of any kind into a share with its interval.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import permutations
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from vieval_plugin.stats.bootstrap import (
    RESAMPLES,
    Ints,
    Seed,
    cluster_counts,
    expanded_interval,
    factorize,
    group_sums,
    interval,
    seed_tuple,
)
from vieval_plugin.stats.comparison import Bools
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.estimate import Estimate

FIRST = 0
SECOND = 1
BOTH_GOOD = 2
BOTH_BAD = 3
TIE = 4
NONE = -1
VoteScheme: TypeAlias = Literal["four_way", "three_way", "decisive", "paper"]

_DECISIVE = {
    "first": frozenset({FIRST}),
    "second": frozenset({SECOND}),
}
_FOUR_WAY = _DECISIVE | {
    "both_good": frozenset({BOTH_GOOD}),
    "both_bad": frozenset({BOTH_BAD}),
}

#: The answers that a scheme accepts, and which votes of people each is right for.
ANSWERS: Mapping[str, Mapping[str, frozenset[int]]] = MappingProxyType(
    {
        "four_way": _FOUR_WAY,
        "three_way": _DECISIVE | {"tie": frozenset({BOTH_GOOD, BOTH_BAD, TIE})},
        "decisive": _DECISIVE,
        "paper": _FOUR_WAY | {"tie": frozenset({BOTH_GOOD, BOTH_BAD})},
    }
)


class TwoJudges(NamedTuple):
    """Agreement of two judges: shares in [0, 1] with their intervals.

    A judge is right or wrong in the contests in which people prefer one candidate; where both
    answer alike, both are.
    """

    #: Share of contests that both answer alike.
    alike: Estimate
    #: Share of these in which they are right.
    right_where_alike: Estimate
    #: Share of the other contests in which the first judge is right.
    first_elsewhere: Estimate
    #: The same of the second judge.
    second_elsewhere: Estimate
    #: Number of contests in which people prefer none.
    rated_equal: int


def points(
    votes: ArrayLike,
    human: ArrayLike,
    scheme: VoteScheme = "four_way",
) -> Floats:
    """Points of a judge: 1 in each contest in which it is right.

    Args:
        votes: the judge's codes, shape (contests,).
        human: people's codes, shape (contests,); none of them `NONE`.
        scheme: what counts as right.

    Returns:
        Shape (contests,): 1, 0, or NaN where people's vote is not in the scheme.

    Raises:
        ValueError: for a code that is none, or arrays of different shapes.

    Source: Jiang et al. 2024, GenAI Arena (GenAI-Bench: four labels, all pairs in the denominator).

    >>> points([FIRST, BOTH_BAD, NONE], [FIRST, BOTH_GOOD, SECOND], "three_way").tolist()
    [1.0, 1.0, 0.0]
    """
    return _points(votes, codes(human, FIRST), scheme)


def mean(points: ArrayLike) -> float:
    """The share that is right.

    Args:
        points: of any shape; NaN entries do not count.

    Returns:
        The share, in [0, 1]; NaN where nothing counts.

    >>> mean([1.0, 0.0, float("nan")])
    0.5
    """
    values = np.asarray(points, dtype=float)
    values = values[~np.isnan(values)]
    if len(values):
        return float(values.mean())
    return math.nan


def share(
    points: ArrayLike,
    groups: Sequence[Hashable],
    resamples: int = RESAMPLES,
    seed: Seed = 0,
    reason: str = "",
) -> Estimate:
    """The share that is right, with its interval by bootstrap over groups.

    Args:
        points: shape (..., contests), as any function here gives them; axes before the last are
            pooled.
        groups: what each contest is drawn together with, shape (contests,).
        resamples: number of bootstrap resamples.
        seed: a number, or several that together are one; the resamples are those of
            `bootstrap.cluster_counts`.
        reason: why the share is undefined, where that is known.

    Returns:
        Share and interval in [0, 1]; `n` is how many points count.

    Raises:
        ValueError: for a number of groups that is not that of contests.

    >>> share([1.0, 1.0, 0.0, float("nan")], ["a", "a", "b", "b"], resamples=100).n
    3
    """
    sums, counts = group_sums(points, groups)
    weights = _weights(len(sums), resamples, seed_tuple(seed))
    # by einsum and not `@`, whose threads spend many times the work's own CPU seconds on waiting
    # for each other
    totals = np.einsum("dg,g->d", weights, sums)
    numbers = np.einsum("dg,g->d", weights, counts)
    with np.errstate(invalid="ignore"):
        shares = totals / numbers
    low, high = interval(shares)
    value = mean(points)
    reasons = (reason or "no contest counts",) if math.isnan(value) else ()
    return Estimate(
        value=value,
        low=low,
        high=high,
        resamples=shares,
        n=int(counts.sum()),
        reasons=reasons,
    )


def two_judges(
    first: ArrayLike,
    second: ArrayLike,
    human: ArrayLike,
    groups: Sequence[Hashable],
    seed: Seed = 0,
) -> TwoJudges:
    """Agreement of two judges, as a sign of how far to trust them.

    Args:
        first, second: the answers of each, shape (contests,): codes; NaN where there is no answer,
            which is like no other and right nowhere.
        human: people's codes, shape (contests,), of which `FIRST` and `SECOND` count.
        groups: what each contest is drawn together with, shape (contests,).
        seed: of the bootstrap.

    Returns:
        Shares with intervals expanded for the number of groups; undefined where no contest counts.

    >>> halves = two_judges([FIRST, FIRST, SECOND], [FIRST, SECOND, TIE], [FIRST, FIRST, FIRST], ["a", "b", "c"])
    >>> [round(share.value, 2) for share in halves[:4]]
    [0.33, 1.0, 0.5, 0.0]
    """
    people = np.asarray(human, dtype=float)
    answers = np.array([first, second], dtype=float)
    alike = answers[0] == answers[1]
    mask = np.isin(people, (FIRST, SECOND))
    right = np.where(
        mask,
        answers == people,
        np.nan,
    )

    def shared(column: Floats) -> Estimate:
        return _expanded(
            share(column, groups, seed=seed),
            column,
            groups,
        )

    common_right = np.where(alike, right[0], np.nan)
    first_right = np.where(alike, np.nan, right[0])
    second_right = np.where(alike, np.nan, right[1])
    is_tie = np.isin(people, (TIE, BOTH_GOOD, BOTH_BAD))
    return TwoJudges(
        alike=shared(alike),
        right_where_alike=shared(common_right),
        first_elsewhere=shared(first_right),
        second_elsewhere=shared(second_right),
        rated_equal=int(is_tie.sum()),
    )


def _expanded(
    estimate: Estimate,
    points: Floats,
    groups: Sequence[Hashable],
) -> Estimate:
    """A share with its interval expanded for the number of groups with contests that count."""
    counting = {
        group
        for group, point in zip(groups, points, strict=True)
        if not math.isnan(point)
    }
    low, high = expanded_interval(estimate.resamples, len(counting))
    return replace(estimate, low=low, high=high)


@lru_cache(maxsize=4)
def _weights(
    groups: int,
    resamples: int,
    seed: tuple[int, ...],
) -> Floats:
    """Weights of groups in each resample; cached, because all shares of one benchmark's part are
    resampled alike.
    """
    clusters = [str(group) for group in range(groups)]
    return cluster_counts(clusters, resamples, seed).astype(float)


def group_points(
    points: ArrayLike, groups: Sequence[Hashable]
) -> tuple[list[Hashable], Floats]:
    """Points of groups of contests: 1 for k candidates of which all pairs are right.

    Args:
        points: shape (contests,).
        groups: the group of each contest, shape (contests,).

    Returns:
        The groups in the order in which they first appear, and a point each: 1 where all contests
        that count are right, NaN where none counts.

    >>> group_points([1.0, 1.0, 1.0, 0.0], ["a", "a", "b", "b"])
    (['a', 'b'], array([1., 0.]))
    """
    sums, counts = group_sums(points, groups)
    names, _ = factorize(groups)
    all_right = (sums == counts).astype(float)
    return names, np.where(counts > 0, all_right, np.nan)


def annotator_points(
    votes: ArrayLike,
    annotations: ArrayLike,
    scheme: VoteScheme = "four_way",
) -> Floats:
    """Points of a judge against each annotator.

    Args:
        votes: the judge's codes, shape (contests,).
        annotations: codes, shape (annotators, contests); `NONE` where an annotator gave no vote.
        scheme: as for `points`.

    Returns:
        Shape (annotators, contests); NaN also where there is no annotation.

    >>> annotator_points([FIRST, FIRST], [[FIRST, SECOND], [FIRST, NONE]]).tolist()
    [[1.0, 0.0], [1.0, nan]]
    """
    return np.array(
        [
            _points(votes, annotator_votes, scheme)
            for annotator_votes in codes(annotations)
        ]
    )


def ceiling_points(annotations: ArrayLike, scheme: VoteScheme = "four_way") -> Floats:
    """Points of annotators against one another: the ceiling of `annotator_points`, pooled over all
    pairs.

    Each annotator stands once in the judge's place against each other, so ties count as a judge's
    do, and what two annotators agree on counts twice.

    Args:
        annotations: as for `annotator_points`.
        scheme: as for `points`.

    Returns:
        Shape (ordered pairs of annotators, contests); NaN where either gave no vote.

    >>> mean(ceiling_points([[FIRST, FIRST], [FIRST, SECOND], [FIRST, SECOND]])).__round__(3)
    0.667
    """
    table = codes(annotations)
    pairs = []
    for annotator_a_votes, annotator_b_votes in permutations(table, 2):
        right = _points(annotator_a_votes, annotator_b_votes, scheme)
        pairs.append(np.where(annotator_a_votes == NONE, np.nan, right))
    return np.array(pairs).reshape(-1, table.shape[1])


def best_constant(human: ArrayLike, scheme: VoteScheme = "four_way") -> Floats:
    """Points of the best constant baseline, the same answer for every contest: what a judge has to
    be above.

    A judge is significantly above it where the lower end of the 95% interval of the share of its
    points less these is above 0. The best constant is that of these very contests, the first of
    several that are equal, and stays the same in all resamples: so the bar is, if anything, a
    little high.

    Args:
        human: as for `points`.
        scheme: which contests count, and which answers there are.

    Returns:
        Shape (contests,), as `points` has them.

    >>> best_constant([FIRST, BOTH_GOOD, BOTH_BAD, BOTH_BAD], "three_way").tolist()
    [0.0, 1.0, 1.0, 1.0]
    """
    human_votes = codes(human, FIRST)
    counts = is_vote_in_scheme(human_votes, scheme)
    constants = [
        np.isin(human_votes, list(right_for)).astype(float)
        for right_for in ANSWERS[scheme].values()
    ]
    best = max(constants, key=lambda right: mean(right[counts]))
    return np.where(counts, best, np.nan)


def _points(
    votes: ArrayLike,
    human: ArrayLike,
    scheme: VoteScheme,
) -> Floats:
    """`points` for people's votes of which some may be `NONE`: these do not count."""
    judge_votes = codes(votes)
    human_votes = codes(human)
    if judge_votes.shape != human_votes.shape:
        raise ValueError(
            f"arrays must have the same shape, got {judge_votes.shape} and "
            f"{human_votes.shape}"
        )
    right = merged_ties(judge_votes, scheme) == merged_ties(human_votes, scheme)
    if scheme == "paper":
        is_human_tie = np.isin(human_votes, list(ANSWERS[scheme]["tie"]))
        right |= (judge_votes == TIE) & is_human_tie
    return np.where(
        is_vote_in_scheme(human_votes, scheme),
        right.astype(float),
        np.nan,
    )


def is_vote_in_scheme(human: Ints, scheme: VoteScheme) -> Bools:
    """Mask of the contests in which people's vote is in a scheme."""
    return np.isin(
        human,
        list(frozenset().union(*ANSWERS[scheme].values())),
    )


def merged_ties(codes: Ints, scheme: VoteScheme) -> Ints:
    """Codes as a scheme tells them apart: in `three_way` each tie is a `TIE`."""
    if scheme == "three_way":
        return np.where(
            np.isin(codes, (BOTH_GOOD, BOTH_BAD)),
            TIE,
            codes,
        )
    return codes


def codes(votes: ArrayLike, lowest: int = NONE) -> Ints:
    """Votes as an array; ValueError for codes not from `lowest` on."""
    vote_codes = np.asarray(votes)
    if vote_codes.size and not np.isin(vote_codes, range(lowest, TIE + 1)).all():
        raise ValueError(
            f"votes must be whole numbers from {lowest} to {TIE}, "
            f"got {', '.join(map(str, np.unique(vote_codes)))}"
        )
    return vote_codes.astype(np.int64)
