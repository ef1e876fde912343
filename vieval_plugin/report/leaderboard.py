"""The leaderboard of judges at the head of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.meta_evaluation.judge_comparison import JudgeComparison
from vieval_plugin.meta_evaluation.judge_leaderboard import JudgeLeaderboard, judge_leaderboard
from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions

NOTE = (
    "Judges share a rank where the data cannot tell them apart: permutation tests on the samples that all of them scored, "
    "p adjusted by Holm. `vieval compare` has the differences."
)


def leaderboard_of(
    sections: Sequence[tuple[Benchmark, Sequence[Run]]], options: StatisticsOptions
) -> JudgeLeaderboard | None:
    """The leaderboard of a report's judges; None where no benchmark has two.

    Args:
        sections: the benchmarks, each with its runs.
        options: how many draws, the seed.
    """
    compared = {
        benchmark.name: benchmark.report.compared(benchmark.name, tuple(benchmark.parts), runs, options)
        for benchmark, runs in sections
        if len(runs) > 1
    }
    found = judge_leaderboard(compared, options)
    return None if found.empty else found


def leaderboard_tables(found: JudgeLeaderboard) -> list[Table]:
    """A table over benchmarks, where there are several, and one of each benchmark and part."""
    rows = [row for benchmark, one in found.benchmarks for row in _rows(benchmark, one)]
    header = ("benchmark", "task", "aspect", "rank", "judge", "value", "own n", "n compared")
    named = Table("leaderboard", "Judges by benchmark", header, tuple(rows))
    if found.over is None:
        return [named]
    shown = tuple((row[3], row[4], row[5], row[6], row[7]) for row in _rows("", found.over))
    return [Table("leaderboard_over", f"Judges: {found.over.compared.statistic}", header[3:], shown), named]


def leaderboard_notes(found: JudgeLeaderboard) -> list[str]:
    """What must be read beside the tables: numbers that differ, draws that are too few, what was left out."""
    told = [(f"{benchmark}: ", one) for benchmark, one in found.benchmarks]
    told += [("over benchmarks: ", found.over)] if found.over else []
    lines = [f"{where}{line}" for where, one in told for line in (*one.warnings, *one.compared.notes)]
    return list(dict.fromkeys(lines))


def _rows(benchmark: str, found: JudgeComparison) -> list[tuple[str, ...]]:
    ranked = sorted(found.standings, key=lambda one: (one.rank is None, one.rank or 0, -one.estimate))
    return [
        (
            benchmark,
            found.compared.part,
            found.compared.aspect,
            "" if one.rank is None else str(one.rank),
            one.judge.label,
            one.judge.reason or found.why if math.isnan(one.estimate) else f"{one.estimate:.4f}",
            str(one.judge.own),
            str(found.compared.used),
        )
        for one in ranked
    ]
