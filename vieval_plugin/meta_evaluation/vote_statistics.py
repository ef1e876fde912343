"""Statistics of contests: agreement of a judge's answers with people's votes, and with constant
baselines beside it.

All are shares of pairs of candidates with a 95% interval by a bootstrap over groups. A missing
answer is wrong and stays in the denominator, under every policy for failures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from typing import NamedTuple, TypeAlias

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
from vieval_plugin.meta_evaluation.findings import Number, Role, preferred
from vieval_plugin.meta_evaluation.observations import (
    ContestObservation,
    Observation,
    apply_contest_policy,
    observe,
)
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
from vieval_plugin.stats.bootstrap import Ints, grouped
from vieval_plugin.stats.comparison import Bools
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.orders import (
    both_orders_points,
    consistent_points,
    each_order_points,
)
from vieval_plugin.stats.votes import (
    NONE,
    VoteScheme,
    best_constant,
    group_points,
    points,
)
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import plural


class Points(NamedTuple):
    """Points of items: 1 where the judge is right, 0 where it is not, NaN for what does not
    count; their mean is a share.
    """

    #: Shape (..., items).
    values: Floats
    #: Cluster of each item.
    groups: Sequence[str]
    #: Reason why there are none.
    reason: str = ""

    def where(self, mask: Bools) -> Points:
        """Return those of a mask of shape (items,)."""
        groups = list(compress(self.groups, mask))
        return Points(self.values[..., mask], groups, self.reason)


#: A share of pairs, or of contests, by a judge's answers.
Scored: TypeAlias = Callable[[Answers], Points]
#: Points of pairs by the codes of both orders and of people.
_OrderPoints: TypeAlias = Callable[[Ints, Ints, Ints], Floats]


@dataclass(frozen=True, eq=False)
class VoteRows:
    """A judge's answers to the contests of a part, by their subject: `votes`, or the aspects
    that it scores.
    """

    pairs: Pairs
    answers: Mapping[str, Answers]
    bootstrap: Bootstrap

    @property
    def scored(self) -> list[Observation]:
        """The contests with an answer to all their pairs."""
        answered_uids = frozenset.intersection(
            *(answers.complete for answers in self.answers.values())
        )
        return [
            observation
            for observation in self.pairs.observations
            if observation.uid in answered_uids
        ]


def vote_statistics(subject: str, scheme: str) -> tuple[Statistic, ...]:
    """The statistics that every judge of a benchmark has.

    Args:
        subject: `votes`, or an aspect.
        scheme: that of the benchmark's votes.

    >>> [statistic.name for statistic in vote_statistics("SC", "two_way")]
    ['SC_accuracy_decisive', 'SC_above_constant_decisive']
    """
    tie_handlings = TIE_HANDLINGS[scheme]
    if subject == VOTES:
        subject_points = order_shares(scheme)
    else:
        subject_points = bounds([ties for ties in tie_handlings if ties != "decisive"])

    def compute(share: Scored, rows: VoteRows) -> Estimate:
        return rows.bootstrap.share(*share(rows.answers[subject]))

    return tuple(
        Statistic(
            f"{subject}_{what}",
            partial(compute, share),
            primary=what == f"accuracy_{tie_handlings[0]}",
            aspect=subject,
        )
        for what, share in (
            accuracies(scheme) | subject_points | all_pairs_right_shares(scheme)
        ).items()
    )


def accuracy(ties: VoteScheme, answers: Answers) -> Points:
    """Points of the pairs whose answer is people's."""
    reason = answers.why.get(ties, "")
    return Points(answers.points(ties), answers.pairs.groups, reason)


def accuracies(scheme: str) -> dict[str, Scored]:
    """Accuracy by tie handling, and how far it is above the best constant answer."""

    def above_best_constant(ties: VoteScheme, answers: Answers) -> Points:
        right = accuracy(ties, answers)
        if right.reason:
            return right
        return _above_constant(right, answers, ties)

    shares = (("accuracy", accuracy), ("above_constant", above_best_constant))
    return {
        f"{what}_{ties}": partial(share, ties)
        for what, share in shares
        for ties in TIE_HANDLINGS[scheme]
    }


