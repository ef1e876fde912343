"""How long runs took, as far as the host wrote it down beside their samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from vieval_plugin.errors import VievalError
from vieval_plugin.records import Run
from vieval_plugin.results.documents import read_response
from vieval_plugin.results.host_samples import responses_of, samples_files
from vieval_plugin.yaml_json import read_json


def durations(results: Sequence[Path], runs: Sequence[Run]) -> dict[tuple[str, str], str]:
    """By benchmark and judge, how long its runs took, in words: a host times all of its tasks together.

    Args:
        results: folders or files that runs left behind.
        runs: the judges of them.
    """
    owners = {_source(run): run for run in runs}
    took: dict[Path, float] = {}
    judged: dict[Path, set[tuple[str, ...]]] = defaultdict(set)
    for path in (file for result in results for file in samples_files(result)):
        summary = path.with_name(path.name.split("_samples_")[0] + "_results.json")
        source = _first(path)
        if source is None or not summary.is_file():
            continue
        judged[summary].add(source)
        if summary not in took:
            took[summary] = _seconds(summary)
    found: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    for summary, sources in judged.items():
        others = len({source[1:] for source in sources}) - 1
        for source in sources:
            run = owners.get(source)
            if run is not None and took[summary] > 0:
                found[run.benchmark, run.label].append((took[summary], others))
    return {key: _words(several) for key, several in found.items()}


def _words(several: Sequence[tuple[float, int]]) -> str:
    total, others = sum(seconds for seconds, _ in several), max(n for _, n in several)
    told = f"{total:.0f}" if total >= 10 else f"{total:.1f}"
    return f"{told} (with {others} other judge{'s' * (others > 1)})" if others else told


def _seconds(summary: Path) -> float:
    try:
        return float(read_json(summary.read_bytes())["total_evaluation_time_seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


def _first(path: Path) -> tuple[str, ...] | None:
    """Benchmark, backbone, judge and settings of the first row."""
    try:
        with path.open(encoding="utf-8") as file:
            identity, _, source = read_response(responses_of(read_json(file.readline()))[0])
    except (OSError, ValueError, KeyError, TypeError, IndexError, VievalError):
        return None
    return identity.benchmark, source.backbone, source.judge, *source.settings


def _source(run: Run) -> tuple[str, ...]:
    first = next(iter(run.records.values()))[0][0].provenance
    return run.benchmark, first.backbone, first.judge, *first.settings
