"""Rankings of generators, printed and written: the output of `vieval rank`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vieval_plugin.media.files import write_whole
from vieval_plugin.meta_evaluation.comparison import LEVEL
from vieval_plugin.meta_evaluation.contest_ranking import ContestRanking, rank_contests
from vieval_plugin.meta_evaluation.generator_ranking import (
    GeneratorEstimates,
    GeneratorRanking,
    prediction_powered_means,
    rank_generators,
)
from vieval_plugin.meta_evaluation.ratings import HumanRatings, rater_table
from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.report.inputs import rated_runs
from vieval_plugin.report.ranking_tables import contest_tables, corrected_tables, long_tables, ranking_tables
from vieval_plugin.report.rendering import csv_text, markdown
from vieval_plugin.results.runs import Results
from vieval_plugin.stats.comparison import PERMUTATIONS
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.tables import text_table

FILES = (
    *("rank.md", "rank_generators.csv", "rank_generator_pairs.csv", "rank_corrected.csv"),
    *("rank_contests.csv", "rank_contest_pairs.csv", "rank_raters.csv", "rank.json"),
)
CAUTION = (
    "A judge's mean is not people's: on ImagenHub, the 95% interval of GPT-4v's own scores holds people's mean for 28% (SC), "
    "14% (PQ) and 24% (O) of 29 image models."
)
"""Counted in the logs that the authors of VIEScore published, beside ImagenHub's ratings; see docs/ranking.md."""
ADVICE = "Rate some images yourself, and give the ratings with --human: means are then corrected."
_CORRECTED = (
    "Corrected means are what people would say, by prediction-powered inference; their intervals count the labels' "
    "uncertainty, and hold for about 50 rated prompts of a generator and more (fewer: too short by some)."
)


@dataclass(frozen=True)
class RankReport:
    """Rankings of some results: of generators, corrected means where people rated some, and by contests.

    `raters` says how far people agree, None without a file of ratings; `notes` are lines to be read beside the
    rankings.
    """

    generators: tuple[GeneratorRanking, ...]
    corrected: tuple[GeneratorEstimates, ...]
    contests: tuple[ContestRanking, ...]
    raters: Table | None = None
    notes: tuple[str, ...] = ()


def rank_results(results: Results, ratings: HumanRatings | None, options: StatisticsOptions) -> RankReport:
    """The rankings of results.

    Args:
        results: of any benchmarks and judges, each ranked for itself.
        ratings: people's, in the place of those that benchmarks have; None for those.
        options: what failed verdicts are, how many draws, the seed.

    Raises:
        VievalError: no rating is of a sample among the results.
    """
    runs, notes = rated_runs(results, ratings)
    benchmarks = dict.fromkeys(run.benchmark for run in runs)
    return RankReport(
        tuple(ranking for run in runs for ranking in rank_generators(run, options)),
        tuple(ranking for run in runs for ranking in prediction_powered_means(run, options)),
        tuple(
            ranking
            for name in benchmarks
            for ranking in rank_contests([run for run in runs if run.benchmark == name], options)
        ),
        rater_table(ratings) if ratings else None,
        tuple(notes),
    )


def lines(report: RankReport, options: StatisticsOptions) -> list[str]:
    """Lines for a terminal, the default aspect of each judge first."""
    text: list[str] = []
    for table in _tables(report):
        text += [table.title, "", *text_table([table.header, *table.rows]), ""]
    return [*text, *(f"note: {line}" for line in report.notes), *_words(report), protocol(options)]


def protocol(options: StatisticsOptions) -> str:
    """Protocol of the numbers, in a paragraph."""
    return (
        f"Failed verdicts: {options.policy}. Each two generators are compared on the prompts that both have. Intervals: 95%, "
        f"{options.draws} bootstrap resamples of prompts. p: permutation test over prompts, at most {PERMUTATIONS:,} "
        f"permutations (of contests: the bootstrap's). p (Holm): adjusted for all pairs of ranked generators of one table. A "
        f"rank such as 1-2 is the range that differences with an adjusted p of at most {LEVEL} leave. Seed {options.seed}."
    )


def write_ranking(report: RankReport, out: Path, options: StatisticsOptions) -> None:
    """Write `FILES` to the folder `out`: the tables to read, and every number once more for programs."""
    tables = _tables(report)
    page = ["# Ranking of generators\n", *(f"{line}\n" for line in _words(report)), f"{protocol(options)}\n"]
    long = [*long_tables(report.generators, report.corrected, report.contests), report.raters or rater_table(_NOBODY)]
    document = {
        "failures": options.policy,
        "draws": options.draws,
        "seed": options.seed,
        "level": LEVEL,
        "notes": report.notes,
        **{table.name: [_named(table.header, row) for row in table.rows] for table in long},
    }
    texts = (
        "\n".join([*page, *(f"Note: {line}\n" for line in report.notes), *map(markdown, tables)]),
        *map(csv_text, long),
        json.dumps(document, indent=1, allow_nan=False),
    )
    for name, text in zip(FILES, texts, strict=True):
        write_whole(out / name, [text])


_NOBODY = HumanRatings({}, {}, {})


def _tables(report: RankReport) -> list[Table]:
    return [
        *ranking_tables(report.generators),
        *corrected_tables(report.corrected),
        *contest_tables(report.contests),
        *([report.raters] if report.raters else []),
    ]


def _words(report: RankReport) -> Sequence[str]:
    if not report.generators:
        return ()
    return (CAUTION, _CORRECTED) if report.corrected else (CAUTION, ADVICE)


def _named(header: Sequence[str], row: Sequence[str]) -> dict[str, object]:
    return {name: _value(cell) for name, cell in zip(header, row, strict=True)}


def _value(cell: str) -> object:
    try:
        number = float(cell)
    except ValueError:
        return cell
    return number if math.isfinite(number) else None
