"""Judges compared, as tables for a terminal and as files: the output of `vieval compare`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.media.files import write_whole
from vieval_plugin.meta_evaluation.comparison import LEVEL, Comparison, Standing, SystemPair, compare_systems
from vieval_plugin.meta_evaluation.headline import place_of_aspect
from vieval_plugin.meta_evaluation.image_model_cells import ALL_PARTS
from vieval_plugin.meta_evaluation.tables import Table, p_text, with_interval
from vieval_plugin.records import OWN, YOUR_IMAGES, Run
from vieval_plugin.report.headlines.leaderboards import NOT_ABOVE_CONSTANT
from vieval_plugin.report.headlines.words import ASPECTS
from vieval_plugin.report.own_samples import benchmarks_with_runs
from vieval_plugin.report.rendering import csv_text
from vieval_plugin.report.same_scores import same_scores
from vieval_plugin.results.runs import Results
from vieval_plugin.stats.comparison import PERMUTATIONS
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.tables import text_table
from vieval_plugin.text.wording import decimals, nan_to_none

_NAMES = ("benchmark", "task", "aspect", "statistic")
_NUMBERS = ("value_better", "value_worse", "difference", "ci_low", "ci_high", "p", "p_holm")
_MOST_NAMED = 3
"""Number of judges that a sentence names; of more it says how many there are."""
_ELSEWHERE = "--out FOLDER has them"
FILES = ("comparison_judges.csv", "comparison_pairs.csv", "comparison.json")


@dataclass(frozen=True)
class BenchmarkComparison:
    """A benchmark's judges, compared on each of its statistics; none where its report compares nothing.

    `score_notes` has sentences on judges that gave the same score to every sample.
    """

    benchmark: str
    judges: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    score_notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The benchmark in words."""
        return YOUR_IMAGES if self.benchmark == OWN else self.benchmark

    @property
    def preferred(self) -> list[Comparison]:
        """The comparisons as headlines of a report come: what half of the judges rate or more, the overall score first."""

        def sort_key(comparison: Comparison) -> tuple[bool, int]:
            compared = comparison.compared
            return 2 * len(compared.systems) < len(self.judges), place_of_aspect(compared.aspect)

        return sorted(self.comparisons, key=sort_key)


def compare_results(results: Results, options: StatisticsOptions) -> list[BenchmarkComparison]:
    """The judges of results, compared on each benchmark for itself.

    Args:
        results: what runs left behind.
        options: what failed verdicts and ratings not given are, how many draws, the seed.

    Raises:
        VievalError: for results whose benchmark is not known.
    """
    return [_compared(benchmark, runs, options) for benchmark, runs in benchmarks_with_runs(results.runs)]


def _compared(benchmark: Benchmark, runs: Sequence[Run], options: StatisticsOptions) -> BenchmarkComparison:
    judges = tuple(run.label for run in runs)
    if len(runs) < 2:
        return BenchmarkComparison(benchmark.name, judges, ())
    compared = benchmark.report.compared(benchmark.name, tuple(benchmark.parts), runs, options)
    comparisons = tuple(compare_systems(statistic, benchmark.name, options) for statistic in compared)
    return BenchmarkComparison(benchmark.name, judges, comparisons, tuple(same_scores(runs)))


def lines(comparisons: Sequence[BenchmarkComparison], options: StatisticsOptions) -> list[str]:
    """Lines for a terminal: a ranking and a table of pairs for each statistic, and how to read them."""
    text: list[str] = []
    for of_benchmark in comparisons:
        if len(of_benchmark.judges) < 2:
            text.append(f"{of_benchmark.title}: two judges are needed, and the only one is {of_benchmark.judges[0]}")
        elif not of_benchmark.comparisons and of_benchmark.benchmark == OWN:
            text.append(
                f"{YOUR_IMAGES}: nobody rated them, so no judge can be shown to be better; `vieval rank` compares the "
                "generators, and `vieval label` makes a page to rate some images"
            )
        elif not of_benchmark.comparisons:
            text.append(f"{of_benchmark.benchmark}: none of its statistics has a test of two judges")
        text += _overall_answer(of_benchmark)
        for comparison in of_benchmark.preferred:
            more = _lines(of_benchmark.benchmark, comparison)
            text += more if more != text[-1:] else []  # one judge alone is named once
        text += [line for sentence in of_benchmark.score_notes for line in (f"{of_benchmark.title}: {sentence}", "")]
    tested = any(comparison.pairs for of_benchmark in comparisons for comparison in of_benchmark.comparisons)
    return [*text, *([protocol(options)] if tested else [])]


