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
    compare_systems,
)
from vieval_plugin.meta_evaluation.headline import Breakdown, Headline, preferred
from vieval_plugin.published.judges import PublishedJudge, present, verdicts_of
from vieval_plugin.records import Record, Run
from vieval_plugin.results.replay import replayed
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.ranking import holm


@dataclass(frozen=True, eq=False)
class Placement:
    """A judge's headline among published judges: the comparison of all, and each of these beside it.

    `numbers_by_value` has its number by task type or part, `useless` the parts among these on which no test, adjusted over
    them, shows it to be above an answer that never looks.
    """

    headline: Headline
    comparison: Comparison
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
    """Compare a judge with published ones on the first headline of a benchmark that it has; None where it has none.

    Args:
        benchmark: theirs.
        judge_run: the judge's run, of one label.
        published: runs on the same samples, labels all different.
        options: what failed verdicts are, number of resamples, the seed.
    """
    parts = tuple(benchmark.parts)
    headlines = benchmark.report.tables(benchmark.name, parts, [judge_run, *published], options).headlines
    headline = next((headline for headline in headlines if judge_run.label in headline.estimates), None)
    if headline is None:
        return None
    comparison = compare_systems(headline.compared(options), benchmark.name, options, against=judge_run.label)
    breakdown, by_value = next(iter(headline.breakdowns.items()), ("", {}))
    standings = {standing.system.label: standing for standing in comparison.standings}
    placed = [
        PublishedPlace(
            run.label,
            number_of(headline.estimates[run.label]),
            standings[run.label].ranks,
            standings[run.label].system.undefined or standings[run.label].system.unranked,
            _difference(comparison, judge_run.label, run.label),
            _numbers(by_value, run.label),
            _differences_by_part(benchmark, headline, judge_run, run, options),
        )
        for run in published
        if run.label in headline.estimates
    ]
    placed.sort(key=lambda judge: (judge.number.value is None, -(judge.number.value or 0)))
    numbers = _numbers(by_value, judge_run.label)
    useless = _useless(benchmark, headline, judge_run, [part for part in judge_run.records if part in numbers], options)
    return Placement(headline, comparison, tuple(placed), breakdown, numbers, useless)


def _numbers(by_value: Breakdown, label: str) -> dict[str, CardNumber]:
    return {value: number_of(estimates[label]) for value, estimates in by_value.items() if label in estimates}


def _difference(comparison: Comparison, label: str, rival: str) -> Difference | None:
    """The first judge less the other on what both scored; p is adjusted over the first's pairs."""
    pair = next((pair for pair in comparison.all_pairs if {pair.first, pair.second} == {label, rival}), None)
    if pair is None:
        return None
    result = pair.result if pair.first == label else pair.result.turned
    return Difference(replace(number_of(result.difference), n=pair.n), pair.adjusted)


def _differences_by_part(
    benchmark: Benchmark, headline: Headline, judge_run: Run, rival: Run, options: StatisticsOptions
) -> dict[str, Difference]:
    """The lead of the own judge over another, by part; p is adjusted over these parts."""
    differences: dict[str, Difference] = {}
    for part in judge_run.records if len(judge_run.records) > 1 else ():
        if part in rival.records:
            of_part = [replace(run, records={part: run.records[part]}) for run in (judge_run, rival)]
            compared = benchmark.report.compared(benchmark.name, (part,), of_part, options)
            comparison = compare_systems(_like(compared, headline), benchmark.name, options)
            if difference := _difference(comparison, judge_run.label, rival.label):
                differences[part] = difference
    adjusted = holm([difference.p for difference in differences.values() if difference.p is not None]).tolist()
    return {part: replace(by_part, p=p) for (part, by_part), p in zip(differences.items(), adjusted, strict=True)}


def _useless(
    benchmark: Benchmark, headline: Headline, judge_run: Run, parts: Sequence[str], options: StatisticsOptions
) -> tuple[str, ...]:
    p_values = []
    for part in parts:
        of_part = replace(judge_run, records={part: judge_run.records[part]})
        compared = _like(benchmark.report.compared(benchmark.name, (part,), [of_part], options), headline)
        p_values.append(above_constant_p(compared, benchmark.name, options).get(judge_run.label, math.nan))
    return tuple(part for part, p in zip(parts, holm(p_values), strict=True) if not p <= LEVEL)


def _like(compared: Sequence[ComparedStatistic], headline: Headline) -> ComparedStatistic:
    """The statistic of a part that is that of a headline; of votes by scores, that of the preferred aspect."""
    aspects = list(dict.fromkeys(statistic.aspect for statistic in compared))
    aspect = headline.aspect if headline.aspect in aspects else preferred(aspects)[0]
    return next(statistic for statistic in compared if statistic.aspect == aspect)
