"""A judge's answer to each pair of candidates, whichever way it judges: votes in one order or two, preferences, or scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from vieval_plugin.judges.contests import FORWARD, REVERSE
from vieval_plugin.meta_evaluation.observations import Observation
from vieval_plugin.meta_evaluation.vote_codes import Pairs
from vieval_plugin.stats import thresholds
from vieval_plugin.stats.bootstrap import Ints
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.orders import overall_votes
from vieval_plugin.stats.votes import NONE, VoteScheme, points

VOTES = "votes"
"""The subject of a judge that votes itself, in the place of an aspect."""

TIE_HANDLINGS: Mapping[str, tuple[VoteScheme, ...]] = MappingProxyType(
    {
        "four_way": ("four_way", "three_way", "decisive"),
        "three_way": ("three_way", "decisive"),
        "two_way": ("decisive",),
        "ranking": ("three_way", "decisive"),
    }
)
"""Tie handlings by the scheme that people voted in, the most detailed first."""


@dataclass(frozen=True, eq=False)
class Answers:
    """A judge's answer to each pair: a code by tie handling, or why there is none.

    `bounds` are the codes with thresholds that are best on these very pairs, for answers that need thresholds.
    """

    pairs: Pairs
    codes: Mapping[VoteScheme, Ints]
    why: Mapping[VoteScheme, str] = field(default_factory=dict)
    bounds: Mapping[VoteScheme, Ints] = field(default_factory=dict)

    @property
    def answered(self) -> frozenset[str]:
        """The uids of the contests with an answer to each of their pairs."""
        incomplete = set(self.pairs.contest[self.codes["decisive"] == NONE].tolist())
        return frozenset(o.uid for number, o in enumerate(self.pairs.observations) if number not in incomplete)

    def points(self, tie_handling: VoteScheme) -> Floats:
        """Points of the judge in each pair, as `stats.votes.points` has them; NaN in all where `why` says why."""
        if tie_handling in self.why:
            return np.full(len(self.pairs.human), np.nan)
        return points(self.codes[tie_handling], self.pairs.human, tie_handling)


def subjects_of(observations: Sequence[Observation], aspects: Sequence[str]) -> tuple[str, ...]:
    """Sources of a judge's votes: `votes` where it votes itself, else each of the aspects that it scores.

    >>> subjects_of([], ("SC", "O")), subjects_of([], ())
    (('SC', 'O'), ('votes',))
    """
    contested = [o.contest for o in observations if o.contest is not None]
    voting = any(contest.given or contest.preferences for contest in contested)
    return (VOTES,) if voting or not aspects else tuple(aspects)


def answers_of(pairs: Pairs, subject: str, scheme: str, seed: Sequence[int]) -> Answers:
    """A judge's answers.

    Two orders make one vote, as `overall_votes` has it; of one order alone it is that vote. Preferences, and scores of
    candidates, become votes by the rule of `stats.thresholds`, with thresholds from nested cross-validation over
    groups.

    Args:
        pairs: with the judge's votes, preferences or scores.
        subject: `votes`, or the aspect whose scores are compared.
        scheme: that of the benchmark's votes.
        seed: what decides the folds.

    Returns:
        Codes for every tie handling of the scheme.

    >>> from vieval_plugin.judges.contests import Votes
    >>> from vieval_plugin.judges.protocol import Status
    >>> from vieval_plugin.meta_evaluation.observations import Contested
    >>> from vieval_plugin.meta_evaluation.vote_codes import pairs_of
    >>> both = Contested(("x", "y"), Votes("two_way", "first"), (("forward", "first"), ("reverse", "first")))
    >>> found = pairs_of([Observation("", "1", (), (), Status.OK, contest=both)], "two_way")
    >>> answers_of(found, "votes", "two_way", [0]).points("decisive").tolist()
    [1.0]
    """
    tie_handlings = TIE_HANDLINGS[scheme]
    if subject != VOTES:
        return _from_scores(pairs, *pairs.scores(subject), tie_handlings, seed)
    orders = orders_of(pairs)
    if any(o.contest.preferences for o in pairs.observations if o.contest is not None):
        preferred = pairs.preferences(orders)
        of_three = tuple(ties for ties in tie_handlings if ties != "four_way")
        from_preferences = _from_scores(pairs, preferred, np.zeros(preferred.shape), of_three, seed)
        why: dict[VoteScheme, str] = {"four_way": "a preference does not tell both good from both bad"}
        return Answers(pairs, from_preferences.codes, {**from_preferences.why, **why}, from_preferences.bounds)
    order_codes = [pairs.codes_in_order(order) for order in orders] or [pairs.codes_in_order(FORWARD)]
    return Answers(pairs, dict.fromkeys(tie_handlings, overall_votes(order_codes[0], order_codes[-1])))


def orders_of(pairs: Pairs) -> tuple[str, ...]:
    """The orders in which any contest has an answer: the others count as not asked for."""
    contested = [o.contest for o in pairs.observations if o.contest is not None]
    orders = {order for contest in contested for order, _ in (*contest.given, *contest.preferences)}
    return tuple(order for order in (FORWARD, REVERSE) if order in orders)


def _from_scores(
    pairs: Pairs, first: Floats, second: Floats, tie_handlings: Sequence[VoteScheme], seed: Sequence[int]
) -> Answers:
    """Votes by thresholds; which of two is better needs none, and only equal scores are a tie then."""
    codes: dict[VoteScheme, Ints] = {"decisive": thresholds.vote_of_scores(first, second)}
    why: dict[VoteScheme, str] = {}
    bounds: dict[VoteScheme, Ints] = {}
    for ties in tie_handlings:
        if ties == "decisive":
            continue
        best = thresholds.upper_bound(first, second, pairs.human, ties).thresholds
        bounds[ties] = thresholds.vote_of_scores(first, second, *best)
        if len(set(pairs.groups)) < 2:
            why[ties] = "thresholds need contests of two groups"
        else:
            codes[ties] = thresholds.nested(first, second, pairs.human, pairs.groups, seed=seed, scheme=ties)
    return Answers(pairs, codes, why, bounds)