def bounds(tie_handlings: Iterable[VoteScheme]) -> dict[str, Scored]:
    """Accuracy with thresholds that are best on the test set itself, by tie handling."""

    def upper_bound(ties: VoteScheme, answers: Answers) -> Points:
        right = points(answers.bounds[ties], answers.pairs.human, ties)
        return Points(right, answers.pairs.groups)

    return {f"upper_bound_{ties}": partial(upper_bound, ties) for ties in tie_handlings}


def all_pairs_right_shares(scheme: str) -> dict[str, Scored]:
    """The share of contests all of whose pairs are right, by tie handling; of rankings alone."""

    def all_pairs_accuracy(ties: VoteScheme, answers: Answers) -> Points:
        contests = answers.pairs.contest.tolist()
        _, contest_points = group_points(answers.points(ties), contests)
        groups = [observation.group for observation in answers.pairs.observations]
        return Points(contest_points, groups, answers.why.get(ties, ""))

    if scheme != RANKING:
        return {}
    return {
        f"all_pairs_accuracy_{ties}": partial(all_pairs_accuracy, ties)
        for ties in TIE_HANDLINGS[scheme]
    }


def order_shares(scheme: str) -> dict[str, Scored]:
    """Shares of a judge that votes itself: accuracy of the forward order, and what the two orders
    are together.

    What two orders are together is counted in the benchmark's most detailed way.
    """
    widest = TIE_HANDLINGS[scheme][0]

    def forward(ties: VoteScheme, answers: Answers) -> Points:
        right = points(answers.answers_in_order(FORWARD), answers.pairs.human, ties)
        return _mask_unasked(right, False, answers)

    def paired(points_of_orders: _OrderPoints, answers: Answers) -> Points:
        forward_codes = answers.answers_in_order(FORWARD)
        reverse_codes = answers.answers_in_order(REVERSE)
        right = points_of_orders(forward_codes, reverse_codes, answers.pairs.human)
        return _mask_unasked(right, True, answers)

    def consistent(forward: Ints, reverse: Ints, human: Ints) -> Floats:
        return consistent_points(forward, reverse, widest)

    def inconsistent(forward: Ints, reverse: Ints, human: Ints) -> Floats:
        differ = consistent_points(forward, reverse, widest) == 0
        has_both = (forward != NONE) & (reverse != NONE)
        return np.asarray(has_both & differ, dtype=float)

    order_points: dict[str, _OrderPoints] = {
        "both_orders_accuracy": partial(both_orders_points, scheme=widest),
        "each_order_accuracy": partial(each_order_points, scheme=widest),
        "consistent_share": consistent,
        "inconsistent_share": inconsistent,
    }
    shares: dict[str, Scored] = {}
    for ties in TIE_HANDLINGS[scheme]:
        shares[f"forward_accuracy_{ties}"] = partial(forward, ties)
    for what, points_of_orders in order_points.items():
        shares[what] = partial(paired, points_of_orders)
    return shares


def _mask_unasked(right: Floats, order_points: bool, answers: Answers) -> Points:
    """Points of orders, none of orders that were not asked; a judge without any answer was asked
    and failed, which is wrong.
    """
    voted = answers.by_order.keys() & {FORWARD, REVERSE}
    reason = ""
    if not voted and any(contest.preferences for contest in answers.pairs.contests):
        reason = "the judge gives preferences, not votes"
    elif order_points and len(voted) == 1:
        reason = "only one order was shown"
    elif not order_points and voted == {REVERSE}:
        reason = "the forward order was not shown"
    if reason:
        right = np.full(right.shape, np.nan)
    return Points(right, answers.pairs.groups, reason)


def paper_scheme_shares() -> dict[str, Scored]:
    """Accuracy as the authors of a log read its answers, and how far it is above the best
    constant answer of that kind.
    """

    def right(answers: Answers) -> Points:
        codes = answers.answers_in_order(PAPER)
        paper_points = points(codes, answers.pairs.human, "paper")
        return Points(paper_points, answers.pairs.groups)

    return {
        "accuracy_paper": right,
        "above_constant_paper": lambda answers: _above_constant(
            right(answers), answers, "paper"
        ),
    }


