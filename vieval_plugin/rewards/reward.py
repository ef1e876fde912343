"""Rewards: a judge's score of an image, a weighted sum of several, or the share of wins within a group."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from vieval_plugin.api.verdicts import main_aspect, no_aspect
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Sample, Status, Verdict, worst
from vieval_plugin.rewards.groups import pairs, win_shares
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.text.redaction import redacted

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_TERM = re.compile(r"(?:(?P<weight>[+-]?[0-9.]+)\*)?(?P<judge>.+?)(?::(?P<aspect>[A-Za-z_]\w*))?")


@dataclass(frozen=True)
class Term:
    """A judge's score of one aspect, times a weight; of a judge of contests the share of wins, which has no aspect."""

    judge: PreparedJudge
    aspect: str = ""
    weight: float = 1.0

    @property
    def groupwise(self) -> bool:
        """Return whether it says something of a whole group only."""
        return self.judge.spec.rates == "contest"

    def to_judge(self, judged: Sequence[Judged]) -> list[Judged]:
        """Make what the judge is asked about: samples and contests as they are, or all pairs of a group's samples."""
        samples = [sample for sample in judged if isinstance(sample, Sample)]
        return list(pairs(samples)) if self.groupwise and samples else list(judged)


@dataclass(frozen=True)
class Reward:
    """A sum of terms, under the name that trainers know it by."""

    name: str
    terms: tuple[Term, ...]

    @property
    def groupwise(self) -> bool:
        """Return whether it needs the members of a group together."""
        return any(term.groupwise for term in self.terms)


@dataclass(frozen=True)
class RewardValue:
    """The reward of one sample: a number, or none and why; the verdicts that it comes from, by term.

    `imputed` marks a number that is the mean of the group's others, because its own judgement failed.
    """

    value: float | None
    status: Status
    reason: str = ""
    verdicts: tuple[Verdict, ...] = ()
    imputed: bool = False


@dataclass(frozen=True)
class _Part:
    """The value of one term for one sample."""

    value: float | None
    status: Status
    reason: str = ""
    verdicts: tuple[Verdict, ...] = field(default=())


def read_reward(text: str, prepare: Callable[[str], PreparedJudge]) -> Reward:
    """A reward from `NAME=JUDGE[:ASPECT]`, or from a sum such as `NAME=0.7*viescore:SC+0.3*sharpness`.

    Args:
        text: the reward; a judge is a name or the file that describes it.
        prepare: makes a judge ready by its name or file.

    Raises:
        VievalError: it says something else, or there is no such judge or aspect.
    """
    name, sign, definition = text.partition("=")
    if not sign or not _NAME.fullmatch(name):
        raise VievalError(
            f"a reward is NAME=JUDGE or NAME=JUDGE:ASPECT, NAME of letters, digits, - and _; not {text!r}"
        )
    return Reward(name, read_terms(definition, prepare))


def read_terms(definition: str, prepare: Callable[[str], PreparedJudge]) -> tuple[Term, ...]:
    """The terms of `JUDGE[:ASPECT]` or of a weighted sum of such; VievalError as `read_reward`."""
    terms = tuple(_term(part.strip(), prepare) for part in definition.split("+"))
    if not any(term.weight for term in terms):
        raise VievalError(f"all weights of {definition!r} are 0")
    return terms


def _term(text: str, prepare: Callable[[str], PreparedJudge]) -> Term:
    match = _TERM.fullmatch(text)
    if not match:
        raise VievalError(f"{text!r} is no part of a reward; write JUDGE, JUDGE:ASPECT or WEIGHT*JUDGE:ASPECT")
    try:
        weight = float(match["weight"] or 1)
    except ValueError:
        raise VievalError(f"{text!r}: {match['weight']!r} is no weight") from None
    judge = prepare(match["judge"])
    if judge.spec.rates == "contest":
        if match["aspect"]:
            raise VievalError(f"{judge.spec.name} compares images and rates no aspect: leave :{match['aspect']} out")
        return Term(judge, "", weight)
    aspect = match["aspect"] or main_aspect(judge.spec.aspects)
    if aspect not in judge.spec.aspects:
        raise VievalError(f"{text!r}: {no_aspect(aspect, judge.spec.aspects)}")
    return Term(judge, aspect, weight)


