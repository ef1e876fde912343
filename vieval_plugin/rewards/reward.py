"""Rewards: a judge's score of an image, a weighted sum of several, or the share of wins within a
group.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

from vieval_plugin.api.verdicts import main_aspect, preference, unknown_aspect_error
from vieval_plugin.judges.contests import Contest, Judged
from vieval_plugin.judges.protocol import Sample, SampleId, Status, Verdict, worst
from vieval_plugin.records import OWN
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.redaction import redacted

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_TERM = re.compile(
    r"(?:(?P<weight>[+-]?[0-9.]+)\*)?(?P<judge>.+?)(?::(?P<aspect>[A-Za-z_]\w*))?"
)


@dataclass(frozen=True)
class Term:
    """A judge's score of one aspect, times a weight; of a judge of contests the share of wins,
    which has no aspect.
    """

    judge: PreparedJudge
    #: The aspect, empty for the share of wins.
    aspect: str = ""
    #: What the score is multiplied with.
    weight: float = 1.0

    def __str__(self) -> str:
        weight = "" if self.weight == 1 else f"{self.weight:g} * "
        return f"{weight}{self.judge.spec.name} {self.aspect}".rstrip()

    @property
    def groupwise(self) -> bool:
        """Return whether it says something of a whole group only."""
        return self.judge.spec.rates == "contest"

    def to_judge(self, judged: Sequence[Judged]) -> list[Judged]:
        """Make what the judge is asked about: samples and contests as they are, or all pairs of
        a group's samples.
        """
        samples = [sample for sample in judged if isinstance(sample, Sample)]
        return list(pairs(samples)) if self.groupwise and samples else list(judged)


@dataclass(frozen=True)
class Reward:
    """A sum of terms."""

    #: Name that trainers know it by.
    name: str
    #: Judges with their aspects and weights.
    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return " + ".join(map(str, self.terms))

    @property
    def groupwise(self) -> bool:
        """Return whether it needs the members of a group together."""
        return any(term.groupwise for term in self.terms)


def require_a_score_each(terms: Iterable[Term]) -> None:
    """Raise VievalError for a judge that has no score for some complete samples: the first of them
    would stop a trainer.
    """
    for spec in (term.judge.spec for term in terms if term.judge.spec.some_samples):
        raise VievalError(
            f"{spec.name} scores only {spec.some_samples}, so any other sample would stop the "
            "trainer; set on_failure to neutral (vieval serve: --on-failure neutral), which "
            "gives a failed sample the mean of its group"
        )


@dataclass(frozen=True)
class RewardValue:
    """The reward of one sample, or of one term of it."""

    #: The number, None if missing.
    value: float | None
    #: The worst status of its verdicts.
    status: Status
    #: Why there is no number.
    reason: str = ""
    #: The verdicts that it comes from, by term.
    verdicts: tuple[Verdict, ...] = ()
    #: True where the number is the mean of the group's others, because its own judgement failed.
    imputed: bool = False


def read_reward(text: str, prepare: Callable[[str], PreparedJudge]) -> Reward:
    """A reward from `NAME=JUDGE[:ASPECT]`, or from a sum such as
    `NAME=0.7*viescore:SC+0.3*sharpness`.

    Args:
        text: the reward; a judge is a name or the file that describes it.
        prepare: makes a judge ready by its name or file.

    Raises:
        VievalError: it says something else, or there is no such judge or aspect.
    """
    name, sign, definition = text.partition("=")
    if not sign or not _NAME.fullmatch(name):
        raise VievalError(
            f"a reward must be NAME=JUDGE[:ASPECT], got {text!r}; NAME may contain letters, "
            "digits, - and _"
        )
    return Reward(name, read_terms(definition, prepare))


def read_terms(
    definition: str, prepare: Callable[[str], PreparedJudge]
) -> tuple[Term, ...]:
    """The terms of `JUDGE[:ASPECT]` or of a weighted sum of such; VievalError as `read_reward`."""
    terms = tuple(_term(part.strip(), prepare) for part in definition.split("+"))
    if not any(term.weight for term in terms):
        raise VievalError(f"all weights in {definition!r} are 0; change at least one")
    return terms


def _term(text: str, prepare: Callable[[str], PreparedJudge]) -> Term:
    match = _TERM.fullmatch(text)
    if not match:
        raise VievalError(
            f"{text!r} is not part of a reward; use JUDGE, JUDGE:ASPECT or WEIGHT*JUDGE:ASPECT"
        )
    try:
        weight = float(match["weight"] or 1)
    except ValueError:
        raise VievalError(
            f"{text!r}: the weight must be a number, got {match['weight']!r}"
        ) from None
    judge = prepare(match["judge"])
    if judge.spec.rates == "contest":
        if match["aspect"]:
            raise VievalError(
                f"{judge.spec.name} compares images and has no aspects; remove "
                f":{match['aspect']}"
            )
        return Term(judge, "", weight)
    aspect = match["aspect"] or main_aspect(judge.spec.aspects)
    if aspect not in judge.spec.aspects:
        raise VievalError(
            f"{text!r}: {unknown_aspect_error(aspect, judge.spec.aspects)}"
        )
    return Term(judge, aspect, weight)


def reward_values(
    reward: Reward, number: int, verdicts: Sequence[Sequence[Verdict]]
) -> list[RewardValue]:
    """The reward of each sample.

    Args:
        reward: the reward.
        number: the samples that were judged; all of one group where it is groupwise.
        verdicts: by term, those on what `Term.to_judge` has.
    """
    by_term = [
        _shares(number, term_verdicts)
        if term.groupwise
        else [_score(verdict, term.aspect) for verdict in term_verdicts]
        for term, term_verdicts in zip(
            reward.terms,
            verdicts,
            strict=True,
        )
    ]
    return [_sum(reward, parts) for parts in zip(*by_term, strict=True)]


def _score(verdict: Verdict, aspect: str) -> RewardValue:
    score = verdict.scores.get(aspect)
    status = verdict.status
    reason = verdict.reason
    if score is None:
        status = Status.PARSE_FAILURE if status.usable else status
        reason = reason or f"no score for {aspect}"
    return RewardValue(score, status, reason, (verdict,))


def pairs(samples: Sequence[Sample]) -> Iterator[Contest]:
    """The contests of each member of a group with each other, in the order of
    `itertools.combinations`.
    """
    for (n, first), (m, second) in combinations(enumerate(samples), 2):
        identity = SampleId(OWN, first.kind, "", f"{n}-{m}")
        yield Contest(identity, (first, second))


def win_shares(
    number: int, verdicts: Sequence[Verdict]
) -> list[tuple[float | None, tuple[Verdict, ...]]]:
    """The share of wins of each member of a group, in [0, 1], and the verdicts on its contests.

    Each opponent counts once, a tie as half a win, and both orders of a contest alike. A member of
    which a contest failed has no share, as one over fewer opponents would be another measure than
    the others'.

    Args:
        number: the members.
        verdicts: on the contests of `pairs`.

    >>> from vieval_plugin.judges.protocol import Choice, Status
    >>> first = Verdict({}, Status.OK, choice=Choice({"forward": "first", "reverse": "first"}))
    >>> even = Verdict({}, Status.OK, choice=Choice({"forward": "first", "reverse": "second"}))
    >>> [share for share, _ in win_shares(3, [first, first, even])]
    [1.0, 0.25, 0.25]
    """
    wins: list[list[float]] = [[] for _ in range(number)]
    involved: list[list[Verdict]] = [[] for _ in range(number)]
    contests = combinations(range(number), 2)
    for (first, second), verdict in zip(
        contests,
        verdicts,
        strict=True,
    ):
        involved[first].append(verdict)
        involved[second].append(verdict)
        if verdict.status.usable:
            share = (preference(verdict, "") + 1) / 2
            wins[first].append(share)
            wins[second].append(1 - share)
    shares = [
        sum(won) / len(won) if len(won) == number - 1 > 0 else None for won in wins
    ]
    return list(zip(shares, map(tuple, involved), strict=True))


def _shares(number: int, verdicts: Sequence[Verdict]) -> list[RewardValue]:
    values = []
    for share, involved in win_shares(number, verdicts):
        reason = next((verdict.reason for verdict in involved if verdict.reason), "")
        status = worst([verdict.status for verdict in involved])
        values.append(RewardValue(share, status, reason, involved))
    return values


def _sum(reward: Reward, parts: Sequence[RewardValue]) -> RewardValue:
    verdicts = tuple(chain.from_iterable(part.verdicts for part in parts))
    failed = [part for part in parts if part.value is None]
    status = worst([part.status for part in failed or parts])
    if failed:
        reason = next(part.reason for part in failed if part.status is status)
        return RewardValue(None, status, reason, verdicts)
    weighted = zip(reward.terms, parts, strict=True)
    products = [
        term.weight * part.value for term, part in weighted if part.value is not None
    ]
    return RewardValue(math.fsum(products), status, "", verdicts)


def averaged(values: Sequence[RewardValue]) -> RewardValue:
    """The mean of several values of one sample; the first that failed where one did."""
    first = next((value for value in values if value.value is None), values[0])
    if first.value is None or len(values) == 1:
        return first
    total = math.fsum(value.value for value in values if value.value is not None)
    verdicts = tuple(chain.from_iterable(value.verdicts for value in values))
    status = worst([value.status for value in values])
    return RewardValue(total / len(values), status, "", verdicts)


def imputed(values: Sequence[RewardValue], max_share: float) -> list[RewardValue]:
    """The values of a group with the mean of the valid ones in place of those that failed, each
    marked.

    A member that has the group's mean has no advantage. With nothing failed, the values as they
    are.

    Args:
        values: of one group.
        max_share: the greatest share of a group that may have failed, in [0, 1].

    Raises:
        VievalError: more have failed, or all.
    """
    valid = [value.value for value in values if value.value is not None]
    failed = len(values) - len(valid)
    if failed and (not valid or failed > max_share * len(values)):
        failures = [value for value in values if value.value is None]
        reasons = dict.fromkeys(f"{value.status}: {value.reason}" for value in failures)
        limit = f"more than --max-imputed {max_share:g} allows"
        raise VievalError(
            f"{failed} of {len(values)} group members failed, {limit} "
            f"({'; '.join(reasons)})"
        )
    mean = math.fsum(valid) / len(valid) if valid else math.nan
    return [
        value
        if value.value is not None
        else replace(
            value,
            value=mean,
            imputed=True,
        )
        for value in values
    ]


def failure_message(values: Sequence[RewardValue]) -> str:
    """A line on the samples of a request that have no value, by reason; empty where all have
    one.
    """
    by_reason: dict[str, list[str]] = {}
    for number, value in enumerate(values):
        if value.value is None:
            reason = f"{value.status}: {value.reason}"
            by_reason.setdefault(reason, []).append(str(number))
    if not by_reason:
        return ""
    reasons = []
    for reason, numbers in by_reason.items():
        more = "..." if len(numbers) > 5 else ""
        reasons.append(f"{reason} (samples {', '.join(numbers[:5])}{more})")
    count = f"{sum(map(len, by_reason.values()))} of {len(values)}"
    return redacted(f"no reward for {count} samples: {'; '.join(reasons[:3])}")