def _above_constant(right: Points, answers: Answers, ties: VoteScheme) -> Points:
    """Points less those of the best constant baseline."""
    return right._replace(
        values=right.values - best_constant(answers.pairs.human, ties)
    )


#: The subject of a constant baseline.
CONSTANT = "constant"


@dataclass(frozen=True, eq=False)
class Entrant:
    """A judge with what its votes come from, or a constant baseline."""

    #: The benchmark's part.
    part: str
    #: Its name in tables.
    label: str
    #: `votes`, an aspect, or `constant`.
    subject: str
    #: What it said of each pair.
    answers: Answers
    #: Number of contests that were left out, by reason.
    left_out: Mapping[str, int] = field(default_factory=dict)
    #: False where the benchmark's own scheme has no such answers: of four-way votes a bare tie is
    #: the authors' reading only.
    accepted: bool = True

    @property
    def constant(self) -> bool:
        """True for a constant baseline."""
        return self.subject == CONSTANT

    @property
    def aspect(self) -> str:
        """The aspect of its cells: none but for the scores of one."""
        if self.subject in (VOTES, CONSTANT):
            return ""
        return self.subject


@dataclass(frozen=True)
class JudgedPart:
    """A part of a benchmark with all that stand in its tables, and its bootstrap."""

    part: str
    entrants: Sequence[Entrant]
    bootstrap: Bootstrap

    @property
    def constants(self) -> list[Entrant]:
        """The constant baselines whose answers the benchmark's own scheme has."""
        return [
            entrant
            for entrant in self.entrants
            if entrant.constant and entrant.accepted
        ]

    @property
    def judges(self) -> list[Entrant]:
        """The entrants that are not constant baselines."""
        return [entrant for entrant in self.entrants if not entrant.constant]

    def number(
        self,
        entrant: Entrant,
        statistic: str,
        share: Points | Estimate,
        breakdown: str = "",
        value: str = "",
    ) -> Number:
        """Return a number of an entrant: the share of its points, or what it is."""
        role: Role = "judge"
        if entrant.constant:
            role = "baseline"
        if not isinstance(share, Estimate):
            share = self.bootstrap.share(*share)
        aspect = entrant.aspect or VOTES
        return Number(
            system=entrant.label,
            estimate=share,
            part=self.part,
            aspect=aspect,
            statistic=statistic,
            role=role,
            breakdown=breakdown,
            value=value,
        )


def default_subjects(judges: Iterable[Entrant]) -> dict[str, str]:
    """The subject that each judge stands for: its own votes, or its score of one aspect."""
    by_judge = grouped((judge.label, judge.subject) for judge in judges)
    return {label: preferred(subjects)[0] for label, subjects in by_judge.items()}


def entrants_of(
    part: str,
    runs: Sequence[Run],
    scheme: str,
    bootstrap: Bootstrap,
    options: StatisticsOptions,
) -> list[Entrant]:
    """Entrants of a part, constant baselines first.

    Args:
        part: the benchmark's.
        runs: one a judge, labels all different; those that did not judge the part are left out.
        scheme: that of the benchmark's votes.
        bootstrap: of the part.
        options: the failure policy.

    Returns:
        A constant for each fixed answer, on all contests that any judge was asked about; an entrant
        for each judge and subject.

    Raises:
        VievalError: results that no run writes, such as votes of another scheme, in one line that
            names the contest.
    """
    judges = []
    voted_on = {}
    for run in runs:
        if part not in run.records:
            continue
        rows = apply_contest_policy(map(observe, run.records[part]), options)
        _require_sound(f"{run.benchmark}/{part}", run.label, rows, scheme)
        reasons = Counter(map(left_out, rows))
        left_out_by_reason = {why: n for why, n in sorted(reasons.items()) if why}
        pairs = pairs_of(rows, scheme)
        for subject in subjects_of(rows, run.aspects):
            answers = answers_of(pairs, subject, scheme, bootstrap.seed)
            judges.append(
                Entrant(
                    part=part,
                    label=run.label,
                    subject=subject,
                    answers=answers,
                    left_out=left_out_by_reason,
                )
            )
        # contests that no judge applies to, because something is wrong with their votes, are in
        # no constant either
        for observation in rows:
            if observation.contest is None or not _fault_of_votes(
                observation.contest, scheme
            ):
                voted_on[observation.uid] = replace(observation, status=Status.OK)
    constants = _constants(part, list(voted_on.values()), scheme)
    return [*constants, *judges]


