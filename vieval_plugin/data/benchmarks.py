"""The benchmarks by name: where their samples come from and what the published statistics need to know of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vieval_plugin.data import demo, imagenhub
from vieval_plugin.data.alignment_benchmarks import LOADERS, Loader
from vieval_plugin.data.subset import chosen
from vieval_plugin.data.t2i_eval_bench import T2I_EVAL_BENCH
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Sample


@dataclass(frozen=True)
class Benchmark:
    """How to get a benchmark's samples of a task, and what is missing for judging them live (a line each).

    `added_last` gives, by task, the rater whose O the published code adds last (see stats/agreement.py).
    `prepared` is false for what needs no data folder. `statistics` are the benchmark's own (see alignment.py), in place
    of agreement by image model; where `annotators` is true these are agreement with each annotator (see annotators.py).
    """

    tasks: tuple[str, ...]
    samples: Callable[[Path, str], list[Sample]]
    missing: Callable[[Path, str], list[str]]
    added_last: Mapping[str, int]
    prepared: bool = True
    statistics: tuple[str, ...] = ()
    annotators: bool = False


@cache
def _drawn(task: str) -> tuple[Sample, ...]:
    """Drawn once a process, whichever judges look at them."""
    return tuple(demo.samples(task))


_HUMAN = ("pearson", "kendall", "pairwise_accuracy")
_COMPOSITIONAL = ("text_score", "image_score", "group_score")
_STATISTICS = {
    "winoground": _COMPOSITIONAL,
    "eqben_mini": _COMPOSITIONAL,
    "seetrue": ("auroc",),
    "pickapic": ("preference_accuracy",),
}


def _of_alignment(loader: Loader) -> Benchmark:
    if loader.name == T2I_EVAL_BENCH:
        return Benchmark(tuple(loader.tasks), loader.samples, loader.missing, {}, annotators=True)
    statistics = _STATISTICS.get(loader.name, _HUMAN)
    return Benchmark(tuple(loader.tasks), loader.samples, loader.missing, {}, statistics=statistics)


BENCHMARKS: dict[str, Benchmark] = {
    imagenhub.BENCHMARK: Benchmark(
        tuple(imagenhub.TASKS),
        imagenhub.samples,
        imagenhub.missing,
        {task: info.added_last for task, info in imagenhub.TASKS.items()},
    ),
    demo.BENCHMARK: Benchmark(
        tuple(imagenhub.TASKS),
        lambda _root, task: list(_drawn(task)),
        lambda _root, _task: [],
        {},
        prepared=False,
    ),
    **{name: _of_alignment(loader) for name, loader in LOADERS.items()},
}


def samples(root: Path, benchmark: str, task: str, uids: Path | None = None) -> list[Sample]:
    """The samples of a benchmark's task; with `uids` (a file, see subset.py) only those it names.

    VievalError for an unknown benchmark, for data that is absent or malformed, and for a list that names no sample.
    """
    if benchmark not in BENCHMARKS:
        raise VievalError(f"no benchmark {benchmark!r}; known: {', '.join(BENCHMARKS)}")
    found = BENCHMARKS[benchmark].samples(root, task)
    return found if uids is None else chosen(found, uids)
