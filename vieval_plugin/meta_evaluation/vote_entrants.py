"""Entrants in the tables of contests: judges and constant baselines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
from vieval_plugin.meta_evaluation.observations import Contested, Observation, observe
from vieval_plugin.meta_evaluation.vote_answers import VOTES, Answers, answers_of, subjects_of
from vieval_plugin.meta_evaluation.vote_codes import CODES, left_out, pairs_of
from vieval_plugin.meta_evaluation.vote_statistics import Drawing
from vieval_plugin.records import Run

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
