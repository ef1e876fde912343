"""Is one judge better than another? All judges of a benchmark two by two, on what all of them judged.

What is compared is the benchmark's own affair: its report object says so in a `ComparedStatistic` for each statistic. Here the
pairs are tested, p-values adjusted, and judges ranked.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeVar

import numpy as np

from vieval_plugin.stats.comparison import PairedComparison, PairedStatistic, compare
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.ranking import holm, shared_ranks

LEVEL = 0.05
"""Judges are told apart where the adjusted p is at most this."""

_UNEQUAL = 0.05

K = TypeVar("K")


@dataclass(frozen=True)
class ComparedJudge:
    """A judge in a comparison: its label, how many samples it has a score for, and, if so, why it cannot be compared."""

    label: str
    own: int
    reason: str = ""


@dataclass(frozen=True)
class ComparedStatistic:
    """One statistic on which a benchmark's judges are compared.

    - `part` is the benchmark's part, or `all`; `aspect` what is rated; `statistic` how it is computed, in words;
    - `judges` are all judges that rate it; `used` is how many samples (or whatever `counted` calls them) all of them
      have a score for, but for those that cannot be compared; `who` is what is compared;
    - `pair` gives the paired statistic of two judges by their places, on those samples;
    - `why` says why nothing can be compared, empty where something can; `notes` are lines to be read beside the result.
    """

    part: str
    aspect: str
    statistic: str
    judges: tuple[ComparedJudge, ...]
    used: int
    pair: Callable[[int, int], PairedStatistic]
    counted: str = "samples"
    why: str = ""
    notes: tuple[str, ...] = ()
    who: str = "judges"


@dataclass(frozen=True)
class ComparedPair:
    """Two judges: what is observed, and the p-value adjusted by Holm over all pairs of the comparison."""

    first: str
    second: str
    found: PairedComparison
    adjusted: float

    @property
    def different(self) -> bool:
        """Whether the data tell them apart."""
        return self.adjusted <= LEVEL


@dataclass(frozen=True)
class Standing:
    """Where a judge stands: its statistic on the common samples and its rank, or why it has none.

    Judges share a rank where the data cannot tell them apart: it is 1 and the number of those that are told to be better.
    """

    judge: ComparedJudge
    estimate: float = math.nan
    rank: int | None = None


@dataclass(frozen=True)
class JudgeComparison:
    """Judges compared on one statistic; or, where `why` says so, not: then there is no pair and nobody has a rank."""

    compared: ComparedStatistic
    standings: tuple[Standing, ...]
    pairs: tuple[ComparedPair, ...] = ()
    why: str = ""
    warnings: tuple[str, ...] = ()


def compare_judges(
    compared: ComparedStatistic, benchmark: str, options: StatisticsOptions, intervals: bool = True
) -> JudgeComparison:
    """All pairs of judges on one statistic.

    Args:
        compared: what the benchmark's report gave.
        benchmark: its name; with the part it joins the seed.
        options: how many draws (of the bootstrap, and of the permutation test), and the seed.
        intervals: whether differences have theirs, which take most of the time.

    Returns:
        Differences with 95% intervals, the same groups drawn for all judges; permutation p-values, and these adjusted by
        Holm over all pairs; the judges' ranks. Only `why` where fewer than two judges can be compared.

    Source: PROTOCOLS of this project, "Comparing two judges"; the tests are those of `stats.comparison`.

    >>> from vieval_plugin.stats.comparison import MeanDifference
    >>> right = [[1.0] * 9, [0.0] * 9]
    >>> def pair(one: int, other: int) -> MeanDifference:
    ...     return MeanDifference(right[one], right[other], range(9))
    >>> judges = (ComparedJudge("good", 9), ComparedJudge("bad", 9))
    >>> found = compare_judges(ComparedStatistic("all", "votes", "accuracy", judges, 9, pair), "mine", StatisticsOptions())
    >>> found.pairs[0].found.difference, [standing.rank for standing in found.standings]
    (1.0, [1, 2])
    """
    judges = compared.judges
    if compared.used and not compared.why:
        judges = tuple(_defined(judge, place, compared) for place, judge in enumerate(judges))
    if why := _hindrance(compared, judges):
        return JudgeComparison(compared, tuple(map(Standing, judges)), why=why)
    able = [place for place, judge in enumerate(judges) if not judge.reason]
    seed = [options.seed, zlib.crc32(f"{benchmark}/{compared.part}".encode())]
    two_by_two = list(combinations(able, 2))
    found = [compare(compared.pair(*both), options.draws, seed, intervals) for both in two_by_two]
    pairs = tuple(
        ComparedPair(judges[first].label, judges[second].label, one, adjusted)
        for (first, second), one, adjusted in zip(
            two_by_two, found, holm([one.p for one in found]).tolist(), strict=True
        )
    )
    told_apart = np.zeros((len(judges), len(judges)), dtype=bool)
    for (first, second), pair in zip(two_by_two, pairs, strict=True):
        told_apart[first, second] = told_apart[second, first] = pair.different
    estimates = [compared.pair(place, place).estimates()[0] for place in able]
    ranks = shared_ranks(estimates, told_apart[np.ix_(able, able)]).tolist()
    standing = {place: (value, rank) for place, value, rank in zip(able, estimates, ranks, strict=True)}
    return JudgeComparison(
        compared,
        tuple(Standing(judge, *standing.get(place, ())) for place, judge in enumerate(judges)),
        pairs,
        warnings=(*_too_few(len(pairs), options.draws), *_unequal(compared, [judges[place] for place in able])),
    )


def common(scored: Collection[Collection[K]]) -> set[K]:
    """What all judges that have a score at all have one for.

    >>> common([["a", "b"], ["b", "c"], []])
    {'b'}
    """
    held = [set(one) for one in scored if one]
    return set.intersection(*held) if held else set()


def impossible(first: int, second: int) -> PairedStatistic:
    """The `pair` of a statistic that cannot be compared."""
    raise ValueError(f"judges {first} and {second} cannot be compared")


def _defined(judge: ComparedJudge, place: int, compared: ComparedStatistic) -> ComparedJudge:
    if judge.reason or not math.isnan(compared.pair(place, place).estimates()[0]):
        return judge
    return replace(judge, reason=f"undefined on the {compared.used} common {compared.counted}")


def _hindrance(compared: ComparedStatistic, judges: Sequence[ComparedJudge]) -> str:
    """Why no two judges can be compared; empty where they can."""
    able = [judge.label for judge in judges if not judge.reason]
    unable = "".join(f"; {judge.label}: {judge.reason}" for judge in judges if judge.reason)
    if compared.why:
        return compared.why
    if len(able) < 2:
        return f"two {compared.who} are needed, and there is {' '.join(able) or 'none'}{unable}"
    if not compared.used:
        return f"no {compared.counted} that all of these {compared.who} scored: {', '.join(able)}{unable}"
    return ""


def _too_few(pairs: int, draws: int) -> tuple[str, ...]:
    """A permutation test has no p below 1 / (1 + draws), which adjusted for many pairs may be above the level."""
    needed = math.ceil(pairs / LEVEL)
    if draws + 1 >= needed:
        return ()
    return (
        f"{draws} draws cannot tell any two of {pairs} pairs apart: repeat with {needed} or more (--draws, or the option statistics.draws)",
    )


def _unequal(compared: ComparedStatistic, able: Sequence[ComparedJudge]) -> tuple[str, ...]:
    counts = [judge.own for judge in able]
    if min(counts) >= (1 - _UNEQUAL) * max(counts):
        return ()
    told = ", ".join(f"{judge.label} {judge.own}" for judge in able)
    return (
        f"the {compared.who}' own numbers of {compared.counted} differ by more than {_UNEQUAL:.0%} ({told}); "
        "what one of them could not score counts for none",
    )
