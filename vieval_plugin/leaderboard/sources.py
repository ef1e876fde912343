"""Folders that leaderboards are made from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.judges.contests import Judged
from vieval_plugin.text.errors import VievalError


@dataclass(frozen=True)
class Sources:
    """Folders of published verdicts and of data, which has people's ratings and votes."""

    published: Path
    data: Path


def judged_of(benchmark: Benchmark, parts: Iterable[str], sources: Sources) -> list[Judged]:
    """The samples or contests of parts of a benchmark, with what people said of them.

    Raises:
        VievalError: they are neither in the data folder nor, without images, in the published logs.
    """
    parts = list(parts)
    try:
        return [judged for part in parts for judged in benchmark.load(sources.data, part)]
    except VievalError:
        try:
            return [judged for part in parts for judged in benchmark.load(sources.published, part)]
        except VievalError:
            pass
        raise
