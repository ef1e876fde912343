"""A contest: outputs made under the same conditions, and which of them people, or a judge, prefer.

A judge of contests gets a `Contest` where others get a `Sample`. Any judge of samples judges
contests too, candidate by candidate: `candidate_program` is its program then, and `together` makes
one verdict of those on the candidates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import TypeAlias, TypeVar

from vieval_plugin.judges.arguments import named_arguments, require, require_all
from vieval_plugin.judges.protocol import (
    Ask,
    Asking,
    Choice,
    Judge,
    Program,
    Reply,
    Sample,
    SampleId,
    Verdict,
    worst,
)

T = TypeVar("T")

FIRST = "first"
SECOND = "second"
TIE = "tie"
BOTH_GOOD = "both_good"
BOTH_BAD = "both_bad"
#: The answers that each scheme of two candidates accepts.
SCHEMES: Mapping[str, tuple[str, ...]] = {
    "four_way": (FIRST, SECOND, BOTH_GOOD, BOTH_BAD),
    "three_way": (FIRST, SECOND, TIE),
    "two_way": (FIRST, SECOND),
}
#: The orders of a `Choice`: candidates as they stand, the other way round, and forward as a log's
#: authors read answers.
FORWARD = "forward"
REVERSE = "reverse"
PAPER = "paper"
#: The scheme of any number of candidates, best first: `2>1=3`, each candidate named once by its
#: number from 1.
RANKING = "ranking"
_SCHEME_NAMES = ", ".join((*SCHEMES, RANKING))


@named_arguments
@dataclass(frozen=True)
class Votes:
    """Votes of annotators on a contest, in the benchmark's own scheme."""

    #: One of `SCHEMES` or `RANKING`; empty where nobody was asked, which suits any number of
    #: candidates.
    scheme: str = ""
    #: What counts as the annotators' answer; empty where nothing was said.
    vote: str = ""
    #: Answer of each of several annotators in the same scheme.
    annotators: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require(
            self.scheme,
            str,
            "Votes.scheme",
            f"one of {_SCHEME_NAMES}",
        )
        require(
            self.vote,
            str,
            "Votes.vote",
            "a vote of the scheme as a string, or omit it",
        )
        answers = require_all(
            self.annotators,
            str,
            "Votes.annotators",
            "a tuple of strings, one for each annotator",
        )
        object.__setattr__(self, "annotators", answers)


@named_arguments
@dataclass(frozen=True)
class Contest:
    """Two or more candidates under the same conditions."""

    #: Identity, which names no image model.
    id: SampleId
    #: Samples that share images and texts; one that is in several contests has the same `id` in
    #: each.
    candidates: tuple[Sample, ...]
    #: Votes of annotators.
    votes: Votes = field(default_factory=Votes)
    #: Cluster of the bootstrap, such as the prompt.
    group: str = ""
    #: The benchmark's categories.
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require(
            self.id,
            SampleId,
            "Contest.id",
            'SampleId(benchmark, part, "", uid)',
        )
        candidates = require_all(
            self.candidates,
            Sample,
            "Contest.candidates",
            "a tuple of at least 2 Samples",
        )
        object.__setattr__(self, "candidates", candidates)
        require(
            self.votes,
            Votes,
            "Contest.votes",
            'Votes(scheme, vote), such as Votes("two_way", "first")',
        )
        object.__setattr__(self, "group", self.group or self.id.uid)

    @property
    def kind(self) -> str:
        """The kind of its candidates; empty without any."""
        return self.candidates[0].kind if self.candidates else ""


Judged: TypeAlias = Sample | Contest
JudgeOfContests: TypeAlias = Callable[[Contest], Program]


def candidates_of(judged: Judged) -> tuple[Sample, ...]:
    """The samples of a contest, or the sample itself."""
    return judged.candidates if isinstance(judged, Contest) else (judged,)


def fault(contest: Contest) -> str:
    """Fault of a contest, in words; empty for a good one.

    >>> sample = Sample(SampleId("own", "tie", "mine", "1"), {})
    >>> fault(Contest(SampleId("own", "tie", "", "1"), (sample,)))
    'a contest must have at least 2 candidates, got 1'
    >>> fault(Contest(SampleId("own", "tie", "", "1"), (sample, sample), Votes("two_way", "left")))
    "a two_way vote must be one of first, second, got 'left'"
    """
    return fault_of_votes(contest.votes, len(contest.candidates))


