"""Statistics of contests: agreement of a judge's answers with people's votes, and with constant baselines beside it.

All are shares of pairs of candidates with a 95% interval by a bootstrap over groups. A missing answer is wrong and
stays in the denominator, under every policy for failures.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.contests import (
    FIRST,
    FORWARD,
    PAPER,
    RANKING,
    REVERSE,
    SCHEMES,
    SECOND,
    TIE,
    fault_of_votes,
    ranks,
)
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.observations import Contested, Estimate, Observation, Summary, observe
from vieval_plugin.meta_evaluation.vote_answers import (
    CODES,
    TIE_HANDLINGS,
    VOTES,
    Answers,
    Pairs,
    answers_of,
    left_out,
    pairs_of,
    subjects_of,
)
from vieval_plugin.records import Run
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


CONSTANT = "constant"
"""The subject of a constant baseline."""


@dataclass(frozen=True, eq=False)
class Entrant:
    """A judge with what its votes come from (`votes` or an aspect), or a constant baseline.

    `left_out` says which contests were; `accepted` whether the benchmark's own scheme accepts its answers: of four-way
    votes a bare tie is one in the authors' reading only.
    """

    label: str
    subject: str
    answers: Answers
    left_out: str = ""
    accepted: bool = True

    @property
    def constant(self) -> bool:
        """True for a constant baseline."""
        return self.subject == CONSTANT

    @property
    def aspect(self) -> str:
        """The aspect of its cells: none but for the scores of one."""
        return "" if self.subject in (VOTES, CONSTANT) else self.subject

    @property
    def voting(self) -> bool:
        """True where it votes itself."""
        return self.subject in (VOTES, CONSTANT)


@dataclass(frozen=True)
class JudgedPart:
    """A part of a benchmark with all that stand in its tables, and how its intervals are drawn."""

    part: str
    entrants: Sequence[Entrant]
    drawing: Drawing


def entrants_of(part: str, runs: Sequence[Run], scheme: str, drawing: Drawing) -> list[Entrant]:
    """Entrants of a part, constant baselines first.

    Args:
        part: the benchmark's.
        runs: one a judge, labels all different; those that did not judge the part are left out.
        scheme: that of the benchmark's votes.
        drawing: of the part.

    Returns:
        A constant for each fixed answer, on all contests that any judge was asked about; an entrant for each judge and
        subject.

    Raises:
        VievalError: results that no run writes, such as votes of another scheme, in one line that names the contest.
    """
    observed = {run.label: tuple(map(observe, run.records[part])) for run in runs if part in run.records}
    judges = []
    for run in runs:
        if part not in run.records:
            continue
        rows = observed[run.label]
        _require_sound(f"{run.benchmark}/{part}", run.label, rows, scheme)
        left_out_counts = ", ".join(
            f"{count} {why}" for why, count in sorted(Counter(map(left_out, rows)).items()) if why
        )
        pairs = pairs_of(rows, scheme)
        judges += [
            Entrant(run.label, subject, answers_of(pairs, subject, scheme, drawing.seed), left_out_counts)
            for subject in subjects_of(rows, run.aspects)
        ]
    _require_one_vote(part, observed)
    # contests that no judge applies to, because something is wrong with their votes, are in no constant either
    people = {
        o.uid: replace(o, status=Status.OK)
        for rows in observed.values()
        for o in rows
        if o.contest is None or not _fault_of_votes(o.contest, scheme)
    }
    return [*_constants(list(people.values()), scheme, drawing), *judges]


def _require_sound(part: str, judge: str, observations: Sequence[Observation], scheme: str) -> None:
    """VievalError for a contest that somebody has edited by hand, or another version wrote: it would count as what it is not."""
    ways: set[str] = set()
    for o in observations:
        if o.contest is None or left_out(o):
            continue
        ways |= {what for what in ("given", "preferences", "scores") if getattr(o.contest, what)}
        mixed = "of votes, preferences and scores of candidates a judge gives one kind, and other contests have another"
        fault = _fault_of_votes(o.contest, scheme) or _fault_of_answer(o.contest) or mixed * (len(ways) > 1)
        if fault:
            raise VievalError(f"{part}/{o.uid} of {judge}: {fault}; restore the results, or run the judge again")


def _require_one_vote(part: str, observed: Mapping[str, Sequence[Observation]]) -> None:
    """VievalError where results have different votes of people on one contest: no number would hold for all of them."""
    known_votes: dict[str, tuple[str, str]] = {}
    for judge, rows in observed.items():
        for o in rows:
            if o.contest is None:
                continue
            vote = o.contest.votes.vote
            first, known = known_votes.setdefault(o.uid, (judge, vote))
            if vote != known:
                raise VievalError(
                    f"{part}/{o.uid}: people's vote is {known or 'none'!r} in the results of {first} and "
                    f"{vote or 'none'!r} in those of {judge}; run both on the same data"
                )


def _fault_of_votes(contest: Contested, scheme: str) -> str:
    """The fault in people's votes, in words; empty where there is none."""
    if contest.votes.scheme != scheme:
        return f"its votes are {contest.votes.scheme}, and this benchmark reports on {scheme} votes"
    return fault_of_votes(contest.votes, len(contest.image_models))


def _fault_of_answer(contest: Contested) -> str:
    """The fault in a judge's answer, in words; empty where there is none."""
    number = len(contest.image_models)
    for order, word in contest.given:
        if order not in (FORWARD, REVERSE, PAPER):
            return f"the judge has a vote in an order {order!r}, and there are {FORWARD}, {REVERSE} and {PAPER}"
        if not (word in CODES and number == 2) and not ranks(word, number):
            return f"the judge's vote {word!r} is none on {number} candidates"
    for order, value in contest.preferences:
        if order not in (FORWARD, REVERSE) or not -1 <= value <= 1:
            return f"the judge's preference {value} in the order {order!r} is none from -1 to 1, {FORWARD} or {REVERSE}"
    if contest.scores and len(contest.scores) != number:
        return f"the judge has scores of {len(contest.scores)} candidates, and there are {number}"
    if not all(0 <= score <= 1 for scores in contest.scores for _, score in scores):
        return "a score of the judge is no number from 0 to 1"
    return ""


def _constants(people: Sequence[Observation], scheme: str, drawing: Drawing) -> list[Entrant]:
    words = [FIRST, SECOND, TIE] if scheme == RANKING else [*SCHEMES[scheme], *([TIE] if scheme == "four_way" else [])]
    constants = []
    for word in words:
        pairs = pairs_of([_always(o, word) for o in people], scheme)
        answers = answers_of(pairs, VOTES, scheme, drawing.seed)
        constants.append(Entrant(f"always {word}", CONSTANT, answers, accepted=word != TIE or scheme != "four_way"))
    return constants


def _always(observation: Observation, word: str) -> Observation:
    """A contest in which a judge gave this answer in every order; of a ranking, the candidates in that order."""
    contest = observation.contest
    if contest is None:
        return observation
    number = len(contest.image_models)
    if contest.votes.scheme == RANKING:
        places = map(str, range(number, 0, -1) if word == SECOND else range(1, number + 1))
        word = ("=" if word == TIE else ">").join(places)
    votes = tuple((order, word) for order in (FORWARD, REVERSE, PAPER))
    return replace(observation, contest=replace(contest, given=votes, preferences=(), scores=()))
