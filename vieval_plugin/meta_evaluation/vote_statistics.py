"""The statistics of contests: how often a judge's answers are those of people, and how far it is above a fixed answer.

All are shares of pairs of candidates with a 95% interval by a bootstrap over groups. A missing answer is wrong and stays
in the denominator, under every policy for failures.
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
from vieval_plugin.meta_evaluation.vote_answers import COUNTED, VOTES, Answers, answers_of
from vieval_plugin.meta_evaluation.vote_codes import Pairs, pairs_of
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.orders import both_orders_points, consistent_points, each_order_points
from vieval_plugin.stats.votes import NONE, VoteScheme, VoteShare, above_constant, group_points, points, share


@dataclass(frozen=True)
class Share(Estimate):
    """A share of points in [0, 1], or a difference of two in [-1, 1]; `count` is how many points it is of."""

    count: int = 0


@dataclass(frozen=True)
class Drawing:
    """How intervals of a part are drawn: how often, and from which seed."""

    draws: int
    seed: tuple[int, ...]

    @classmethod
    def of(cls, name: str, options: StatisticsOptions) -> Drawing:
        """That of the part called `name` (`benchmark/part`), so that parts are drawn independently."""
        return cls(options.draws, (options.seed, *name.encode()))

    def share(self, points: Floats, groups: Sequence[str], why: str = "") -> Share:
        """The mean of points with its interval; `why` says why they are undefined, where they are."""
        return shown(share(points, groups, self.draws, self.seed), why)


def shown(found: VoteShare, why: str = "") -> Share:
    """A share as an estimate, with the reason where it is undefined.

    >>> shown(share([], [], draws=10)).reason
    'no contest counts'
    """
    reason = (why or "no contest counts") if math.isnan(found.value) else ""
    return Share(found.value, found.low, found.high, found.draws, reason, found.count)


def names_of(subject: str, scheme: str) -> tuple[str, ...]:
    """The statistics that every judge of a benchmark has, by name.

    Args:
        subject: `votes`, or an aspect.
        scheme: that of the benchmark's votes.

    >>> names_of("SC", "two_way")
    ('SC_accuracy_decisive', 'SC_above_constant_decisive')
    """
    counted = COUNTED[scheme]
    whats = [f"{what}_{one}" for what in ("accuracy", "above_constant") for one in counted]
    if subject == VOTES:
        whats += [f"forward_accuracy_{one}" for one in counted]
        whats += ["both_orders_accuracy", "each_order_accuracy", "consistent_share", "inconsistent_share"]
    else:
        whats += [f"upper_bound_{one}" for one in counted if one != "decisive"]
    if scheme == "ranking":
        whats += [f"all_pairs_accuracy_{one}" for one in counted]
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
        found = {
            **of_answers(answers, scheme, drawing),
            **(of_orders(answers, scheme, drawing) if subject == VOTES else {}),
        }
        estimates |= {f"{subject}_{what}": one for what, one in found.items()}
    exact = sum(o.exact for o in pairs.observations if o.uid in scored)
    return Summary({}, Counter(o.status for o in observations), options, estimates, len(scored), exact)


def of_answers(answers: Answers, scheme: str, drawing: Drawing) -> dict[str, Share]:
    """Accuracy and upper bound by way of counting, and how far the accuracy is above the best constant answer.

    Of rankings also the share of contests all of whose pairs are right.
    """
    found: dict[str, Share] = {}
    groups = answers.pairs.groups
    for counted in COUNTED[scheme]:
        right, why = answers.points(counted), answers.why.get(counted, "")
        found[f"accuracy_{counted}"] = drawing.share(right, groups, why)
        found[f"above_constant_{counted}"] = (
            drawing.share(right, groups, why) if why else shown(_above(answers.pairs, right, counted, drawing))
        )
        if counted in answers.bounds:
            bound = points(answers.bounds[counted], answers.pairs.human, counted)
            found[f"upper_bound_{counted}"] = drawing.share(bound, groups)
        if scheme == "ranking":
            whole = group_points(right, answers.pairs.contest.tolist())[1]
            drawn = [o.group for o in answers.pairs.observations]
            found[f"all_pairs_accuracy_{counted}"] = drawing.share(whole, drawn, why)
    return found


def of_orders(answers: Answers, scheme: str, drawing: Drawing) -> dict[str, Share]:
    """Of a judge that votes itself: accuracy of the forward order, and what the two orders are together.

    What two orders are together is counted in the benchmark's most detailed way.
    """
    pairs = answers.pairs
    widest = COUNTED[scheme][0]
    forward, reverse = pairs.given(FORWARD), pairs.given(REVERSE)
    same = consistent_points(forward, reverse, widest)
    apart = (forward != NONE) & (reverse != NONE) & (same == 0)
    of_forward = {f"forward_accuracy_{counted}": points(forward, pairs.human, counted) for counted in COUNTED[scheme]}
    of_both = {
        "both_orders_accuracy": both_orders_points(forward, reverse, pairs.human, widest),
        "each_order_accuracy": each_order_points(forward, reverse, pairs.human, widest),
        "consistent_share": same,
        "inconsistent_share": apart.astype(float),
    }
    found: dict[str, Share] = {}
    for what, right in (of_forward | of_both).items():
        why = _undefined(what in of_both, pairs)
        found[what] = drawing.share(np.where(why != "", np.nan, right), pairs.groups, why)
    return found


def has_paper(pairs: Pairs) -> bool:
    """Whether any answer was read as the authors of a log read it."""
    return any(dict(o.contest.given).get(PAPER) for o in pairs.observations if o.contest is not None)


def of_paper(answers: Answers, drawing: Drawing) -> dict[str, Share]:
    """Accuracy as the authors of a log read its answers, and how far it is above the best constant answer of that kind."""
    pairs = answers.pairs
    right = points(pairs.given(PAPER), pairs.human, "paper")
    return {
        "accuracy_paper": drawing.share(right, pairs.groups),
        "above_constant_paper": shown(_above(pairs, right, "paper", drawing)),
    }


def _undefined(of_both: bool, pairs: Pairs) -> str:
    """Why a statistic of orders is undefined; a judge without any answer was asked and failed, which is wrong."""
    held = [o.contest for o in pairs.observations if o.contest is not None]
    voted = {order for contest in held for order, _ in contest.given} & {FORWARD, REVERSE}
    if not voted and any(contest.preferences for contest in held):
        return "the judge gives preferences and no votes"
    if of_both:
        return "one order was asked" if len(voted) == 1 else ""
    return "the forward order was not asked" if voted == {REVERSE} else ""


def _above(pairs: Pairs, right: Floats, counted: VoteScheme, drawing: Drawing) -> VoteShare:
    """How far points are above those of the best constant answer."""
    return above_constant(right, pairs.human, pairs.groups, counted, draws=drawing.draws, seed=drawing.seed).difference
