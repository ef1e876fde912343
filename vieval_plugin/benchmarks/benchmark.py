"""Description of a benchmark by itself, so that nothing else has to know it by name.

A module of this package, or one that another package names under the entry point group `vieval.benchmarks`, holds
``BENCHMARK = Benchmark(...)``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from vieval_plugin.config import FILE_VARIABLE, Config
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.contests import Judged
from vieval_plugin.meta_evaluation.statistics import Report
from vieval_plugin.meta_evaluation.tables import Printed


@dataclass(frozen=True)
class Preparing:
    """Request to `vieval prepare`."""

    parts: Sequence[str] | None = None
    """Parts to prepare; None for all."""
    images: bool = True
    """False for ratings and conditions alone."""
    count: int | None = None
    """Number of frames or views that stand for a sample; None for that of before."""
    hosts: Mapping[str, str] = field(default_factory=dict)
    """Addresses by the name of a source."""


@dataclass(frozen=True)
class Prepared:
    """Outcome of a preparation."""

    lines: tuple[str, ...]
    """Lines for a terminal."""
    complete: bool
    """True where every part is ready."""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of images that people rated or voted on."""

    name: str
    """Its name in tasks, folders and options."""
    parts: Mapping[str, int | None]
    """Parts, each with the number of samples it was published with, None where that is unknown."""
    load: Callable[[Path, str], Sequence[Judged]]
    """Function of a root and a part that gives samples or contests, naming images and opening none; VievalError, in one
    line, for what is absent or malformed."""
    missing: Callable[[Path, str], list[str]]
    """Function of a root and a part that says what a live run would lack, a line each."""
    report: Report
    """Its statistics and tables."""
    source: str
    """Where it comes from."""
    licence: str
    """The terms it is on."""
    trainable: bool
    """True where its data may train a model."""
    title: str = ""
    """Its name as its paper spells it, where that is another."""
    prepare: Callable[[Path, Preparing], Prepared] | None = None
    """Function that fetches it or checks what is there; None where nothing is to be prepared."""
    hosts: Mapping[str, str] = field(default_factory=dict)
    """Sources whose address `vieval prepare` lets a user change, with what each holds."""
    folders: Mapping[str, str] = field(default_factory=dict)
    """Parts by the names that authors' logs and lists call them, such as those of folders."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Kinds of samples that are images, by parts that are not named after a kind."""
    synthetic: bool = False
    """True where its images are drawings of ours."""
    note: str = ""
    """Text above its tables."""
    printed: tuple[Printed, ...] = ()
    """Published numbers of judges, below its tables."""
    generates: bool = False
    """True where a generator makes the images: `load` gives conditions, samples without `output`, image model and
    ratings."""
    root: Literal["data", "prompts"] = "data"
    """The root that `load` and `missing` are given: the data folder, or the user's prompt file."""
    file: Path | None = None
    """File that describes it; None where that is Python."""


def known_part(name: str, parts: Collection[str], part: str) -> str:
    """The part itself; VievalError naming the parts there are if it is none of the benchmark called `name`."""
    if part not in parts:
        raise VievalError(f"no {name} part {part!r}; known: {', '.join(parts)}")
    return part


def data_root(benchmark: Benchmark, options: Config) -> Path:
    """Return what a benchmark is loaded from: the data folder, or the user's prompts; VievalError where none are
    named.
    """
    if benchmark.root == "data":
        return options.data_folder()
    if options.generate.prompts is None:
        raise VievalError(
            f"{benchmark.name}: name the file of prompts as generate.prompts in the options ({FILE_VARIABLE})"
        )
    return options.generate.prompts
