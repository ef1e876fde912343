"""Which judge is better, as tables for a terminal and as files: what `vieval compare` shows."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.media.files import write_whole
from vieval_plugin.meta_evaluation.image_model_cells import ALL_PARTS
from vieval_plugin.meta_evaluation.judge_comparison import (
    LEVEL,
    ComparedPair,
    JudgeComparison,
    Standing,
    compare_judges,
)
from vieval_plugin.meta_evaluation.tables import Table, with_interval
from vieval_plugin.records import Run
from vieval_plugin.report import known_benchmark
from vieval_plugin.report.rendering import csv_text
from vieval_plugin.results.runs import Results
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.tables import text_table

_NAMES = ("benchmark", "task", "aspect", "statistic")
_NUMBERS = ("value_first", "value_second", "difference", "ci_low", "ci_high", "p", "p_holm")
FILES = ("comparison_judges.csv", "comparison_pairs.csv", "comparison.json")


@dataclass(frozen=True)
class BenchmarkComparison:
    """A benchmark's judges, compared on each of its statistics; none where its report compares nothing."""

    benchmark: str
    judges: tuple[str, ...]
    comparisons: tuple[JudgeComparison, ...]


def compare_results(results: Results, options: StatisticsOptions) -> list[BenchmarkComparison]:
    """The judges of results, compared on each benchmark for itself.

    Args:
        results: what runs left behind.
        options: what failed verdicts and ratings not given are, how many draws, the seed.

    Raises:
        VievalError: for results whose benchmark is not known.
    """
    runs = results.runs
    benchmarks = [known_benchmark(name) for name in dict.fromkeys(run.benchmark for run in runs)]
    return [_compared(one, [run for run in runs if run.benchmark == one.name], options) for one in benchmarks]


def _compared(benchmark: Benchmark, runs: Sequence[Run], options: StatisticsOptions) -> BenchmarkComparison:
    judges = tuple(run.label for run in runs)
    if len(runs) < 2:
        return BenchmarkComparison(benchmark.name, judges, ())
    compared = benchmark.report.compared(benchmark.name, tuple(benchmark.parts), runs, options)
    made = tuple(compare_judges(one, benchmark.name, options) for one in compared)
    return BenchmarkComparison(benchmark.name, judges, made)


def lines(found: Sequence[BenchmarkComparison], options: StatisticsOptions) -> list[str]:
    """What a terminal shows: a ranking and a table of pairs for each statistic, and how to read them."""
    told: list[str] = []
    for of_benchmark in found:
        if len(of_benchmark.judges) < 2:
            told.append(f"{of_benchmark.benchmark}: two judges are needed, and there is {of_benchmark.judges[0]}")
        elif not of_benchmark.comparisons:
            told.append(f"{of_benchmark.benchmark}: its report compares no judges")
        for one in of_benchmark.comparisons:
            more = _lines(of_benchmark.benchmark, one)
            told += more if more != told[-1:] else []  # one judge alone is told of once
    tested = any(one.pairs for of_benchmark in found for one in of_benchmark.comparisons)
    return [*told, *([protocol(options)] if tested else [])]


def protocol(options: StatisticsOptions) -> str:
    """How the numbers came about, in a paragraph."""
    missing = f" Missing ratings: {options.missing_ratings}." if options.missing_ratings != "drop" else ""
    return (
        f"Failed verdicts: {options.policy}; of a contest a missing answer is wrong.{missing} Intervals: 95%, {options.draws} bootstrap draws of groups, the same for "
        f"all judges. p: permutation test, {options.draws} draws, in which whole groups change sides. p (Holm): adjusted for "
        f"the family, which is all pairs of one table. Judges share a rank where it is above {LEVEL}. Seed {options.seed}."
    )


def write_comparison(found: Sequence[BenchmarkComparison], out: Path, options: StatisticsOptions) -> None:
    """Write the numbers as `comparison_judges.csv`, `comparison_pairs.csv` and `comparison.json` to the folder `out`."""
    document = {
        "failures": options.policy,
        "missing_ratings": options.missing_ratings,
        "draws": options.draws,
        "seed": options.seed,
        "level": LEVEL,
        "benchmarks": [_document(one) for one in found],
    }
    texts = (
        csv_text(_judges_table(found)),
        csv_text(_pairs_table(found)),
        json.dumps(document, indent=1, allow_nan=False),
    )
    for name, text in zip(FILES, texts, strict=True):
        write_whole(out / name, [text])


