"""Benchmarks by name: ours, and those of other packages, named in an entry point of the group `vieval.benchmarks`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import vieval_plugin.benchmarks
from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.registry import by_name, descriptions


@cache
def benchmarks() -> Mapping[str, Benchmark]:
    """Return all benchmarks by name, ours first."""
    return descriptions(vieval_plugin.benchmarks, ("BENCHMARK", "BENCHMARKS"), "vieval.benchmarks", Benchmark)


def benchmark(name: str) -> Benchmark:
    """Return a benchmark by its name; VievalError, with the nearest name, if there is none."""
    return by_name(name, benchmarks(), "benchmark")


def folders() -> Mapping[str, tuple[Benchmark, str]]:
    """Return the benchmark and part that authors' logs call by the name of a folder."""
    return {folder: (entry, part) for entry in benchmarks().values() for folder, part in entry.folders.items()}


def samples(name: str, part: str, root: Path) -> list[Judged]:
    """Return the samples of a benchmark's part; VievalError for an unknown one, and for data that is absent or
    malformed.
    """
    return list(benchmark(name).load(root, part))