def _require_sound(
    part: str, judge: str, observations: Sequence[Observation], scheme: str
) -> None:
    """Raise VievalError for a contest that somebody has edited by hand, or another
    version wrote: it would count as what it is not.
    """
    ways = set[str]()
    for observation in observations:
        contest = observation.contest
        if contest is None or left_out(observation):
            continue
        fault = _fault_of_votes(contest, scheme) or _fault_of_answer(contest)
        for kind in ("judge_votes", "preferences", "scores"):
            if getattr(contest, kind):
                ways.add(kind)
        if len(ways) > 1 and not fault:
            fault = (
                "a judge must give the same kind of answer "
                "(votes, preferences or scores) in all contests"
            )
        if fault:
            raise VievalError(
                f"{part}/{observation.uid} of {judge}: {fault}; "
                "restore the results, or run the judge again"
            )


def _fault_of_votes(contest: ContestObservation, scheme: str) -> str:
    """The fault in people's votes, in words; empty if they are valid."""
    if contest.votes.scheme != scheme:
        return f"its votes must be {scheme} votes, got {contest.votes.scheme}"
    return fault_of_votes(contest.votes, len(contest.image_models))


def _fault_of_answer(contest: ContestObservation) -> str:
    """The fault in a judge's answer, in words; empty if it is valid."""
    number = len(contest.image_models)
    for order, vote in contest.judge_votes.items():
        if order not in (FORWARD, REVERSE, PAPER):
            return (
                f"the order of a judge's vote must be {FORWARD}, {REVERSE} or {PAPER}, "
                f"got {order!r}"
            )
        is_unparsed = order == PAPER and not vote
        is_vote_on_two = vote in CODES and number == 2
        if not (is_unparsed or is_vote_on_two or ranks(vote, number)):
            return f"the judge's vote {vote!r} is not valid for {number} candidates"
    for order, value in contest.preferences.items():
        if order not in (FORWARD, REVERSE) or not -1 <= value <= 1:
            return (
                f"the judge's preference must be from -1 to 1 in the order {FORWARD} or "
                f"{REVERSE}, got {value} in the order {order!r}"
            )
    if contest.scores and len(contest.scores) != number:
        got = plural(len(contest.scores), "score")
        return f"the judge must score {number} candidates, got {got}"
    for scores in contest.scores:
        if not all(-1 <= score <= 1 for score in scores.values()):
            return "the judge's scores must be numbers from -1 to 1"
    return ""


def _constants(
    part: str, contests: Sequence[Observation], scheme: str
) -> list[Entrant]:
    """Constant baselines, in every order of showing; of a ranking, first or second is the better
    of each pair.
    """
    pairs = pairs_of(contests, scheme)
    if scheme == RANKING:
        values = [FIRST, SECOND, TIE]
    else:
        values = [*SCHEMES[scheme]]
        if scheme == "four_way":
            values.append(TIE)
    constants = []
    for vote in values:
        codes = np.full(len(pairs.human), CODES[vote])
        by_handling = dict.fromkeys(TIE_HANDLINGS[scheme], codes)
        by_order = dict.fromkeys((FORWARD, REVERSE, PAPER), codes)
        answers = Answers(pairs, by_handling, by_order=by_order)
        accepted = vote != TIE or scheme != "four_way"
        constants.append(
            Entrant(
                part=part,
                label=f"always {vote}",
                subject=CONSTANT,
                answers=answers,
                accepted=accepted,
            )
        )
    return constants
