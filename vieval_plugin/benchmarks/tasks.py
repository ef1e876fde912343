"""The table of tasks, `task_configs/tasks.yaml`: judges measured on benchmarks, and the groups of
these tasks.

Every host reads it, and `vieval tasks` prints it. Other packages bring rows by an entry point of
the group `vieval.tasks`, which leads to a `TaskRow`, to several of them, or to a module that holds
them as `TASKS`.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import yaml

import vieval_plugin.task_configs
from vieval_plugin import config
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.benchmark import data_root
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.suggestions import did_you_mean

ENTRY_POINTS = "vieval.tasks"
#: Where the table is, and lmms-eval's files of the plain tasks.
FOLDER = Path(vieval_plugin.task_configs.__path__[0])

DATA_READY = "ready"
NOTHING = "no data needed"
RATINGS = "ratings only"
DATA_MISSING = "missing"
COMPLETE = (DATA_READY, NOTHING)
#: Says of a benchmark's part what `data_state` says.
StateOf: TypeAlias = Callable[[str, str], tuple[str, str]]


@dataclass(frozen=True)
class TaskRow:
    """A judge on a benchmark: one task per part, and a group of them where there are
    several.
    """

    benchmark: str
    judge: str
    #: Setting of the judge; another than its plain one makes a variant.
    setting: str = ""
    #: Parts of the benchmark; empty for all that the judge knows.
    parts: tuple[str, ...] = ()
    #: False for parts of which no average is wanted.
    grouped: bool = True
    #: True for a variant in the plain setting, where that is none of a benchmark's own tasks.
    variant: bool = False


@dataclass(frozen=True)
class Task:
    """A task as hosts know it: the samples of a part, asked of a judge in a setting."""

    name: str
    benchmark: str
    #: Part of the benchmark.
    part: str
    judge: str
    #: Setting of the judge.
    setting: str


@dataclass(frozen=True)
class TaskGroup:
    """Tasks or groups that are run and averaged together."""

    name: str
    #: Names of the tasks and groups in it.
    members: tuple[str, ...]
    benchmark: str
    #: False for those that are only run together.
    averaged: bool = True


@cache
def table() -> tuple[TaskRow, ...]:
    """The rows of `task_configs/tasks.yaml`, in its order."""
    return tuple(
        TaskRow(
            **{
                **row,
                "parts": tuple(row.get("parts", ())),
            }
        )
        for row in _document()["tasks"]
    )


@cache
def plugin_rows() -> tuple[TaskRow, ...]:
    """The rows of other packages whose judge and benchmark are there."""
    known_judges = judge_registry.judges()
    known_benchmarks = benchmark_registry.benchmarks()
    rows = judge_registry.load_entry_points(ENTRY_POINTS, ("TASKS",), TaskRow)
    return tuple(
        row
        for row in rows
        if row.judge in known_judges and row.benchmark in known_benchmarks
    )


def file_rows() -> tuple[TaskRow, ...]:
    """A row for each judge and each benchmark that has parts of its kinds, where one of the two
    is described in a file.
    """
    in_files = [
        (judge, benchmark)
        for judge in judge_registry.judges().values()
        for benchmark in benchmark_registry.benchmarks().values()
        if judge.file or benchmark.file
    ]
    rows = []
    names = set[str]()
    if in_files:
        names = {task.name for task in tasks((*table(), *plugin_rows()))}
    benchmarks_of_variants = {row.benchmark for row in table() if row.variant}
    for judge, benchmark in in_files:
        parts = [
            part
            for part in benchmark.parts
            if judge.kinds([benchmark.kinds.get(part, part)])
        ]
        row = TaskRow(
            benchmark.name,
            judge.name,
            parts=tuple(parts),
            variant=benchmark.name in benchmarks_of_variants,
        )
        fits = benchmark.report.rates_contests or judge.rates == "sample"
        if parts and fits and _name(row) not in names:
            rows.append(row)
    return tuple(rows)


def _rows(rows: Iterable[TaskRow] | None) -> Iterable[TaskRow]:
    if rows is None:
        return (*table(), *plugin_rows(), *file_rows())
    return rows


def _document() -> Any:
    return yaml.safe_load((FOLDER / "tasks.yaml").read_text(encoding="utf-8"))


def tasks_of(row: TaskRow) -> list[Task]:
    """The tasks of a row, named `[variant_]<benchmark>_<judge>[_<setting>][_<part>]`."""
    parts = tuple(benchmark_registry.benchmark(row.benchmark).parts)
    judge = judge_registry.judge(row.judge)
    name = _name(row)
    return [
        Task(
            f"{name}_{part}" if len(parts) > 1 else name,
            row.benchmark,
            part,
            row.judge,
            row.setting or judge.plain,
        )
        for part in row.parts or judge.kinds(parts) or parts
    ]


def group_of(row: TaskRow) -> TaskGroup | None:
    """The group over a row's tasks; None where the benchmark is one part or they are not
    averaged.
    """
    benchmark = benchmark_registry.benchmark(row.benchmark)
    if not row.grouped or len(benchmark.parts) == 1:
        return None
    members = tuple(task.name for task in tasks_of(row))
    return TaskGroup(_name(row), members, row.benchmark)


def _name(row: TaskRow) -> str:
    plain = f"{row.benchmark}_{row.judge}"
    name = f"{plain}_{row.setting}" if row.setting else plain
    return f"variant_{name}" if row.setting or row.variant else name


def tasks(rows: Iterable[TaskRow] | None = None) -> list[Task]:
    """Expand the table into tasks, all or those of some rows."""
    return [task for row in _rows(rows) for task in tasks_of(row)]


def groups(rows: Iterable[TaskRow] | None = None) -> list[TaskGroup]:
    """Expand the table into groups over rows, and those that are only run together; or the
    groups over some rows.
    """
    row_groups = [group for row in _rows(rows) if (group := group_of(row))]
    return row_groups + (task_groups_without_average() if rows is None else [])


def task_groups_without_average() -> list[TaskGroup]:
    """The groups of the table that run together and are not averaged."""
    return [
        TaskGroup(
            group["name"],
            tuple(group["members"]),
            group["benchmark"],
            averaged=False,
        )
        for group in _document()["groups"]
    ]


def entries() -> Mapping[str, Task | TaskGroup]:
    """Tasks and groups by name."""
    tasks_and_groups: list[Task | TaskGroup] = [*tasks(), *groups()]
    return {entry.name: entry for entry in tasks_and_groups}


def leaves(name: str, task_groups: Sequence[TaskGroup]) -> list[str]:
    """The tasks below a group; none for a name that is no group's."""
    members_by_name = {group.name: group.members for group in reversed(task_groups)}
    tasks_below: list[str] = []
    for member in members_by_name.get(name, ()):
        tasks_below += leaves(member, task_groups) or [member]
    return tasks_below