def protocol(options: StatisticsOptions) -> str:
    """Protocol of the numbers, in a paragraph."""
    missing = f" Missing ratings: {options.missing_ratings}." if options.missing_ratings != "drop" else ""
    return (
        f"Failed verdicts: {options.policy}; of a contest a missing answer is wrong.{missing} Each two judges are compared on "
        f"what both scored. Intervals: 95%, of a difference of accuracies those of its test, else {options.draws} bootstrap "
        f"resamples of groups, the same for both. p: permutation test, at most {PERMUTATIONS:,} permutations, in which whole "
        "groups change sides. p (Holm): adjusted for the family, which is all pairs of ranked judges of one table; pairs with "
        "an unranked judge are a second family. A rank such as 2-4 is the range that differences with an adjusted "
        f"p of at most {LEVEL} leave. Seed {options.seed}."
    )


def write_comparison(comparisons: Sequence[BenchmarkComparison], folder: Path, options: StatisticsOptions) -> None:
    """Write the numbers as `comparison_judges.csv`, `comparison_pairs.csv` and `comparison.json` to a folder."""
    document = {
        "failures": options.policy,
        "missing_ratings": options.missing_ratings,
        "draws": options.draws,
        "seed": options.seed,
        "level": LEVEL,
        "benchmarks": [_document(comparison) for comparison in comparisons],
    }
    texts = (
        csv_text(_judges_table(comparisons)),
        csv_text(_pairs_table(comparisons)),
        json.dumps(document, indent=1, allow_nan=False),
    )
    for name, text in zip(FILES, texts, strict=True):
        write_whole(folder / name, [text])


def _overall_answer(of_benchmark: BenchmarkComparison) -> list[str]:
    """The answer by the first of several statistics, and which judges it is not of."""
    if len(of_benchmark.comparisons) < 2 or not (first := of_benchmark.preferred[0]).all_pairs:
        return []
    aspect = first.compared.aspect
    by = {**ASPECTS, "O": "the overall score"}.get(aspect)
    rated = {standing.system.label for standing in first.standings}
    unrated = [label for label in of_benchmark.judges if label not in rated]
    have = "has" if len(unrated) == 1 else "have"
    return [
        f"{of_benchmark.title}: by {f'{by} ({aspect})' if by else aspect}, {_answer(first)}",
        *([f"{_names(unrated)} {have} no {aspect}: see the other aspects below"] if unrated else []),
        "",
    ]


def _lines(benchmark: str, comparison: Comparison) -> list[str]:
    compared = comparison.compared
    where = benchmark if compared.part == ALL_PARTS else f"{benchmark}/{compared.part}"
    if not comparison.all_pairs:
        return [f"{where}, {compared.aspect}: {comparison.reason}"]
    judges = [
        (
            standing.rank_text,
            standing.system.label,
            standing.system.undefined or f"{standing.value:.3f}",
            str(standing.system.n),
            _mark(comparison, standing),
            standing.system.unranked,
        )
        for standing in comparison.standings
    ]
    pairs = [
        (
            f"{pair.first} - {pair.second}",
            str(pair.n),
            _interval(pair.result.difference),
            p_text(pair.result.p),
            p_text(pair.adjusted),
        )
        for pair in map(SystemPair.better_first, comparison.all_pairs)
    ]
    notes = dict.fromkeys((*compared.notes, *(note for pair in comparison.all_pairs for note in pair.notes)))
    return [
        f"{where}, {compared.aspect}: {_answer(comparison)}",
        f"{compared.statistic}; {comparison.family}",
        "",
        *text_table([("rank", "judge", compared.aspect, "n", "marks", "not ranked because"), *judges], _ELSEWHERE),
        "",
        *text_table([("better - worse", "n", "difference [95%]", "p", "p (Holm)"), *pairs], _ELSEWHERE),
        *(f"warning: {line}" for line in comparison.warnings()),
        *(f"note: {line}" for line in notes),
        "",
    ]


def _mark(comparison: Comparison, standing: Standing) -> str:
    return NOT_ABOVE_CONSTANT if standing.system.label in comparison.not_above_constant else ""


