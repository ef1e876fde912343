"""List benchmarks and their tasks, and what data they lack.

Run a task with `lmms-eval --tasks NAME`, or with `vieval vlmevalkit --data NAME`.

Examples:
    # all benchmarks
    vieval tasks
    # the tasks of one: what they need and cost
    vieval tasks imagenhub
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import Options, argument, flag

if TYPE_CHECKING:
    from vieval_plugin.benchmarks.tasks import StateOf, Task


class TasksOptions(Options):
    """Options of `vieval tasks`."""

    filter: str | None = argument(
        "a benchmark, a part of tasks' names, or a pattern such as '*_viescore'",
        metavar="FILTER",
    )
    write: str | None = flag(
        "write lmms-eval's files of these tasks, to read or edit",
        metavar="FOLDER",
    )


def run(options: TasksOptions) -> int:
    from vieval_plugin import config
    from vieval_plugin.text.escaping import say

    if options.write is not None:
        say(_write(options.filter or "*", Path(options.write)))
        return 0
    say(*(_benchmarks() if options.filter is None else _tasks(options.filter)))
    say(f"data folder: {config.current().data_folder()}")
    return 0


def _write(pattern: str, folder: Path) -> str:
    """Write the files of the tasks that a filter chooses, with all members of its groups; return
    a line on them.
    """
    from vieval_plugin.benchmarks import tasks
    from vieval_plugin.hosts.lmms_eval import task_files

    entries = tasks.entries()
    names = _matching(
        pattern, {name: entry.benchmark for name, entry in entries.items()}
    )
    names |= {leaf for name in names for leaf in tasks.leaves(name, tasks.groups())}
    task_files.write(
        folder,
        task_files.files([entry for name, entry in entries.items() if name in names]),
    )
    return (
        f"wrote {len(names)} tasks and groups to {folder}; lmms-eval reads your copies with "
        f"--include_path {folder}"
    )


def _benchmarks() -> list[str]:
    """A line a benchmark."""
    from vieval_plugin.benchmarks import tasks
    from vieval_plugin.text.tables import text_table

    by_benchmark: dict[str, list[Task]] = {}
    for task in tasks.tasks():
        by_benchmark.setdefault(task.benchmark, []).append(task)
    rows = []
    for name, tasks_of_benchmark in sorted(by_benchmark.items()):
        judges = ", ".join(dict.fromkeys(task.judge for task in tasks_of_benchmark))
        rows.append(
            (
                name,
                str(len(tasks_of_benchmark)),
                tasks.joined_states(tasks_of_benchmark, tasks.data_state),
                judges,
            )
        )
    complete_count = sum(state in tasks.COMPLETE for _, _, state, _ in rows)
    return [
        f"{complete_count} of {len(rows)} benchmarks are ready",
        "",
        *text_table([("benchmark", "tasks", "data", "judges"), *rows]),
        (
            "`vieval tasks NAME` lists a benchmark's tasks, with what they need and what their "
            "data lacks; '*' lists all."
        ),
    ]


def _tasks(pattern: str) -> list[str]:
    """The tasks that a filter chooses, those of a group in one line, and what is missing, a line
    a part.
    """
    from vieval_plugin.benchmarks import tasks
    from vieval_plugin.text.tables import text_table

    singles, groups = {task.name: task for task in tasks.tasks()}, tasks.groups()
    benchmarks = {name: task.benchmark for name, task in singles.items()}
    names = _matching(
        pattern, benchmarks | {group.name: group.benchmark for group in groups}
    )
    state_of = cache(tasks.data_state)
    rows: list[tuple[str, ...]] = []
    grouped_task_names = set[str]()
    for group in groups:
        leaves = [
            name
            for name in tasks.leaves(group.name, groups)
            if group.name in names or name in names
        ]
        if leaves and group.averaged:
            rows.append(_row(group.name, [singles[name] for name in leaves], state_of))
            grouped_task_names.update(leaves)
        elif group.name in names:
            rows.append(
                (group.name, f"runs {len(group.members)} of these together", "", "", "")
            )
    selected = [task for name, task in singles.items() if name in names]
    rows += [
        _row(task.name, [task], state_of)
        for task in selected
        if task.name not in grouped_task_names
    ]
    missing = {
        f"{task.benchmark}/{task.part}": state_of(task.benchmark, task.part)[1]
        for task in selected
    }
    return [
        *text_table(
            [("task", "parts", "needs", "calls for an image", "data"), *sorted(rows)]
        ),
        *(f"{part}: {reason}" for part, reason in missing.items() if reason),
    ]


def _row(name: str, members: Sequence[Task], state_of: StateOf) -> tuple[str, ...]:
    from vieval_plugin.benchmarks import registry as benchmark_registry
    from vieval_plugin.benchmarks import tasks

    parts = (
        [task.name.removeprefix(name) for task in members]
        if members[0].name != name
        else []
    )
    generates = benchmark_registry.benchmark(members[0].benchmark).generates
    return (
        name,
        " ".join(parts),
        _needs(members[0], generates),
        _calls(members[0]),
        tasks.joined_states(members, state_of),
    )


def _matching(text: str, benchmarks: dict[str, str]) -> set[str]:
    """The names that a filter chooses; VievalError, with the nearest, where it chooses none."""
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.suggestions import did_you_mean

    if text in benchmarks.values():
        return {name for name, benchmark in benchmarks.items() if benchmark == text}
    pattern = (
        text if any(wildcard_char in text for wildcard_char in "*?[") else f"*{text}*"
    )
    if matches := set(fnmatch.filter(benchmarks, pattern)):
        return matches
    suggestions = [*dict.fromkeys(benchmarks.values()), *benchmarks]
    raise VievalError(
        f"no task or benchmark fits {text!r}{did_you_mean(text.strip('*'), suggestions)}"
    )


def _needs(task: Task, generates: bool) -> str:
    """Models that a run needs beside the data, in words."""
    from vieval_plugin.judges import registry as judge_registry

    spec = judge_registry.judge(task.judge)
    judged_by = (
        "a scorer" if spec.scored else "a model that judges" if spec.pack else ""
    )
    return (
        " and ".join(
            filter(None, ["a model that makes images" if generates else "", judged_by])
        )
        or "nothing"
    )


def _calls(task: Task) -> str:
    from vieval_plugin import config
    from vieval_plugin.judges import registry as judge_registry

    spec = judge_registry.judge(task.judge)
    judges = config.current().judges
    return judges.narrowed(spec).calls(judges.options_of(spec), task.setting)
