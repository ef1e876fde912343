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
    """Request to `vieval prepare`: which parts (None: all), with images or without, how many frames or views
    stand for a sample (None: as before), addresses by the name of a source, how many things at once (None: as many as
    suits the benchmark), whether to show it.
    """

    parts: Sequence[str] | None = None
    images: bool = True
    count: int | None = None
    hosts: Mapping[str, str] = field(default_factory=dict)
    workers: int | None = None
    progress: bool = True


@dataclass(frozen=True)
class Prepared:
    """Outcome of a preparation: lines for a terminal, and whether every part is ready."""

    lines: tuple[str, ...]
    complete: bool


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of images that people rated or voted on.

    - `name` is what tasks, folders and options call it, `title` how its paper spells it, empty where that is the name;
    - `parts` maps each part to the number of samples it was published with, None where that is not known;
    - `load(root, part)` gives a part's samples or contests, naming images and opening none, from the data folder
      `root`; VievalError, in one line, for what is absent or malformed. `missing(root, part)` says what a live run
      would lack, a line each;
    - `report` computes its statistics and tables;
    - `source` and `licence` say where it comes from and on which terms, `trainable` whether its data may train a model;
    - `prepare(root, preparing)` fetches it or checks what is there; None where nothing is to be prepared;
    - `hosts` are the sources whose address `vieval prepare` lets a user change, with what each holds;
    - `folders` maps a name that authors' logs and lists call one of its parts by, such as that of a folder, to the
      part;
    - `kinds` maps a part that is not named after a kind to the kind of its samples, where those are images;
    - `synthetic` says that its images are drawings of ours;
    - `note` stands above its tables, `printed` are published numbers of judges that stand below them;
    - `generates` says that a generator makes the images: `load` gives conditions, which are samples without `output`,
      image model and ratings;
    - `root` says what `load` and `missing` are given: the data folder, or the user's prompt file;
    - `file` is the one that describes it; None where that is Python.
    """

    name: str
    parts: Mapping[str, int | None]
    load: Callable[[Path, str], Sequence[Judged]]
    missing: Callable[[Path, str], list[str]]
    report: Report
    source: str
    licence: str
    trainable: bool
    title: str = ""
    prepare: Callable[[Path, Preparing], Prepared] | None = None
    hosts: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    synthetic: bool = False
    note: str = ""
    printed: tuple[Printed, ...] = ()
    generates: bool = False
    root: Literal["data", "prompts"] = "data"
    file: Path | None = None


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
