"""Judges and benchmarks by name: those that come with VIEval, and those that other packages bring.

Ours are found by looking into `judges/` and `data/`. Other packages name theirs in an entry point of the group
`vieval.judges` or `vieval.benchmarks`, which leads to a `JudgeSpec` or `Benchmark`, to several of them, or to a module
that holds them as `SPEC`, `SPECS` or `BENCHMARK`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import Any, Protocol, TypeVar

import vieval_plugin.data
import vieval_plugin.judges
from vieval_plugin.data.benchmark import Benchmark
from vieval_plugin.errors import VievalError
from vieval_plugin.harmless import say
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.spec import EVERY_KIND, JudgeSpec
from vieval_plugin.nearest import did_you_mean

JUDGES, BENCHMARKS = "vieval.judges", "vieval.benchmarks"

K = TypeVar("K")
T = TypeVar("T", bound="Named")


class Named(Protocol):
    """A description with a name."""

    @property
    def name(self) -> str: ...


@cache
def judges() -> Mapping[str, JudgeSpec]:
    """All judges by name, ours first."""
    return found(vieval_plugin.judges, ("SPEC", "SPECS"), JUDGES, JudgeSpec)


@cache
def benchmarks() -> Mapping[str, Benchmark]:
    """All benchmarks by name, ours first."""
    return found(vieval_plugin.data, ("BENCHMARK", "BENCHMARKS"), BENCHMARKS, Benchmark)


def judge(name: str) -> JudgeSpec:
    """A judge by its name; VievalError, with the nearest name, if there is none."""
    return _named(name, judges(), "judge")


def benchmark(name: str) -> Benchmark:
    """A benchmark by its name; VievalError, with the nearest name, if there is none."""
    return _named(name, benchmarks(), "benchmark")


def kinds() -> list[str]:
    """The kinds of samples that some judge knows."""
    return list(dict.fromkeys(kind for spec in judges().values() for kind in spec.needs if kind != EVERY_KIND))


def folders() -> Mapping[str, tuple[Benchmark, str]]:
    """The benchmark and part that authors' logs call by the name of a folder."""
    return {folder: (one, part) for one in benchmarks().values() for folder, part in one.folders.items()}


def samples(name: str, part: str, root: Any) -> list[Judged]:
    """The samples or contests of a benchmark's part; VievalError for an unknown one, and for data that is absent or malformed."""
    return list(benchmark(name).load(root, part))


def _named(name: str, known: Mapping[str, T], what: str) -> T:
    if name in known:
        return known[name]
    raise VievalError(f"no {what} {name!r}{did_you_mean(name, known, 0.6)}; known: {', '.join(known)}")


def brought(group: str, names: tuple[str, ...], kind: type[K]) -> list[K]:
    """What other packages bring under an entry point group; one that cannot be loaded is left out with one line."""
    return [one for _, one in _brought(group, names, kind)]


def _brought(group: str, names: tuple[str, ...], kind: type[K]) -> Iterator[tuple[str, K]]:
    for entry in importlib.metadata.entry_points(group=group):
        origin = f"{entry.dist.name if entry.dist else 'an unknown package'} (entry point {entry.name} of {group})"
        try:
            held = list(_described(entry.load(), names, kind))
        except Exception as error:  # whatever another package does, the rest must work
            _warn(f"{origin} cannot be loaded and is left out ({type(error).__name__}: {' '.join(str(error).split())})")
            continue
        if not held:
            _warn(f"{origin} leads to no {kind.__name__} and is left out")
        yield from ((origin, one) for one in held)


def found(package: ModuleType, names: tuple[str, ...], group: str, kind: type[T]) -> Mapping[str, T]:
    """The descriptions of a kind by name: those in the modules of a package, and those that other packages bring.

    One that cannot be loaded, or whose name is taken, is left out with one line.
    """
    held = {one.name: one for module in _modules(package) for one in _described(module, names, kind)}
    for origin, one in _brought(group, names, kind):
        if one.name in held:
            _warn(f"{origin} brings {one.name!r}, a name that is taken, and is left out")
        else:
            held[one.name] = one
    return held


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not found.name.rpartition(".")[2].startswith("_"):
            yield importlib.import_module(found.name)


def _described(holder: Any, names: tuple[str, ...], kind: type[K]) -> Iterator[K]:
    """The descriptions that a module holds under one of the names, or that the object is itself."""
    held: Iterable[Any]
    if isinstance(holder, ModuleType):
        held = [getattr(holder, name) for name in names if hasattr(holder, name)]
    else:
        held = [holder]
    for one in held:
        if isinstance(one, kind):
            yield one
        elif isinstance(one, (tuple, list)):
            yield from (each for each in one if isinstance(each, kind))


def _warn(text: str) -> None:
    say(f"vieval: {text}", file=sys.stderr)
