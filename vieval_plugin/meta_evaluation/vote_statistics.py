"""Statistics of contests: agreement of a judge's answers with people's votes, and with constant baselines beside it.

All are shares of pairs of candidates with a 95% interval by a bootstrap over groups. A missing answer is wrong and
stays in the denominator, under every policy for failures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

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
from vieval_plugin.meta_evaluation.estimates import Bootstrap
from vieval_plugin.meta_evaluation.findings import Number, Role
from vieval_plugin.meta_evaluation.observations import ContestObservation, Observation, apply_contest_policy, observe
from vieval_plugin.meta_evaluation.statistics import Statistic
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
from vieval_plugin.stats.bootstrap import Ints
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.orders import both_orders_points, consistent_points, each_order_points
from vieval_plugin.stats.votes import NONE, VoteScheme, above_constant, group_points, points
from vieval_plugin.text.errors import VievalError

Share: TypeAlias = Callable[[Answers, Bootstrap], Estimate]
"""A share of pairs, or of contests, from a judge's answers."""


@dataclass(frozen=True, eq=False)
class VoteRows:
    """A judge's answers to the contests of a part, by their subject: `votes`, or the aspects that it scores."""

    pairs: Pairs
    answers: Mapping[str, Answers]
    bootstrap: Bootstrap

    @property
    def scored(self) -> list[Observation]:
        """The contests with an answer to all their pairs."""
        answered_uids = frozenset.intersection(*(answers.complete for answers in self.answers.values()))
        return [o for o in self.pairs.observations if o.uid in answered_uids]


def vote_statistics(subject: str, scheme: str) -> tuple[Statistic, ...]:
    """The statistics that every judge of a benchmark has.

    Args:
        subject: `votes`, or an aspect.
        scheme: that of the benchmark's votes.

    >>> [statistic.name for statistic in vote_statistics("SC", "two_way")]
    ['SC_accuracy_decisive', 'SC_above_constant_decisive']
    """
    tie_handlings = TIE_HANDLINGS[scheme]
    of_subject = order_shares(scheme) if subject == VOTES else bounds([t for t in tie_handlings if t != "decisive"])

    def compute(share: Share, rows: VoteRows) -> Estimate:
        return share(rows.answers[subject], rows.bootstrap)

    return tuple(
        Statistic(
            f"{subject}_{what}", partial(compute, share), primary=what == f"accuracy_{tie_handlings[0]}", aspect=subject
        )
        for what, share in (accuracies(scheme) | of_subject | all_pairs_right_shares(scheme)).items()
    )


def accuracies(scheme: str) -> dict[str, Share]:
    """Accuracy by tie handling, and how far it is above the best constant answer."""

    def accuracy(ties: VoteScheme, answers: Answers, bootstrap: Bootstrap) -> Estimate:
        return bootstrap.share(answers.points(ties), answers.pairs.groups, answers.why.get(ties, ""))

    def above_best_constant(ties: VoteScheme, answers: Answers, bootstrap: Bootstrap) -> Estimate:
        if ties in answers.why:
            return accuracy(ties, answers, bootstrap)
        return _above_constant(answers.pairs, answers.points(ties), ties, bootstrap)

    shares = (("accuracy", accuracy), ("above_constant", above_best_constant))
    return {f"{what}_{ties}": partial(share, ties) for what, share in shares for ties in TIE_HANDLINGS[scheme]}


def bounds(tie_handlings: Iterable[VoteScheme]) -> dict[str, Share]:
    """Accuracy with thresholds that are best on the test set itself, by tie handling."""

    def upper_bound(ties: VoteScheme, answers: Answers, bootstrap: Bootstrap) -> Estimate:
        return bootstrap.share(points(answers.bounds[ties], answers.pairs.human, ties), answers.pairs.groups)

    return {f"upper_bound_{ties}": partial(upper_bound, ties) for ties in tie_handlings}


def all_pairs_right_shares(scheme: str) -> dict[str, Share]:
    """The share of contests all of whose pairs are right, by tie handling; of rankings alone."""

    def all_pairs_accuracy(ties: VoteScheme, answers: Answers, bootstrap: Bootstrap) -> Estimate:
        contest_points = group_points(answers.points(ties), answers.pairs.contest.tolist())[1]
        return bootstrap.share(contest_points, [o.group for o in answers.pairs.observations], answers.why.get(ties, ""))

    tie_handlings = TIE_HANDLINGS[scheme] if scheme == RANKING else ()
    return {f"all_pairs_accuracy_{ties}": partial(all_pairs_accuracy, ties) for ties in tie_handlings}