def _answer(comparison: Comparison) -> str:
    """Result of a comparison in one sentence, which is of the ranked judges where there are several."""
    pairs = comparison.pairs or comparison.other_pairs
    significant = [pair.better_first() for pair in pairs if pair.significant]
    ranked, unranked = len(comparison.ranked), sum(bool(standing.system.unranked) for standing in comparison.standings)
    scope = f"of the {ranked} ranked, " if ranked and unranked else ""
    if not significant:
        return f"{scope}no {comparison.compared.entrants[:-1]} is significantly better than another"
    if len(comparison.ranked) > 1:
        first, *following = [standing.system.label for standing in comparison.ranked]
        if all(comparison.beats(first, label) for label in following):
            return f"{scope}{first} is significantly better than {'all others' if len(following) > 1 else following[0]}"
    worse_than = {
        pair.first: [beaten.second for beaten in significant if beaten.first == pair.first] for pair in significant
    }
    most_first = sorted(worse_than.items(), key=lambda result: -len(result[1]))
    sentences = [f"{better} is significantly better than {_names(worse)}" for better, worse in most_first[:_MOST_NAMED]]
    more = len(most_first) - _MOST_NAMED
    sentences += [f"and {more} more {'is' if more == 1 else 'are'} better than others"] if more > 0 else []
    return scope + "; ".join(sentences)


def _names(labels: Sequence[str]) -> str:
    return ", ".join(labels) if len(labels) <= _MOST_NAMED else f"{len(labels)} others"


def _interval(difference: Estimate) -> str:
    if difference.defined and math.isnan(difference.low):
        return f"{difference.value:.3f} [no interval]"
    return with_interval(replace(difference, reasons=("no swap or draw has it",)), 3)


def _judges_table(comparisons: Sequence[BenchmarkComparison]) -> Table:
    rows = [
        (
            *(*_head(of_benchmark, comparison), standing.rank_text, standing.system.label),
            *(_cell(standing.value), str(standing.system.n), _mark(comparison, standing)),
            standing.system.undefined or standing.system.unranked or comparison.reason,
        )
        for of_benchmark in comparisons
        for comparison in of_benchmark.comparisons
        for standing in comparison.standings
    ]
    return Table("judges", "", (*_NAMES, "rank", "judge", "value", "n", "marks", "why_not"), tuple(rows))


def _pairs_table(comparisons: Sequence[BenchmarkComparison]) -> Table:
    rows = [
        (*_head(of_benchmark, comparison), pair.first, pair.second, str(pair.n), *map(_cell, _numbers(pair)))
        for of_benchmark in comparisons
        for comparison in of_benchmark.comparisons
        for pair in map(SystemPair.better_first, comparison.all_pairs)
    ]
    return Table("pairs", "", (*_NAMES, "better", "worse", "n", *_NUMBERS), tuple(rows))


def _numbers(pair: SystemPair) -> tuple[float, ...]:
    return (*pair.result.numbers, pair.adjusted)


def _head(of_benchmark: BenchmarkComparison, comparison: Comparison) -> tuple[str, ...]:
    return of_benchmark.benchmark, comparison.compared.part, comparison.compared.aspect, comparison.compared.statistic


def _document(of_benchmark: BenchmarkComparison) -> dict[str, object]:
    return {
        "benchmark": of_benchmark.benchmark,
        "judges": of_benchmark.judges,
        "comparisons": [_comparison_document(comparison) for comparison in of_benchmark.comparisons],
    }


def _comparison_document(comparison: Comparison) -> dict[str, object]:
    compared = comparison.compared
    return {
        "task": compared.part,
        "aspect": compared.aspect,
        "statistic": compared.statistic,
        "counted": compared.unit,
        "why_not": comparison.reason,
        "warnings": comparison.warnings(),
        "notes": compared.notes,
        "family": comparison.family,
        "judges": [
            {
                "judge": standing.system.label,
                "ranks": standing.ranks,
                "value": nan_to_none(standing.value),
                "n": standing.system.n,
                "not_above_constant": standing.system.label in comparison.not_above_constant,
                "why_not": standing.system.undefined or standing.system.unranked,
            }
            for standing in comparison.standings
        ],
        "pairs": [
            {
                "better": pair.first,
                "worse": pair.second,
                "n": pair.n,
                **{name: nan_to_none(value) for name, value in zip(_NUMBERS, _numbers(pair), strict=True)},
                "significant": pair.significant,
            }
            for pair in map(SystemPair.better_first, comparison.all_pairs)
        ],
    }


def _cell(value: float) -> str:
    return decimals(value, ".6g", "undefined")
