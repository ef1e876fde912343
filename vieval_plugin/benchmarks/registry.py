"""Benchmarks by name: ours, those of other packages, named in an entry point of the group
`vieval.benchmarks`, and those in folders of a user's own, which are named, or lie in the folder
that VIEVAL_BENCHMARKS names or are it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import vieval_plugin.benchmarks
from vieval_plugin.benchmarks.benchmark import Benchmark, data_root
from vieval_plugin.config import Config, current
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.registry import (
    description_in_module,
    descriptions,
    find_entry,
)
from vieval_plugin.records import fingerprint, target_json
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import announce
from vieval_plugin.text.untrusted import path_of, real

if TYPE_CHECKING:
    from vieval_plugin.readers.samples import SampleRow, SampleSource

FOLDER_VARIABLE = "VIEVAL_BENCHMARKS"
_NAMES = ("BENCHMARK", "BENCHMARKS")


@cache
def benchmarks() -> dict[str, Benchmark]:
    """Return all benchmarks by name, ours first; then those in folders."""
    registered = dict(
        descriptions(
            vieval_plugin.benchmarks,
            _NAMES,
            "vieval.benchmarks",
            Benchmark,
        )
    )
    home = os.environ.get(FOLDER_VARIABLE)
    if home:
        from vieval_plugin.benchmarks import in_folder

        home_folder = path_of(home)
        candidates = (home_folder, *sorted(home_folder.glob("*")))
        folders = [folder for folder in candidates if in_folder.is_benchmark(folder)]
        if not folders:
            _warn(
                f"{FOLDER_VARIABLE}: {home}: must be a folder that contains a "
                f"{in_folder.FILE}, or subfolders with one"
            )
        for folder in folders:
            try:
                _add(folder, registered)
            except VievalError as error:
                _warn(f"{error}; skipping this benchmark")
    return registered


def find(name: str) -> Benchmark | None:
    """Return a benchmark by its name; None if there is none.

    Others are loaded only where no module of ours has the name.
    """
    return description_in_module(
        vieval_plugin.benchmarks,
        name,
        _NAMES,
        Benchmark,
    ) or benchmarks().get(name)


def benchmark(name: str) -> Benchmark:
    """Return a benchmark by its name or folder; VievalError, with the nearest name, if there is
    none.
    """
    known_benchmark = find(name)
    if known_benchmark:
        return known_benchmark
    from vieval_plugin.benchmarks import in_folder

    registered = benchmarks()
    if in_folder.is_benchmark(path_of(name)):
        return _add(path_of(name), registered)
    if path_of(name).is_dir():
        raise VievalError(
            f"{name}: not a benchmark, because the folder has no {in_folder.FILE}"
        )
    return find_entry(name, registered, "benchmark")


def _add(folder: Path, registered: dict[str, Benchmark]) -> Benchmark:
    """Register the benchmark of a folder; VievalError where another has its name."""
    from vieval_plugin.benchmarks import in_folder

    added = in_folder.read_benchmark(folder)
    namesake = registered.get(added.name)
    if namesake and not (
        namesake.file and added.file and real(namesake.file) == real(added.file)
    ):
        raise VievalError(
            f"{folder / in_folder.FILE}: name: {added.name} is already the name of the benchmark "
            f"{namesake.title or namesake.name} ({namesake.source}); choose another name"
        )
    registered[added.name] = added
    return added


def _warn(text: str) -> None:
    announce(text)


def source(name: str, options: Config) -> SampleSource:
    """Return all samples or contests of a benchmark, part after part, as what is to be judged.

    Args:
        name: its name or folder.
        options: which say where data is.

    Raises:
        VievalError: there is no such benchmark, its data is absent or malformed, or generators are
            judged on it.
    """
    from vieval_plugin.readers.samples import SampleRow, SampleSource, fingerprint_of

    entry = benchmark(name)
    if entry.generates:
        raise VievalError(
            f"{entry.name}: its images must be generated; run its tasks in lmms-eval or VLMEvalKit"
        )
    root = data_root(entry, options)
    judged: list[Judged] = []
    for part in entry.parts:
        judged += entry.load(root, part)
    digests = (
        text for sample in judged for text in (target_json(sample), fingerprint(sample))
    )

    def rows() -> Iterator[SampleRow]:
        return (SampleRow(sample, str(sample.id)) for sample in judged)

    return SampleSource(
        entry.name,
        rows,
        fingerprint_of([], *digests),
        total=len(judged),
    )


def folders() -> Mapping[str, tuple[Benchmark, str]]:
    """Return the benchmark and part that authors' logs call by the name of a folder."""
    return {
        folder: (entry, part)
        for entry in benchmarks().values()
        for folder, part in entry.folders.items()
    }


def samples(name: str, part: str, root: Path | None = None) -> list[Judged]:
    """Return the samples of a benchmark's part, by default from the data folder of the options;
    VievalError for an unknown one, and for data that is absent or malformed.
    """
    return list(benchmark(name).load(root or current().data_folder(), part))