def fault_of_votes(votes: Votes, number: int) -> str:
    """Fault of votes on so many candidates, or of that number, in words; empty for good ones."""
    if number < 2:
        return f"a contest must have at least 2 candidates, got {number}"
    cast_votes = [vote for vote in (votes.vote, *votes.annotators) if vote]
    if not votes.scheme and not cast_votes:
        return ""
    if votes.scheme not in (*SCHEMES, RANKING):
        return f"unknown vote scheme {votes.scheme!r}; known schemes: {_SCHEME_NAMES}"
    if votes.scheme != RANKING and number != 2:
        return f"{votes.scheme} votes require exactly 2 candidates, got {number}"
    for vote in cast_votes:
        if votes.scheme == RANKING:
            if not ranks(vote, number):
                return (
                    f"a vote must rank {number} candidates, such as 2>1=3, got {vote!r}"
                )
        elif vote not in SCHEMES[votes.scheme]:
            answers = ", ".join(SCHEMES[votes.scheme])
            return f"a {votes.scheme} vote must be one of {answers}, got {vote!r}"
    return ""


def ranks(ranking: str, number: int) -> tuple[int, ...]:
    """The place of each candidate in a ranking, from 1; equal for ties. Empty for an
    invalid ranking.

    >>> ranks("2>1=3", 3)
    (2, 1, 2)
    >>> ranks("2>1", 3)
    ()
    """
    if not re.fullmatch(r"[0-9]{1,4}([>=][0-9]{1,4})*", ranking):
        return ()
    rank_by_candidate: dict[int, int] = {}
    rank = 1
    signed_candidates = re.findall(r"(^|[>=])([0-9]+)", ranking)
    for sign, candidate in signed_candidates:
        rank = len(rank_by_candidate) + 1 if sign == ">" else rank
        rank_by_candidate[int(candidate)] = rank
    candidates = range(1, number + 1)
    if len(signed_candidates) != number:
        return ()
    if sorted(rank_by_candidate) != list(candidates):
        return ()
    return tuple(rank_by_candidate[candidate] for candidate in candidates)


def contest_verdict(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a contest of a judge that judged its candidates, in their order.

    The steps of the candidate numbered n from 1 stand below `n`. The contest's status is that of
    its worst candidate.
    """
    trace = []
    rationales = []
    findings: list[str] = []
    scores = []
    recorded = []
    for n, verdict in enumerate(verdicts, start=1):
        for step in verdict.trace:
            trace.append(replace(step, path=(str(n), *step.path)))
        if verdict.rationale:
            rationales.append(f"{n}: {verdict.rationale}")
        findings += verdict.findings
        scores.append(verdict.scores)
        recorded.append({**verdict.scores, **verdict.recorded})
    choice = Choice(scores=tuple(scores))
    if any(verdict.recorded for verdict in verdicts):
        choice = replace(choice, recorded=tuple(recorded))
    return Verdict(
        {},
        worst([verdict.status for verdict in verdicts]),
        rationale="\n".join(rationales),
        trace=tuple(trace),
        findings=tuple(findings),
        choice=choice,
    )


def candidate_program(judge: Judge, contest: Contest) -> Program:
    """The program of a judge of samples for a contest: all candidates side by side."""
    programs = []
    for n, candidate in enumerate(contest.candidates, start=1):
        programs.append(_prefix_paths(str(n), judge(candidate)))
    return contest_verdict((yield from gather(programs)))


def _prefix_paths(name: str, program: Program) -> Program:
    """A program with its asks below a name, so that no other's have the same path."""
    replies: list[Reply] | None = None
    try:
        while True:
            asks = next(program) if replies is None else program.send(replies)
            replies = yield [replace(ask, path=(name, *ask.path)) for ask in asks]
    except StopIteration as end:
        verdict: Verdict = end.value
        return verdict


def gather(
    programs: Sequence[Asking[T]],
) -> Asking[list[T]]:
    """Advance sub-programs in step: all their asks in one list, to each its own replies. Their
    results, in order.

    For use with `yield from` in a judge program.
    """
    results: dict[int, T] = {}
    asks: dict[int, list[Ask]] = {}

    def advance(index: int, replies: list[Reply] | None) -> None:
        asks.pop(index, None)
        program = programs[index]
        try:
            if replies is None:
                asks[index] = next(program)
            else:
                asks[index] = program.send(replies)
        except StopIteration as end:
            results[index] = end.value

    for index in range(len(programs)):
        advance(index, None)
    while asks:
        under_way = list(asks.items())
        replies = iter((yield list(chain.from_iterable(asks.values()))))
        for index, program_asks in under_way:
            advance(index, list(islice(replies, len(program_asks))))
    return [results[index] for index in range(len(programs))]