def order_shares(scheme: str) -> dict[str, Share]:
    """Shares of a judge that votes itself: accuracy of the forward order, and what the two orders are together.

    What two orders are together is counted in the benchmark's most detailed way.
    """
    widest = TIE_HANDLINGS[scheme][0]

    def forward(ties: VoteScheme, answers: Answers, bootstrap: Bootstrap) -> Estimate:
        pairs = answers.pairs
        return _order_share(points(pairs.vote_codes_of_order(FORWARD), pairs.human, ties), False, pairs, bootstrap)

    def paired(of_orders: Callable[[Ints, Ints, Ints], Floats], answers: Answers, bootstrap: Bootstrap) -> Estimate:
        pairs = answers.pairs
        right = of_orders(pairs.vote_codes_of_order(FORWARD), pairs.vote_codes_of_order(REVERSE), pairs.human)
        return _order_share(right, True, pairs, bootstrap)

    def inconsistent(forward: Ints, reverse: Ints, human: Ints) -> Floats:
        differ = consistent_points(forward, reverse, widest) == 0
        return np.asarray((forward != NONE) & (reverse != NONE) & differ, dtype=float)

    of_both: dict[str, Callable[[Ints, Ints, Ints], Floats]] = {
        "both_orders_accuracy": lambda forward, reverse, human: both_orders_points(forward, reverse, human, widest),
        "each_order_accuracy": lambda forward, reverse, human: each_order_points(forward, reverse, human, widest),
        "consistent_share": lambda forward, reverse, human: consistent_points(forward, reverse, widest),
        "inconsistent_share": inconsistent,
    }
    return {
        **{f"forward_accuracy_{ties}": partial(forward, ties) for ties in TIE_HANDLINGS[scheme]},
        **{what: partial(paired, of_orders) for what, of_orders in of_both.items()},
    }


def _order_share(right: Floats, of_both: bool, pairs: Pairs, bootstrap: Bootstrap) -> Estimate:
    reason = _undefined(of_both, pairs)
    return bootstrap.share(np.where(reason != "", np.nan, right), pairs.groups, reason)


def has_paper(pairs: Pairs) -> bool:
    """Return True where answers were read as the authors of a log read them, whether they found a vote or none."""
    return any(PAPER in o.contest.judge_votes for o in pairs.observations if o.contest is not None)


def paper_scheme_shares() -> dict[str, Share]:
    """Accuracy as the authors of a log read its answers, and how far it is above the best constant answer of that kind."""

    def right(answers: Answers) -> Floats:
        return points(answers.pairs.vote_codes_of_order(PAPER), answers.pairs.human, "paper")

    return {
        "accuracy_paper": lambda answers, bootstrap: bootstrap.share(right(answers), answers.pairs.groups),
        "above_constant_paper": lambda answers, bootstrap: _above_constant(
            answers.pairs, right(answers), "paper", bootstrap
        ),
    }


def _undefined(of_both: bool, pairs: Pairs) -> str:
    """Reason why a statistic of orders is undefined; a judge without any answer was asked and failed, which is wrong."""
    contests = [o.contest for o in pairs.observations if o.contest is not None]
    voted = {order for contest in contests for order in contest.judge_votes} & {FORWARD, REVERSE}
    if not voted and any(contest.preferences for contest in contests):
        return "the judge gives preferences and no votes"
    if of_both:
        return "one order was asked" if len(voted) == 1 else ""
    return "the forward order was not asked" if voted == {REVERSE} else ""


def _above_constant(pairs: Pairs, right: Floats, ties: VoteScheme, bootstrap: Bootstrap) -> Estimate:
    """Difference between points and those of the best constant baseline."""
    against = above_constant(right, pairs.human, pairs.groups, ties, resamples=bootstrap.resamples, seed=bootstrap.seed)
    return against.difference


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

    @property
    def left_out_count(self) -> int:
        """The number of contests that were left out."""
        return sum(int(reason.split()[0]) for reason in filter(None, self.left_out.split(", ")))

    def number(self, part: str, statistic: str, estimate: Estimate, breakdown: str = "", value: str = "") -> Number:
        """A number of it on a part."""
        role: Role = "baseline" if self.constant else "judge"
        aspect = self.aspect or VOTES
        return Number(self.label, estimate, part, aspect, statistic, role, breakdown=breakdown, value=value)


@dataclass(frozen=True)
class JudgedPart:
    """A part of a benchmark with all that stand in its tables, and its bootstrap."""

    part: str
    entrants: Sequence[Entrant]
    bootstrap: Bootstrap


def entrants_of(
    part: str, runs: Sequence[Run], scheme: str, bootstrap: Bootstrap, options: StatisticsOptions
) -> list[Entrant]:
    """Entrants of a part, constant baselines first.

    Args:
        part: the benchmark's.
        runs: one a judge, labels all different; those that did not judge the part are left out.
        scheme: that of the benchmark's votes.
        bootstrap: of the part.
        options: the failure policy.

    Returns:
        A constant for each fixed answer, on all contests that any judge was asked about; an entrant for each judge and
        subject.

    Raises:
        VievalError: results that no run writes, such as votes of another scheme, in one line that names the contest.
    """
    observed = {
        run.label: apply_contest_policy(map(observe, run.records[part]), options) for run in runs if part in run.records
    }
    judges = []
    for run in runs:
        if part not in run.records:
            continue
        rows = observed[run.label]
        _require_sound(f"{run.benchmark}/{part}", run.label, rows, scheme)
        left_out_text = ", ".join(
            f"{count} {why}" for why, count in sorted(Counter(map(left_out, rows)).items()) if why
        )
        pairs = pairs_of(rows, scheme)
        judges += [
            Entrant(run.label, subject, answers_of(pairs, subject, scheme, bootstrap.seed), left_out_text)
            for subject in subjects_of(rows, run.aspects)
        ]
    _require_one_vote(part, observed)
    # contests that no judge applies to, because something is wrong with their votes, are in no constant either
    voted_on = {
        o.uid: replace(o, status=Status.OK)
        for rows in observed.values()
        for o in rows
        if o.contest is None or not _fault_of_votes(o.contest, scheme)
    }
    return [*_constants(list(voted_on.values()), scheme, bootstrap), *judges]


