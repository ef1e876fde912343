"""Judges of all benchmarks of a report: each benchmark's leaderboard in one table, and the mean over benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from vieval_plugin.meta_evaluation.comparison import Comparison, compare_systems, over_benchmarks
from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.report.headlines.leaderboards import Leaderboard
from vieval_plugin.report.headlines.words import reason_words
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.wording import decimals

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
            (board, board.comparison)
            for board in pairs
            if board.comparison and not board.headline.judge and board.headline.aspect == pairs[0].headline.aspect
        ]
        for benchmark, pairs in boards.items()
        if pairs
    }
    tested = {name: pairs for name, pairs in defaults.items() if any(comparison.all_pairs for _, comparison in pairs)}
    if not tested:
        return [], []
    rows: list[tuple[str, ...]] = []
    lines: list[str] = []
    for name, pairs in tested.items():
        for board, comparison in pairs:
            rows += _rows(name, comparison, {row.label: "; ".join(row.marks) for row in board.rows})
            lines += [*(f"{name}: {line}" for line in board.notes), *board.mark_notes]
    header = ("benchmark", "task", "aspect", "rank", "judge", "value", "n", "marks", "why not ranked")
    tables = [Table("leaderboard", "Judges by benchmark", header, tuple(rows))]
    if len(tested) > 1:
        parts = {name: [comparison.compared for _, comparison in pairs] for name, pairs in tested.items()}
        statistic = over_benchmarks(parts)
        overall = compare_systems(statistic, statistic.part, options, intervals=False)
        overall_rows = tuple((*row[3:7], row[8]) for row in _rows("", overall, {}))
        overall_header = (*header[3:7], header[8])
        tables.insert(
            0, Table("leaderboard_over", f"Judges: {overall.compared.statistic}", overall_header, overall_rows)
        )
        lines += [f"over benchmarks: {line}" for line in (*overall.warnings(), *overall.compared.notes)]
    return tables, list(dict.fromkeys(lines))


def rounded(table: Table) -> Table:
    """A table of judges for readers: numbers with two decimals, and task types in words."""
    value = table.header.index("value")
    rows = [
        tuple(f"{float(cell):.2f}" if index == value and cell else reason_words(cell) for index, cell in enumerate(row))
        for row in table.rows
    ]
    return replace(table, rows=tuple(rows))


def _rows(benchmark: str, comparison: Comparison, marks: Mapping[str, str]) -> list[tuple[str, ...]]:
    return [
        (
            benchmark,
            comparison.compared.part,
            comparison.compared.aspect,
            standing.rank_text,
            standing.system.label,
            decimals(standing.value, ".4f"),
            str(standing.system.n),
            marks.get(standing.system.label, ""),
            standing.system.undefined or standing.system.unranked,
        )
        for standing in comparison.standings
    ]