def data_state(name: str, part: str) -> tuple[str, str]:
    """The state of a benchmark's part in a word or two, and the first thing that is missing,
    with what to do.
    """
    benchmark = benchmark_registry.benchmark(name)
    try:
        root = data_root(benchmark, config.current())
    except VievalError as error:
        return DATA_MISSING, str(error)
    missing = benchmark.missing(root, part)
    if not missing:
        if benchmark.prepare is None and benchmark.root == "data":
            return NOTHING, ""
        return DATA_READY, ""
    if benchmark.generates:
        return DATA_MISSING, missing[0]
    try:
        benchmark.load(root, part)
    except VievalError as error:
        return DATA_MISSING, str(error)
    command = f"vieval prepare {name} --part {part}"
    return RATINGS, f"{missing[0]}; to judge live, run `{command}`"


def joined_states(members: Sequence[Task], state_of: StateOf) -> str:
    """The states of the data of some tasks in a few words."""
    parts = dict.fromkeys((task.benchmark, task.part) for task in members)
    states = [state_of(*part)[0] for part in parts]
    if len(set(states)) == 1:
        return states[0]
    ready_count = sum(state in COMPLETE for state in states)
    if ready_count == len(states):
        return DATA_READY
    if ready_count:
        return f"{ready_count} of {len(states)} ready"
    return f"{states.count(RATINGS)} of {len(states)} ratings only"


def matching(text: str, benchmarks: Mapping[str, str]) -> set[str]:
    """The names of tasks and groups that a filter chooses.

    Args:
        text: a benchmark, a part of names, or a pattern.
        benchmarks: the benchmark of each name.

    Raises:
        VievalError: it chooses none; with the nearest name, or what a judge without tasks lacks.
    """
    if text in benchmarks.values():
        return {name for name, benchmark in benchmarks.items() if benchmark == text}
    pattern = text if {*"*?["} & {*text} else f"*{text}*"
    if matches := set(fnmatch.filter(benchmarks, pattern)):
        return matches
    if text in judge_registry.judges():
        raise VievalError(
            f"the judge {text!r} has no task; set VIEVAL_BENCHMARKS to a benchmark folder, "
            f"or add an entry point to the group {ENTRY_POINTS}"
        )
    names = [*benchmarks.values(), *benchmarks]
    hint = did_you_mean(text.strip("*"), names)
    raise VievalError(f"no task or benchmark matches {text!r}{hint}")


def needs(task: Task) -> str:
    """Models that a run needs beside the data, in words."""
    spec = judge_registry.judge(task.judge)
    models = []
    if benchmark_registry.benchmark(task.benchmark).generates:
        models.append("a model that generates images")
    if spec.scored:
        models.append("a scorer")
    elif spec.pack:
        models.append("a model that judges")
    return " and ".join(models) or "nothing"


def calls(task: Task) -> str:
    """Calls of a model that an image takes, in words."""
    spec = judge_registry.judge(task.judge)
    judges = config.current().judges
    return judges.narrowed(spec).calls(judges.options_of(spec), task.setting)


def by_benchmark() -> dict[str, list[Task]]:
    """All tasks by the names of their benchmarks."""
    members: dict[str, list[Task]] = {}
    for task in tasks():
        members.setdefault(task.benchmark, []).append(task)
    return members


def table_row(name: str, members: Sequence[Task], state_of: StateOf) -> tuple[str, ...]:
    """A task, or a group of tasks that differ in their part, as a table has it: name, parts, needs,
    calls and the state of its data.
    """
    first = members[0]
    parts = (task.name.removeprefix(name) for task in members)
    state = joined_states(members, state_of)
    return name, " ".join(parts), needs(first), calls(first), state