def _lines(benchmark: str, found: JudgeComparison) -> list[str]:
    compared = found.compared
    where = benchmark if compared.part == ALL_PARTS else f"{benchmark}/{compared.part}"
    if found.why:
        return [f"{where}, {compared.aspect}: {found.why}"]
    judged = [
        (_rank(one), one.judge.label, _value(one), str(one.judge.own), _left_out(found, one)) for one in _ranked(found)
    ]
    pairs = [
        (
            f"{pair.first} - {pair.second}",
            _interval(pair.found.difference, pair.found.low, pair.found.high),
            _p(pair.found.p),
            _p(pair.adjusted),
        )
        for pair in found.pairs
    ]
    return [
        f"{where}, {compared.aspect}: {compared.statistic}; {compared.used} {compared.counted} that all of them scored",
        "",
        *text_table([("rank", "judge", compared.aspect, "own n", "left out"), *judged]),
        "",
        *text_table([("pair", "difference [95%]", "p", "p (Holm)"), *pairs]),
        *(f"warning: {line}" for line in found.warnings),
        *(f"note: {line}" for line in compared.notes),
        "",
    ]


def _ranked(found: JudgeComparison) -> list[Standing]:
    """Best first, and those that cannot be compared last."""
    return sorted(found.standings, key=lambda one: (one.rank is None, one.rank or 0, -one.estimate))


def _rank(one: Standing) -> str:
    return "-" if one.rank is None else str(one.rank)


def _value(one: Standing) -> str:
    return one.judge.reason or f"{one.estimate:.4f}"


def _left_out(found: JudgeComparison, one: Standing) -> str:
    return "" if one.rank is None else str(one.judge.own - found.compared.used)


def _interval(value: float, low: float, high: float) -> str:
    if not math.isnan(value) and math.isnan(low):
        return f"{value:.4f} [no interval]"
    return with_interval(value, low, high, "no swap or draw has it")


def _p(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.4g}"


def _judges_table(found: Sequence[BenchmarkComparison]) -> Table:
    rows = [
        (*_named(of_benchmark, one), *_judge_cells(one, standing))
        for of_benchmark in found
        for one in of_benchmark.comparisons
        for standing in _ranked(one)
    ]
    header = (*_NAMES, "rank", "judge", "value", "own_n", "used_n", "left_out_n", "why_not")
    return Table("judges", "", header, tuple(rows))


def _judge_cells(found: JudgeComparison, one: Standing) -> tuple[str, ...]:
    used, left_out = str(found.compared.used), _left_out(found, one)
    why_not = one.judge.reason or found.why
    return _rank(one), one.judge.label, _cell(one.estimate), str(one.judge.own), used, left_out, why_not


def _pairs_table(found: Sequence[BenchmarkComparison]) -> Table:
    rows = [
        (*_named(of_benchmark, one), pair.first, pair.second, *map(_cell, _numbers(pair)))
        for of_benchmark in found
        for one in of_benchmark.comparisons
        for pair in one.pairs
    ]
    return Table("pairs", "", (*_NAMES, "first", "second", *_NUMBERS), tuple(rows))


def _numbers(pair: ComparedPair) -> tuple[float, ...]:
    return (*pair.found, pair.adjusted)


def _named(of_benchmark: BenchmarkComparison, one: JudgeComparison) -> tuple[str, ...]:
    return of_benchmark.benchmark, one.compared.part, one.compared.aspect, one.compared.statistic


def _cell(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.6g}"


def _document(found: BenchmarkComparison) -> dict[str, object]:
    return {
        "benchmark": found.benchmark,
        "judges": found.judges,
        "comparisons": [_comparison_document(one) for one in found.comparisons],
    }


def _comparison_document(found: JudgeComparison) -> dict[str, object]:
    compared = found.compared
    return {
        "task": compared.part,
        "aspect": compared.aspect,
        "statistic": compared.statistic,
        "counted": compared.counted,
        "used": compared.used,
        "why_not": found.why,
        "warnings": found.warnings,
        "notes": compared.notes,
        "family": f"the pairs of these judges ({len(found.pairs)})",
        "judges": [
            {
                "judge": one.judge.label,
                "rank": one.rank,
                "value": _json(one.estimate),
                "own": one.judge.own,
                "left_out": one.judge.own - compared.used if one.rank else None,
                "why_not": one.judge.reason,
            }
            for one in _ranked(found)
        ],
        "pairs": [
            {
                "first": pair.first,
                "second": pair.second,
                **{name: _json(value) for name, value in zip(_NUMBERS, _numbers(pair), strict=True)},
                "different": pair.different,
            }
            for pair in found.pairs
        ],
    }


def _json(value: float) -> float | None:
    return None if math.isnan(value) else value
