"""The statistics of contests: how often a judge's answers are those of people, and how far it is above a fixed answer.

All are shares of pairs of candidates with a 95% interval by a bootstrap over groups. A missing answer is wrong and
stays in the denominator, under every policy for failures.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vieval_plugin.judges.contests import FORWARD, PAPER, REVERSE
from vieval_plugin.meta_evaluation.observations import Estimate, Observation, Summary
from vieval_plugin.meta_evaluation.vote_answers import TIE_HANDLINGS, VOTES, Answers, answers_of
from vieval_plugin.meta_evaluation.vote_codes import Pairs, pairs_of
from vieval_plugin.stats.constant_answers import above_constant
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.orders import both_orders_points, consistent_points, each_order_points
from vieval_plugin.stats.votes import NONE, VoteScheme, VoteShare, group_points, points, share


@dataclass(frozen=True)
class Share(Estimate):
    """A share of points in [0, 1], or a difference of two in [-1, 1]; `count` is how many points it is of."""

    count: int = 0


@dataclass(frozen=True)
class Drawing:
    """Bootstrap of a part: number of resamples and seed."""

    draws: int
    seed: tuple[int, ...]

    @classmethod
    def of(cls, name: str, options: StatisticsOptions) -> Drawing:
        """Return that of the part called `name` (`benchmark/part`), so that parts are resampled independently."""
        return cls(options.draws, (options.seed, *name.encode()))

    def share(self, points: Floats, groups: Sequence[str], why: str = "") -> Share:
        """The mean of points with its interval; `why` says why they are undefined, where they are."""
        return share_estimate(share(points, groups, self.draws, self.seed), why)


def share_estimate(vote_share: VoteShare, why: str = "") -> Share:
    """A share as an estimate, with the reason where it is undefined.

    >>> share_estimate(share([], [], draws=10)).reason
    'no contest counts'
    """
    reason = (why or "no contest counts") if math.isnan(vote_share.value) else ""
    return Share(vote_share.value, vote_share.low, vote_share.high, vote_share.draws, reason, vote_share.count)


def names_of(subject: str, scheme: str) -> tuple[str, ...]:
    """The statistics that every judge of a benchmark has, by name.

    Args:
        subject: `votes`, or an aspect.
        scheme: that of the benchmark's votes.

    >>> names_of("SC", "two_way")
    ('SC_accuracy_decisive', 'SC_above_constant_decisive')
    """
    tie_handlings = TIE_HANDLINGS[scheme]
    whats = [f"{what}_{ties}" for what in ("accuracy", "above_constant") for ties in tie_handlings]
    if subject == VOTES:
        whats += [f"forward_accuracy_{ties}" for ties in tie_handlings]
        whats += ["both_orders_accuracy", "each_order_accuracy", "consistent_share", "inconsistent_share"]
    else:
        whats += [f"upper_bound_{ties}" for ties in tie_handlings if ties != "decisive"]
    if scheme == "ranking":
        whats += [f"all_pairs_accuracy_{ties}" for ties in tie_handlings]
    return tuple(f"{subject}_{what}" for what in whats)


@lru_cache(maxsize=16)
def vote_statistics(
    observations: tuple[Observation, ...], subjects: tuple[str, ...], scheme: str, name: str, options: StatisticsOptions
) -> Summary:
    """A part's statistics by name, with 95% intervals. Cached, because a host asks once for every metric.

    Args:
        observations: the part's contests, in any order.
        subjects: `votes`, or the aspects that the judge scores.
        scheme: that of the benchmark's votes.
        name: that of the part (`benchmark/part`); it joins the seed, so that parts are resampled independently.
        options: how many draws, the seed.

    Returns:
        A `Share` a name of `names_of`; `scored` are the contests with an answer to all their pairs.

    Raises:
        ValueError: for a contest whose votes are in another scheme.
    """
    pairs = pairs_of(observations, scheme)
    drawing = Drawing.of(name, options)
    estimates: dict[str, Estimate] = {}
    scored = frozenset(o.uid for o in pairs.observations)
    for subject in subjects:
        answers = answers_of(pairs, subject, scheme, drawing.seed)
        scored &= answers.answered
        shares = {
            **of_answers(answers, scheme, drawing),
            **(of_orders(answers, scheme, drawing) if subject == VOTES else {}),
        }
        estimates |= {f"{subject}_{what}": estimate for what, estimate in shares.items()}
    exact = sum(o.exact for o in pairs.observations if o.uid in scored)
    return Summary({}, Counter(o.status for o in observations), options, estimates, len(scored), exact)


def of_answers(answers: Answers, scheme: str, drawing: Drawing) -> dict[str, Share]:
    """Accuracy and upper bound by way of counting, and how far the accuracy is above the best constant answer.

    Of rankings also the share of contests all of whose pairs are right.
    """
    shares: dict[str, Share] = {}
    groups = answers.pairs.groups
    for ties in TIE_HANDLINGS[scheme]:
        right, why = answers.points(ties), answers.why.get(ties, "")
        shares[f"accuracy_{ties}"] = drawing.share(right, groups, why)
        shares[f"above_constant_{ties}"] = (
            drawing.share(right, groups, why)
            if why
            else share_estimate(_above_constant(answers.pairs, right, ties, drawing))
        )
        if ties in answers.bounds:
            best_points = points(answers.bounds[ties], answers.pairs.human, ties)
            shares[f"upper_bound_{ties}"] = drawing.share(best_points, groups)
        if scheme == "ranking":
            contest_points = group_points(right, answers.pairs.contest.tolist())[1]
            contest_groups = [o.group for o in answers.pairs.observations]
            shares[f"all_pairs_accuracy_{ties}"] = drawing.share(contest_points, contest_groups, why)
    return shares


def of_orders(answers: Answers, scheme: str, drawing: Drawing) -> dict[str, Share]:
    """Statistics of a judge that votes itself: accuracy of the forward order, and what the two orders are together.

    What two orders are together is counted in the benchmark's most detailed way.
    """
    pairs = answers.pairs
    widest = TIE_HANDLINGS[scheme][0]
    forward, reverse = pairs.codes_in_order(FORWARD), pairs.codes_in_order(REVERSE)
    consistent = consistent_points(forward, reverse, widest)
    inconsistent = (forward != NONE) & (reverse != NONE) & (consistent == 0)
    of_forward = {f"forward_accuracy_{ties}": points(forward, pairs.human, ties) for ties in TIE_HANDLINGS[scheme]}
    of_both = {
        "both_orders_accuracy": both_orders_points(forward, reverse, pairs.human, widest),
        "each_order_accuracy": each_order_points(forward, reverse, pairs.human, widest),
        "consistent_share": consistent,
        "inconsistent_share": inconsistent.astype(float),
    }
    shares: dict[str, Share] = {}
    for what, right in (of_forward | of_both).items():
        why = _undefined(what in of_both, pairs)
        shares[what] = drawing.share(np.where(why != "", np.nan, right), pairs.groups, why)
    return shares


def has_paper(pairs: Pairs) -> bool:
    """Return True where any answer was read as the authors of a log read it."""
    return any(dict(o.contest.given).get(PAPER) for o in pairs.observations if o.contest is not None)


def of_paper(answers: Answers, drawing: Drawing) -> dict[str, Share]:
    """Accuracy as the authors of a log read its answers, and how far it is above the best constant answer of that kind."""
    pairs = answers.pairs
    right = points(pairs.codes_in_order(PAPER), pairs.human, "paper")
    return {
        "accuracy_paper": drawing.share(right, pairs.groups),
        "above_constant_paper": share_estimate(_above_constant(pairs, right, "paper", drawing)),
    }


def _undefined(of_both: bool, pairs: Pairs) -> str:
    """Reason why a statistic of orders is undefined; a judge without any answer was asked and failed, which is wrong."""
    contests = [o.contest for o in pairs.observations if o.contest is not None]
    voted = {order for contest in contests for order, _ in contest.given} & {FORWARD, REVERSE}
    if not voted and any(contest.preferences for contest in contests):
        return "the judge gives preferences and no votes"
    if of_both:
        return "one order was asked" if len(voted) == 1 else ""
    return "the forward order was not asked" if voted == {REVERSE} else ""


def _above_constant(pairs: Pairs, right: Floats, ties: VoteScheme, drawing: Drawing) -> VoteShare:
    """Difference between points and those of the best constant baseline."""
    return above_constant(right, pairs.human, pairs.groups, ties, draws=drawing.draws, seed=drawing.seed).difference