def reward_values(reward: Reward, number: int, verdicts: Sequence[Sequence[Verdict]]) -> list[RewardValue]:
    """The reward of each sample.

    Args:
        reward: the reward.
        number: the samples that were judged; all of one group where it is groupwise.
        verdicts: by term, those on what `Term.to_judge` has.
    """
    by_term = [
        _shares(number, found) if term.groupwise else [_score(verdict, term.aspect) for verdict in found]
        for term, found in zip(reward.terms, verdicts, strict=True)
    ]
    return [_sum(reward, parts) for parts in zip(*by_term, strict=True)]


def _score(verdict: Verdict, aspect: str) -> _Part:
    if aspect in verdict.scores:
        return _Part(verdict.scores[aspect], verdict.status, verdict.reason, (verdict,))
    status = Status.PARSE_FAILURE if verdict.status.usable else verdict.status
    return _Part(None, status, verdict.reason or f"it has no score of {aspect}", (verdict,))


def _shares(number: int, verdicts: Sequence[Verdict]) -> list[_Part]:
    shares = win_shares(number, verdicts)
    return [
        _Part(share, worst([verdict.status for verdict in own]), next(filter(None, (v.reason for v in own)), ""), own)
        for share, own in shares
    ]


def _sum(reward: Reward, parts: Sequence[_Part]) -> RewardValue:
    verdicts = tuple(chain.from_iterable(part.verdicts for part in parts))
    failed = [part for part in parts if part.value is None]
    if failed:
        status = worst([part.status for part in failed])
        return RewardValue(None, status, next(p.reason for p in failed if p.status is status), verdicts)
    products = [
        term.weight * part.value for term, part in zip(reward.terms, parts, strict=True) if part.value is not None
    ]
    return RewardValue(math.fsum(products), worst([part.status for part in parts]), "", verdicts)


def averaged(values: Sequence[RewardValue]) -> RewardValue:
    """The mean of several values of one sample; the first that failed where one did."""
    first = next((value for value in values if value.value is None), values[0])
    if first.value is None or len(values) == 1:
        return first
    known = [value.value for value in values if value.value is not None]
    verdicts = tuple(chain.from_iterable(value.verdicts for value in values))
    return RewardValue(math.fsum(known) / len(known), worst([value.status for value in values]), "", verdicts)


def imputed(values: Sequence[RewardValue], most: float) -> list[RewardValue]:
    """The values of a group with the mean of the valid ones in place of those that failed, each marked.

    A member that has the group's mean has no advantage. With nothing failed, the values as they are.

    Args:
        values: of one group.
        most: the greatest share of a group that may have failed, in [0, 1].

    Raises:
        VievalError: more have failed, or all.
    """
    valid = [value.value for value in values if value.value is not None]
    failed = len(values) - len(valid)
    if failed and (not valid or failed > most * len(values)):
        reasons = "; ".join(dict.fromkeys(f"{value.status}: {value.reason}" for value in values if value.value is None))
        raise VievalError(
            f"{failed} of {len(values)} of a group failed, more than --max-imputed {most:g} allows ({reasons})"
        )
    mean = math.fsum(valid) / len(valid) if valid else math.nan
    return [value if value.value is not None else replace(value, value=mean, imputed=True) for value in values]


def failures_in_words(values: Sequence[RewardValue]) -> str:
    """One line on the samples of a request that have no value, by reason; empty where all have one."""
    failed = [(number, value) for number, value in enumerate(values) if value.value is None]
    reasons: dict[str, list[int]] = {}
    for number, value in failed:
        reasons.setdefault(f"{value.status}: {value.reason}", []).append(number)
    words = [
        f"{reason} (samples {', '.join(map(str, numbers[:5]))}{'...' * (len(numbers) > 5)})"
        for reason, numbers in reasons.items()
    ]
    return redacted(f"{len(failed)} of {len(values)} samples have no reward: {'; '.join(words[:3])}") if failed else ""
