"""Judges ranked on each benchmark by its default number, and over benchmarks by the mean of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vieval_plugin.meta_evaluation.headline import preferred
from vieval_plugin.meta_evaluation.judge_comparison import (
    ComparedJudge,
    ComparedStatistic,
    JudgeComparison,
    compare_judges,
)
from vieval_plugin.stats.comparison import AveragedDifference
from vieval_plugin.stats.options import StatisticsOptions

OVER_BENCHMARKS = "all benchmarks"


@dataclass(frozen=True)
class JudgeLeaderboard:
    """Judges on each benchmark (and part, where a benchmark compares them part by part), and over all benchmarks.

    `over` is None with fewer than two benchmarks on which judges can be compared.
    """

    benchmarks: tuple[tuple[str, JudgeComparison], ...]
    over: JudgeComparison | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing is ranked."""
        return not any(found.pairs for _, found in self.benchmarks)


def judge_leaderboard(
    compared: Mapping[str, Sequence[ComparedStatistic]], options: StatisticsOptions
) -> JudgeLeaderboard:
    """The leaderboard of judges from what each benchmark's report object compares.

    Of a benchmark's statistics the default counts: that of the aspect that most judges rate, O before SC before PQ, counted
    in the most detailed way. Over benchmarks a judge has the mean of its benchmarks' numbers, each the mean over parts.
    A judge is in it under its label, if it is comparable on every benchmark.

    Args:
        compared: by benchmark, what its report gave; see `ComparedStatistic`.
        options: how many draws, the seed.

    Returns:
        Comparisons as `compare_judges` makes them, on the samples that all judges scored, without intervals of differences.
    """
    defaults = {benchmark: chosen for benchmark, several in compared.items() if (chosen := default_statistics(several))}
    found = [
        (benchmark, compare_judges(one, benchmark, options, intervals=False))
        for benchmark, several in defaults.items()
        for one in several
    ]
    able = {benchmark: [one for of, one in found if of == benchmark and one.pairs] for benchmark in defaults}
    held = {benchmark: several for benchmark, several in able.items() if several}
    if len(held) < 2:
        return JudgeLeaderboard(tuple(found))
    return JudgeLeaderboard(tuple(found), compare_judges(_over(held), OVER_BENCHMARKS, options, intervals=False))


def default_statistics(compared: Sequence[ComparedStatistic]) -> list[ComparedStatistic]:
    """Those of a benchmark's statistics by which its judges are ranked by default, one a part.

    >>> from dataclasses import replace
    >>> from vieval_plugin.meta_evaluation.judge_comparison import impossible
    >>> one = ComparedStatistic("all", "SC", "rho", (ComparedJudge("a", 5), ComparedJudge("b", 5)), 5, impossible)
    >>> [found.aspect for found in default_statistics([replace(one, aspect="PQ", judges=one.judges[:1]), one])]
    ['SC']
    """
    rating = Counter[str]()
    for one in compared:
        rating[one.aspect] = max(rating[one.aspect], sum(not judge.reason for judge in one.judges))
    aspects = preferred(list(rating), rating)[:1]
    of_aspect = [one for one in compared if one.aspect in aspects]
    first: dict[str, ComparedStatistic] = {}
    for one in of_aspect:
        first.setdefault(one.part, one)
    return list(first.values())


def _over(held: Mapping[str, Sequence[JudgeComparison]]) -> ComparedStatistic:
    """The judges' means over benchmarks, as one more statistic to compare."""
    labels = dict.fromkeys(one.judge.label for several in held.values() for found in several for one in found.standings)
    places = [
        {one.judge.label: place for place, one in enumerate(found.standings) if one.rank is not None}
        for several in held.values()
        for found in several
    ]
    named = [benchmark for benchmark, several in held.items() for _ in several]
    statistics = [found.compared for several in held.values() for found in several]
    weights = [1 / len(several) for several in held.values() for _ in several]
    judges = tuple(
        ComparedJudge(
            label,
            sum(_own(one, label) for one in statistics),
            _lacking([benchmark for benchmark, of in zip(named, places, strict=True) if label not in of]),
        )
        for label in labels
    )

    def pair(first: int, second: int) -> AveragedDifference:
        both = judges[first].label, judges[second].label
        pairs = [one.pair(*(of[label] for label in both)) for one, of in zip(statistics, places, strict=True)]
        return AveragedDifference(pairs, weights)

    told = "; ".join(
        dict.fromkeys(
            f"{benchmark}: {one.aspect}, {one.statistic}" for benchmark, one in zip(named, statistics, strict=True)
        )
    )
    statistic = f"mean over {len(held)} benchmarks ({told})"
    used = sum(one.used for one in statistics)
    return ComparedStatistic(OVER_BENCHMARKS, "", statistic, judges, used, pair)


def _own(compared: ComparedStatistic, label: str) -> int:
    return sum(judge.own for judge in compared.judges if judge.label == label)


def _lacking(benchmarks: Sequence[str]) -> str:
    return f"not compared on {', '.join(dict.fromkeys(benchmarks))}" if benchmarks else ""
