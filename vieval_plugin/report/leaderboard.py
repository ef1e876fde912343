"""Judges of all benchmarks of a report: each benchmark's leaderboard in one table, and the mean over benchmarks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from vieval_plugin.meta_evaluation.comparison import Comparison, compare_systems, over_benchmarks
from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.report.headlines.leaderboards import Leaderboard
from vieval_plugin.stats.options import StatisticsOptions

NOTE = (
    "Each two judges are compared on the samples that both scored, by permutation tests; p is adjusted by Holm. A rank such as "
    "2-4 is the range that significant differences leave. `vieval compare` has the differences."
)


def leaderboard_tables(
    boards: Mapping[str, Sequence[Leaderboard]], options: StatisticsOptions
) -> tuple[list[Table], list[str]]:
    """Return the tables of judges, that over benchmarks first, and the lines to be read beside them.

    Args:
        boards: by benchmark, its leaderboards, the default first; of one aspect there may be one a part.
        options: number of resamples, the seed.
    """
    defaults = {
        benchmark: [
            board.comparison
            for board in several
            if board.comparison and not board.headline.judge and board.headline.aspect == several[0].headline.aspect
        ]
        for benchmark, several in boards.items()
        if several
    }
    tested = {
        name: several for name, several in defaults.items() if any(comparison.all_pairs for comparison in several)
    }
    if not tested:
        return [], []
    named = [(name, comparison) for name, several in tested.items() for comparison in several]
    rows = [row for name, comparison in named for row in _rows(name, comparison)]
    header = ("benchmark", "task", "aspect", "rank", "judge", "value", "n", "why not ranked")
    tables = [Table("leaderboard", "Judges by benchmark", header, tuple(rows))]
    if len(tested) > 1:
        parts = {name: [comparison.compared for comparison in several] for name, several in tested.items()}
        statistic = over_benchmarks(parts)
        overall = compare_systems(statistic, statistic.part, options, intervals=False)
        overall_rows = tuple(row[3:] for row in _rows("", overall))
        tables.insert(0, Table("leaderboard_over", f"Judges: {overall.compared.statistic}", header[3:], overall_rows))
        named.append(("over benchmarks", overall))
    lines = [
        f"{where}: {line}"
        for where, comparison in named
        for line in (*comparison.warnings(), *comparison.compared.notes)
    ]
    return tables, list(dict.fromkeys(lines))


def _rows(benchmark: str, comparison: Comparison) -> list[tuple[str, ...]]:
    return [
        (
            benchmark,
            comparison.compared.part,
            comparison.compared.aspect,
            standing.rank_text,
            standing.system.label,
            "" if math.isnan(standing.value) else f"{standing.value:.4f}",
            str(standing.system.n),
            standing.system.undefined or standing.system.unranked,
        )
        for standing in comparison.standings
    ]
