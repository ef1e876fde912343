"""The `Benchmark` class: everything that VIEval knows about one benchmark.

A module of this package, or one that another package names under the entry point group
`vieval.benchmarks`, holds ``BENCHMARK = Benchmark(...)``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from vieval_plugin.config import FILE_VARIABLE, Config
from vieval_plugin.judges.contests import Judged
from vieval_plugin.meta_evaluation.statistics import Report
from vieval_plugin.meta_evaluation.tables import Printed
from vieval_plugin.text.errors import VievalError

#: Parts with their published numbers of samples, None where that is unknown.
Parts: TypeAlias = Mapping[str, int | None]

#: Function of a root and a part that gives samples or contests.
Load: TypeAlias = Callable[[Path, str], Sequence[Judged]]

#: Source of a benchmark whose author did not set one.
USER_SOURCE = "the user"

#: Names by name.
Names: TypeAlias = Mapping[str, str]


@dataclass(frozen=True)
class Preparing:
    """Request to `vieval prepare`."""

    #: Parts to prepare; None for all.
    parts: Sequence[str] | None = None
    #: False for ratings and conditions alone.
    images: bool = True
    #: Number of frames or views that stand for a sample; None for that of before.
    count: int | None = None
    #: Addresses by the name of a source.
    hosts: Names = field(default_factory=dict)


@dataclass(frozen=True)
class Prepared:
    """Outcome of a preparation."""

    #: Lines for a terminal.
    lines: tuple[str, ...]
    #: True where every part is ready.
    complete: bool


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of images that people rated or voted on."""

    #: Its name in tasks, folders and options.
    name: str
    #: Parts, each with the number of samples it was published with, None where that is unknown.
    parts: Parts
    #: Function of a root and a part that gives samples or contests, naming images and opening none;
    #: VievalError, in one line, for what is absent or malformed.
    load: Load
    #: Function of a root and a part that lists what a live run still lacks, one line
    #: each.
    missing: Callable[[Path, str], list[str]]
    #: Its statistics and tables.
    report: Report
    #: Where it comes from.
    source: str
    #: The terms it is on.
    licence: str
    #: True where its data may train a model.
    trainable: bool
    #: Its name as its paper spells it, where that is another.
    title: str = ""
    #: Function that fetches it or checks what is there; None where nothing is to be prepared.
    prepare: Callable[[Path, Preparing], Prepared] | None = None
    #: Sources whose address `vieval prepare` lets a user change, with what each holds.
    hosts: Names = field(default_factory=dict)
    #: Parts by the names that authors' logs and lists call them, such as those of folders.
    folders: Names = field(default_factory=dict)
    #: Kinds of samples that are images, by parts that are not named after a kind.
    kinds: Names = field(default_factory=dict)
    #: True for synthetic images.
    synthetic: bool = False
    #: Text above its tables.
    note: str = ""
    #: Published numbers of judges, below its tables.
    printed: tuple[Printed, ...] = ()
    #: True where a generator makes the images: `load` gives conditions, samples without `output`,
    #: image model and ratings.
    generates: bool = False
    #: Function of a root and a part that gives the prompts of images, where `load` knows those of
    #: rated ones alone; the part is empty for all.
    prompts: Load | None = None
    #: The root that `load` and `missing` are given: the data folder, or the user's prompt file.
    root: Literal["data", "prompts"] = "data"
    #: File that describes it; None if it is described in Python.
    file: Path | None = None

    @property
    def truth(self) -> str:
        """Name of the standard that judges are compared with, for sentences."""
        return "the planted order" if self.synthetic else "people"

    def page_words(self, text: str) -> str:
        """Replace `people` and `the ratings` in a text by the benchmark's truth if
        people did not rate it.
        """
        if not self.synthetic:
            return text
        text_without_people = text.replace("people", self.truth)
        return text_without_people.replace("the ratings", self.truth)


def printed_numbers(text: str) -> dict[str, tuple[float, ...]]:
    """Numbers by judge, from a line for each such as `GPT-4o: 45.69 27.33`."""
    lines = text.strip().splitlines()
    rows = (line.strip().rpartition(": ") for line in lines)
    return {judge: tuple(map(float, numbers.split())) for judge, _, numbers in rows}


def known_part(name: str, parts: Collection[str], part: str) -> str:
    """The part itself; VievalError naming the parts there are if it is none of the benchmark
    called `name`.
    """
    if part not in parts:
        known_parts = ", ".join(parts)
        raise VievalError(
            f"unknown part {part!r} of {name}; known parts: {known_parts}"
        )
    return part


def data_root(benchmark: Benchmark, options: Config) -> Path:
    """Return what a benchmark is loaded from: the data folder, or the user's prompts; VievalError
    where none are named.
    """
    if benchmark.root == "data":
        return options.data_folder()
    if options.generate.prompts is None:
        raise VievalError(
            f"{benchmark.name}: set generate.prompts to a file of prompts in the options "
            f"({FILE_VARIABLE})"
        )
    return options.generate.prompts
