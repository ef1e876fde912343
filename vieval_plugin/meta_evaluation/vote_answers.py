"""Contests as arrays of codes: what people, or a judge, said of each pair of candidates, whichever
way the judge answers.

A contest of k candidates is k(k-1)/2 pairs, so that votes on two and rankings of several go the
same way. A judge gives votes in one order or two, preferences, or scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from types import MappingProxyType

import numpy as np

from vieval_plugin.judges import contests
from vieval_plugin.judges.contests import FORWARD, PAPER, REVERSE
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.observations import ContestObservation, Observation
from vieval_plugin.stats import thresholds, votes
from vieval_plugin.stats.bootstrap import Ints
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.orders import overall_votes
from vieval_plugin.stats.votes import NONE, VoteScheme, points

#: The code of each answer on two candidates; a ranking becomes one of these for each of its pairs.
CODES: Mapping[str, int] = MappingProxyType(
    {
        contests.FIRST: votes.FIRST,
        contests.SECOND: votes.SECOND,
        contests.BOTH_GOOD: votes.BOTH_GOOD,
        contests.BOTH_BAD: votes.BOTH_BAD,
        contests.TIE: votes.TIE,
    }
)

#: What leaves a contest out; every other failure is no answer, which is wrong.
NEVER_JUDGED = (Status.NOT_APPLICABLE, Status.MISSING)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of candidates of some contests."""

    #: The contests.
    observations: tuple[Observation, ...]
    #: Number of each pair's contest.
    contest: Ints
    #: Its two indices in that contest, shape (pairs, 2).
    indices: Ints
    #: Code of what people said.
    human: Ints
    #: Cluster of each pair.
    groups: tuple[str, ...]

    @cached_property
    def contests(self) -> tuple[ContestObservation, ...]:
        """The contests as votes see them."""
        return tuple(
            observation.contest
            for observation in self.observations
            if observation.contest is not None
        )

    @property
    def contest_sizes(self) -> Ints:
        """The number of candidates of each contest."""
        return np.array(
            [len(contest.image_models) for contest in self.contests], dtype=np.int64
        )

    @property
    def image_models(self) -> list[tuple[str, str]]:
        """The two image models of each pair, in order."""
        models_of_pair = [self.contests[number].image_models for number in self.contest]
        return [
            (models[i], models[j])
            for models, (i, j) in zip(models_of_pair, self.indices, strict=True)
        ]

    def codes_of(self, answers: Sequence[str]) -> Ints:
        """The code of each pair, from one vote or ranking per contest; `NONE` if
        missing.
        """
        codes = [
            code
            for contest, answer in zip(self.contests, answers, strict=True)
            for code in _codes(answer, len(contest.image_models))
        ]
        return np.array(codes, dtype=np.int64)

    @property
    def by_order(self) -> dict[str, Ints]:
        """The judge's code for each pair, by each order of showing in which it voted on any."""
        votes = [contest.judge_votes for contest in self.contests]
        orders = [
            order
            for order in (FORWARD, REVERSE, PAPER)
            if any(order in contest_votes for contest_votes in votes)
        ]
        return {
            order: self.codes_of(
                [contest_votes.get(order, "") for contest_votes in votes]
            )
            for order in orders
        }

    def annotations(self) -> Ints:
        """The code of each annotator for each pair, shape (annotators, pairs); `NONE` where one
        gave no vote.
        """
        rows = [contest.votes.annotators for contest in self.contests]
        count = max(map(len, rows), default=0)
        table = []
        for n in range(count):
            answers = [row[n] if n < len(row) else "" for row in rows]
            table.append(self.codes_of(answers))
        return np.array(table, dtype=np.int64).reshape(count, len(self.contest))

    def scores(self, aspect: str) -> tuple[Floats, Floats]:
        """The judge's scores of both candidates of each pair; NaN where it gave none."""
        scored = [
            [scores.get(aspect, np.nan) for scores in contest.scores]
            for contest in self.contests
        ]
        table = []
        for number, (first, second) in zip(self.contest, self.indices, strict=True):
            scores_by_index = dict(enumerate(scored[number]))
            first_score = scores_by_index.get(first, np.nan)
            second_score = scores_by_index.get(second, np.nan)
            table.append((first_score, second_score))
        first_scores, second_scores = np.array(table, dtype=float).reshape(-1, 2).T
        return first_scores, second_scores

    def preferences(self, orders: Sequence[str]) -> Floats:
        """The judge's preference for the first of each pair, the mean over orders; NaN where it
        lacks one of them.
        """
        means = [math.nan] * len(self.contests)
        if orders:
            for number, contest in enumerate(self.contests):
                values = [contest.preferences.get(order, math.nan) for order in orders]
                means[number] = float(np.mean(values))
        # of more than two candidates one number says nothing
        contest_means = np.array(means, dtype=float)
        pair_means = np.where(self.contest_sizes == 2, contest_means, np.nan)
        return pair_means[self.contest]


