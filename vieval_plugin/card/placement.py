"""The place of a card's judge among the published judges, on the very same samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.card.card import CardNumber, Difference, PublishedPlace, number_of
from vieval_plugin.config import Config
from vieval_plugin.meta_evaluation.comparison import (
    LEVEL,
    ComparedStatistic,
    Comparison,
    above_constant_p,
    among,
    compare_systems,
)
from vieval_plugin.meta_evaluation.findings import Leaderboard
from vieval_plugin.meta_evaluation.leaderboards import leaderboard
from vieval_plugin.published.judges import PublishedJudge, present, verdicts_of
from vieval_plugin.records import Record, Run
from vieval_plugin.report.own_samples import against
from vieval_plugin.results.replay import replayed
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.ranking import holm


@dataclass(frozen=True, eq=False)
class Placement:
    """A judge among published judges: the leaderboard of all, and each of these beside it.

    `useless` are the parts on which no test, adjusted over them, shows it to be better than the same answer for everything.
    """

    board: Leaderboard
    published: tuple[PublishedPlace, ...]
    breakdown: str
    numbers_by_value: Mapping[str, CardNumber]
    useless: tuple[str, ...]


def published_runs(judge_run: Run, root: Path) -> list[Run]:
    """The verdicts of published judges on the samples of a run; judges without any of them are left out.

    Args:
        judge_run: the run, whose ratings and votes count.
        root: the folder of published verdicts.
    """
    return [
        run for judge in present(judge_run.benchmark, root) if (run := _published_run(judge, judge_run, root)).records
    ]


def _published_run(judge: PublishedJudge, judge_run: Run, root: Path) -> Run:
    recording = verdicts_of(judge, root)
    records: dict[str, list[tuple[Record, ...]]] = {}
    aspects: tuple[str, ...] = ()
    for part in (part for part in judge_run.records if f"{judge_run.benchmark}/{part}" in recording.covered):
        for first, *_ in judge_run.records[part]:
            verdict, provenance = replayed(recording, first.id, 0, judge.judge, judge.setting, judge.backbone, Config())
            aspects = provenance.aspects
            records.setdefault(part, []).append((replace(first, verdict=verdict, provenance=provenance),))
    return Run(
        judge.title, judge_run.benchmark, judge.judge, aspects, records, setting=judge.setting, model=judge.backbone
    )


def placement_of(
    benchmark: Benchmark, judge_run: Run, published: Sequence[Run], options: StatisticsOptions
) -> Placement | None:
    """Compare a judge with published ones on the first statistic of a benchmark that it has; None where it has none.

    Args:
        benchmark: theirs.
        judge_run: the judge's run, of one label.
        published: runs on the same samples, labels all different.
        options: what failed verdicts are, number of resamples, the seed.
    """
    runs, own = [judge_run, *published], judge_run.label
    findings = benchmark.report.findings(benchmark.name, tuple(benchmark.parts), runs, options)
    has_own = (s for s in findings.ranked if any(s.has(n) and n.system == own for n in findings.numbers))
    statistic = next(has_own, None)
    if statistic is None or statistic.judge is not None:
        return None
    board = leaderboard(statistic, findings, benchmark.name, runs, options, against=against(benchmark), family_of=own)
    breakdown, by_value = next(iter(board.breakdowns.items()), ("", {}))
    parts = [part for part in judge_run.records if part in by_value and statistic.of_part]
    of_parts = {part: statistic.of_part(part, options) for part in parts if statistic.of_part}
    placed = [
        PublishedPlace(
            *(number.system, number_of(number.estimate), number.ranks, number.unranked),
            _difference(board.comparison, own, number.system),
            _numbers(by_value, number.system),
            _differences_by_part(of_parts, own, number.system, benchmark.name, options) if len(parts) > 1 else {},
        )
        for number in board.numbers
        if number.system != own
    ]
    placed.sort(key=lambda judge: (judge.number.value is None, -(judge.number.value or 0)))
    p_values = [
        above_constant_p(among(compared, [own]), benchmark.name, options).get(own, math.nan)
        for compared in of_parts.values()
    ]
    useless = tuple(part for part, p in zip(of_parts, holm(p_values), strict=True) if not p <= LEVEL)
    return Placement(board, tuple(placed), breakdown, _numbers(by_value, own), useless)


def _numbers(by_value: Mapping[str, Mapping[str, Estimate]], label: str) -> dict[str, CardNumber]:
    return {value: number_of(estimates[label]) for value, estimates in by_value.items() if label in estimates}


def _difference(comparison: Comparison, label: str, rival: str) -> Difference | None:
    """The first judge less the other on what both scored; p is adjusted over the first's pairs."""
    pair = comparison.pair_of(label, rival)
    if pair is None:
        return None
    result = pair.result if pair.first == label else pair.result.turned
    return Difference(replace(number_of(result.difference), n=pair.n), pair.adjusted)


def _differences_by_part(
    of_parts: Mapping[str, ComparedStatistic], own: str, rival: str, benchmark: str, options: StatisticsOptions
) -> dict[str, Difference]:
    """The lead of the own judge over another, by part; p is adjusted over these parts."""
    differences: dict[str, Difference] = {}
    for part, compared in of_parts.items():
        comparison = compare_systems(among(compared, [own, rival]), benchmark, options)
        if difference := _difference(comparison, own, rival):
            differences[part] = difference
    adjusted = holm([difference.p for difference in differences.values() if difference.p is not None]).tolist()
    return {part: replace(by_part, p=p) for (part, by_part), p in zip(differences.items(), adjusted, strict=True)}
