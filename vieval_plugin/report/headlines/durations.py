"""How long runs took, as far as the host wrote it down beside their samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from vieval_plugin.records import Run
from vieval_plugin.text.yaml_json import read_json


def durations(runs: Sequence[Run]) -> dict[tuple[str, str], str]:
    """By benchmark and judge, how many seconds its runs took, in words: a host times all of its tasks together.

    Args:
        runs: of all benchmarks, those that are shown together.
    """
    of_run = {(run.benchmark, run.label): _summaries(run) for run in runs}
    judges: dict[Path, set[str]] = defaultdict(set)
    for (_, label), summaries in of_run.items():
        for summary in summaries:
            judges[summary].add(label)
    took = {summary: _seconds(summary) for summary in judges}
    return {
        key: _words(sum(took[one] for one in summaries), max(len(judges[one]) - 1 for one in summaries))
        for key, summaries in of_run.items()
        if summaries and all(took[one] for one in summaries)
    }


def _summaries(run: Run) -> set[Path]:
    records = (record for judged in run.records.values() for together in judged for record in together)
    return {record.summary for record in records if record.summary is not None}


def _seconds(summary: Path) -> float:
    try:
        return float(read_json(summary.read_bytes())["total_evaluation_time_seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


def _words(seconds: float, others: int) -> str:
    told = f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}"
    return f"{told} (with {others} other judge{'s' * (others > 1)})" if others else told