def pairs_of(observations: Sequence[Observation], scheme: str) -> Pairs:
    """The pairs of all contests that people voted on and that the judge could be asked about.

    Args:
        observations: of one part and judge, in any order; what is no contest is left out.
        scheme: that of the benchmark's votes.

    Returns:
        Pairs in the order of their contests' uids.

    Raises:
        ValueError: for a contest whose votes are in another scheme.

    >>> from vieval_plugin.judges.contests import Votes
    >>> ranked = ContestObservation(("x", "y", "z"), Votes("ranking", "2>1=3"))
    >>> pairs_of([Observation("", "1", {}, {}, Status.OK, contest=ranked)], "ranking").human.tolist()
    [1, 4, 0]
    """
    voted = sorted(
        (observation for observation in observations if left_out(observation) == ""),
        key=lambda observation: observation.uid,
    )
    for observation in voted:
        contest = observation.contest
        if contest and contest.votes.scheme != scheme:
            raise ValueError(
                f"contest {observation.uid} must have {scheme} votes, "
                f"got {contest.votes.scheme}"
            )
    return paired(voted)


def judged_pairs(observations: Sequence[Observation]) -> Pairs:
    """The pairs of all contests that the judge could be asked about, whether people voted on them
    or not.

    Args:
        observations: of one part and judge, in any order; what is no contest is left out, and so
            are contests whose candidates come from one image model, such as those of a log that
            names none.

    >>> from vieval_plugin.judges.contests import Votes
    >>> unvoted = ContestObservation(("x", "y"), Votes(), {"forward": "first"})
    >>> judged_pairs([Observation("", "1", {}, {}, Status.OK, contest=unvoted)]).by_order["forward"].tolist()
    [0]
    """
    judged = [
        observation
        for observation in observations
        if observation.contest is not None
        and observation.status not in NEVER_JUDGED
        and len(set(observation.contest.image_models)) > 1
    ]
    return paired(sorted(judged, key=lambda observation: observation.uid))


def paired(contested: Sequence[Observation]) -> Pairs:
    """The pairs of contests, in their order, whether people voted on them or not."""
    rows = [
        observation.contest
        for observation in contested
        if observation.contest is not None
    ]
    contest_pairs = [
        (number, candidate_indices)
        for number, contest in enumerate(rows)
        for candidate_indices in combinations(range(len(contest.image_models)), 2)
    ]
    numbers = np.array([number for number, _ in contest_pairs], dtype=np.int64)
    index_lists = [candidate_indices for _, candidate_indices in contest_pairs]
    index_pairs = np.array(index_lists, dtype=np.int64).reshape(-1, 2)
    groups = tuple(contested[number].group for number in numbers)
    bare = Pairs(
        observations=tuple(contested),
        contest=numbers,
        indices=index_pairs,
        human=numbers,
        groups=groups,
    )
    return replace(bare, human=bare.codes_of([contest.votes.vote for contest in rows]))