def _require_sound(part: str, judge: str, observations: Sequence[Observation], scheme: str) -> None:
    """VievalError for a contest that somebody has edited by hand, or another version wrote: it would count as what it is not."""
    ways: set[str] = set()
    for o in observations:
        if o.contest is None or left_out(o):
            continue
        ways |= {what for what in ("judge_votes", "preferences", "scores") if getattr(o.contest, what)}
        mixed = "of votes, preferences and scores of candidates a judge gives one kind, and other contests have another"
        fault = _fault_of_votes(o.contest, scheme) or _fault_of_answer(o.contest) or mixed * (len(ways) > 1)
        if fault:
            raise VievalError(f"{part}/{o.uid} of {judge}: {fault}; restore the results, or run the judge again")


def _require_one_vote(part: str, observed: Mapping[str, Sequence[Observation]]) -> None:
    """VievalError where results have different votes of people on one contest: no number would hold for all of them."""
    first_vote_by_uid: dict[str, tuple[str, str]] = {}
    for judge, rows in observed.items():
        for o in rows:
            if o.contest is None:
                continue
            vote = o.contest.votes.vote
            first, first_vote = first_vote_by_uid.setdefault(o.uid, (judge, vote))
            if vote != first_vote:
                raise VievalError(
                    f"{part}/{o.uid}: people's vote is {first_vote or 'none'!r} in the results of {first} and "
                    f"{vote or 'none'!r} in those of {judge}; run both on the same data"
                )


def _fault_of_votes(contest: ContestObservation, scheme: str) -> str:
    """The fault in people's votes, in words; empty where there is none."""
    if contest.votes.scheme != scheme:
        return f"its votes are {contest.votes.scheme}, and this benchmark reports on {scheme} votes"
    return fault_of_votes(contest.votes, len(contest.image_models))


def _fault_of_answer(contest: ContestObservation) -> str:
    """The fault in a judge's answer, in words; empty where there is none."""
    number = len(contest.image_models)
    for order, vote in contest.judge_votes.items():
        if order not in (FORWARD, REVERSE, PAPER):
            return f"the judge has a vote in an order {order!r}, and there are {FORWARD}, {REVERSE} and {PAPER}"
        unparsed = order == PAPER and not vote
        if not unparsed and not (vote in CODES and number == 2) and not ranks(vote, number):
            return f"the judge's vote {vote!r} is none on {number} candidates"
    for order, value in contest.preferences.items():
        if order not in (FORWARD, REVERSE) or not -1 <= value <= 1:
            return f"the judge's preference {value} in the order {order!r} is none from -1 to 1, {FORWARD} or {REVERSE}"
    if contest.scores and len(contest.scores) != number:
        return f"the judge has scores of {len(contest.scores)} candidates, and there are {number}"
    if not all(-1 <= score <= 1 for scores in contest.scores for score in scores.values()):
        return "a score of the judge is no number from -1 to 1"
    return ""


def _constants(contests: Sequence[Observation], scheme: str, bootstrap: Bootstrap) -> list[Entrant]:
    values = [FIRST, SECOND, TIE] if scheme == RANKING else [*SCHEMES[scheme], *([TIE] if scheme == "four_way" else [])]
    constants = []
    for vote in values:
        pairs = pairs_of([_always(o, vote) for o in contests], scheme)
        answers = answers_of(pairs, VOTES, scheme, bootstrap.seed)
        constants.append(Entrant(f"always {vote}", CONSTANT, answers, accepted=vote != TIE or scheme != "four_way"))
    return constants


def _always(observation: Observation, vote: str) -> Observation:
    """A contest in which a judge gave this answer in every order; of a ranking, the candidates in that order."""
    contest = observation.contest
    if contest is None:
        return observation
    number = len(contest.image_models)
    if contest.votes.scheme == RANKING:
        candidates = map(str, range(number, 0, -1) if vote == SECOND else range(1, number + 1))
        vote = ("=" if vote == TIE else ">").join(candidates)
    votes = dict.fromkeys((FORWARD, REVERSE, PAPER), vote)
    return replace(observation, contest=replace(contest, judge_votes=votes, preferences={}, scores=()))