def left_out(observation: Observation) -> str:
    """Reason why no statistic of votes sees an observation, in words; empty where they do.

    >>> left_out(Observation("m", "1", {}, {}, Status.OK))
    'no contest'
    """
    if observation.contest is None:
        return "no contest"
    if observation.status in NEVER_JUDGED:
        return str(observation.status)
    if observation.contest.votes.vote:
        return ""
    return "no human vote"


def _codes(vote: str, candidates: int) -> list[int]:
    if vote in CODES and candidates == 2:
        return [CODES[vote]]
    ranked = contests.ranks(vote, candidates)
    if not ranked:
        return [votes.NONE] * (candidates * (candidates - 1) // 2)
    codes = []
    for rank, other_rank in combinations(ranked, 2):
        if rank == other_rank:
            codes.append(votes.TIE)
        elif rank < other_rank:
            codes.append(votes.FIRST)
        else:
            codes.append(votes.SECOND)
    return codes


#: The subject of a judge that votes itself, in the place of an aspect.
VOTES = "votes"

#: Tie handlings by the scheme that people voted in, the most detailed first.
TIE_HANDLINGS: Mapping[str, tuple[VoteScheme, ...]] = MappingProxyType(
    {
        "four_way": ("four_way", "three_way", "decisive"),
        "three_way": ("three_way", "decisive"),
        "two_way": ("decisive",),
        "ranking": ("three_way", "decisive"),
    }
)


@dataclass(frozen=True, eq=False)
class Answers:
    """A judge's answers to pairs."""

    pairs: Pairs
    #: A code for each pair by tie handling.
    codes: Mapping[VoteScheme, Ints]
    #: Reason why there is none, by tie handling.
    why: Mapping[VoteScheme, str] = field(default_factory=dict)
    #: Codes with thresholds that are best on these very pairs, for answers that need thresholds.
    bounds: Mapping[VoteScheme, Ints] = field(default_factory=dict)
    #: Codes by order of showing, for answers that are votes.
    by_order: Mapping[str, Ints] = field(default_factory=dict)

    @property
    def complete(self) -> frozenset[str]:
        """The uids of the contests with an answer to each of their pairs."""
        is_unanswered = self.codes["decisive"] == NONE
        incomplete = set(self.pairs.contest[is_unanswered].tolist())
        return frozenset(
            observation.uid
            for number, observation in enumerate(self.pairs.observations)
            if number not in incomplete
        )

    def points(self, tie_handling: VoteScheme) -> Floats:
        """Points of the judge in each pair, as `stats.votes.points` has them; NaN in all where
        `why` says why.
        """
        if tie_handling in self.why:
            return np.full(len(self.pairs.human), np.nan)
        return points(self.codes[tie_handling], self.pairs.human, tie_handling)

    def answers_in_order(self, order: str) -> Ints:
        """Return the codes of an order; `NONE` in all where it was not asked."""
        return self.by_order.get(order, np.full(len(self.pairs.human), NONE))


def judge_codes(pairs: Pairs, subject: str) -> Ints:
    """The judge's code for each pair, `NONE` where it gave no answer; it votes for the higher
    score, equal ones tie.

    Args:
        pairs: of candidates, with the judge's votes, preferences or scores.
        subject: `votes`, or the aspect whose scores are compared.
    """
    return answers_of(pairs, subject, "two_way", ()).codes["decisive"]


def subjects_of(
    observations: Sequence[Observation], aspects: Sequence[str]
) -> tuple[str, ...]:
    """Sources of a judge's votes: `votes` where it votes itself, else each of the aspects that it
    scores.

    >>> subjects_of([], ("SC", "O")), subjects_of([], ())
    (('SC', 'O'), ('votes',))
    """
    contested = [
        observation.contest
        for observation in observations
        if observation.contest is not None
    ]
    voting = any(contest.judge_votes or contest.preferences for contest in contested)
    if voting or not aspects:
        return (VOTES,)
    return tuple(aspects)


def answers_of(pairs: Pairs, subject: str, scheme: str, seed: Sequence[int]) -> Answers:
    """A judge's answers.

    Two orders make one vote, as `overall_votes` has it; of one order alone it is that vote.
    Preferences, and scores of candidates, become votes by the rule of `stats.thresholds`, with
    thresholds from nested cross-validation over groups.

    Args:
        pairs: with the judge's votes, preferences or scores.
        subject: `votes`, or the aspect whose scores are compared.
        scheme: that of the benchmark's votes.
        seed: what decides the folds.

    Returns:
        Codes for every tie handling of the scheme.

    >>> from vieval_plugin.judges.contests import Votes
    >>> from vieval_plugin.judges.protocol import Status
    >>> from vieval_plugin.meta_evaluation.observations import ContestObservation
    >>> from vieval_plugin.meta_evaluation.vote_answers import pairs_of
    >>> both = ContestObservation(("x", "y"), Votes("two_way", "first"), {"forward": "first", "reverse": "first"})
    >>> found = pairs_of([Observation("", "1", {}, {}, Status.OK, contest=both)], "two_way")
    >>> answers_of(found, "votes", "two_way", [0]).points("decisive").tolist()
    [1.0]
    """
    tie_handlings = TIE_HANDLINGS[scheme]
    if subject != VOTES:
        return _votes_from_scores(pairs, *pairs.scores(subject), tie_handlings, seed)
    if any(contest.preferences for contest in pairs.contests):
        asked_orders = [
            observation
            for observation in (FORWARD, REVERSE)
            if any(observation in contest.preferences for contest in pairs.contests)
        ]
        preferred = pairs.preferences(asked_orders)
        no_preference = np.zeros(preferred.shape)
        answerable = tuple(ties for ties in tie_handlings if ties != "four_way")
        preference_answers = _votes_from_scores(
            pairs, preferred, no_preference, answerable, seed
        )
        why: dict[VoteScheme, str] = {
            "four_way": 'preferences cannot distinguish "both good" from "both bad"'
        }
        return Answers(
            pairs=pairs,
            codes=preference_answers.codes,
            why={**preference_answers.why, **why},
            bounds=preference_answers.bounds,
        )
    by_order = pairs.by_order
    # an order in which no contest has an answer counts as not asked for
    requested_orders = [
        codes for order, codes in by_order.items() if order != PAPER
    ] or [np.full(len(pairs.human), NONE)]
    overall_codes = overall_votes(requested_orders[0], requested_orders[-1])
    return Answers(
        pairs, dict.fromkeys(tie_handlings, overall_codes), by_order=by_order
    )


def _votes_from_scores(
    pairs: Pairs,
    first: Floats,
    second: Floats,
    tie_handlings: Sequence[VoteScheme],
    seed: Sequence[int],
) -> Answers:
    """Votes by thresholds; which of two is better needs none, and only equal scores are a tie
    then.
    """
    codes: dict[VoteScheme, Ints] = {
        "decisive": thresholds.vote_of_scores(first, second)
    }
    why: dict[VoteScheme, str] = {}
    bounds: dict[VoteScheme, Ints] = {}
    for ties in tie_handlings:
        if ties == "decisive":
            continue
        best = thresholds.best_thresholds(first, second, pairs.human, ties)
        bounds[ties] = thresholds.vote_of_scores(first, second, *best)
        if len(set(pairs.groups)) < 2:
            why[ties] = "thresholds require contests from at least two groups"
        else:
            codes[ties] = thresholds.nested(
                first, second, pairs.human, pairs.groups, seed=seed, scheme=ties
            )
    return Answers(
        pairs=pairs,
        codes=codes,
        why=why,
        bounds=bounds,
    )
