"""List benchmarks, their tasks and missing data.

Run a task with `lmms-eval --tasks NAME`, or with `vieval vlmevalkit --data NAME`.

Examples:
    # list all benchmarks
    vieval tasks
    # list the tasks of a benchmark, with requirements and cost
    vieval tasks imagenhub
    # list networks that judge, with licence, size and weights
    vieval tasks --judges
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import Options, argument, flag

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vieval_plugin.benchmarks.tasks import StateOf, Task


class TasksOptions(Options):
    """Options of `vieval tasks`."""

    filter: str | None = argument(
        "benchmark, part of a task name, or pattern such as '*_viescore'",
        metavar="FILTER",
    )
    write: str | None = flag(
        "write the lmms-eval files of these tasks, to read or edit",
        metavar="FOLDER",
    )
    judges: bool = flag("list judge networks and their weights")


def run(options: TasksOptions) -> int:
    from vieval_plugin import config
    from vieval_plugin.text.escaping import say

    if options.write is not None:
        say(_write(options.filter or "*", Path(options.write)))
        return 0
    if options.judges:
        say(*_judges())
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
    names = tasks.matching(
        pattern, {name: entry.benchmark for name, entry in entries.items()}
    )
    names |= {leaf for name in names for leaf in tasks.leaves(name, tasks.groups())}
    selected = [entry for name, entry in entries.items() if name in names]
    task_files.write(folder, task_files.files(selected))
    written = "1 task" if len(names) == 1 else f"{len(names)} tasks and groups"
    return (
        f"wrote {written} to {folder}; to use them, pass "
        f"--include_path {folder} to lmms-eval"
    )


def _judges() -> list[str]:
    """A line a network that judges by name, one on what it measures, and what is absent of it."""
    from vieval_plugin import config
    from vieval_plugin.backends.weights import is_on_this_machine, local_path
    from vieval_plugin.judges import registry
    from vieval_plugin.judges.in_file import missing_wording
    from vieval_plugin.text.tables import text_table

    scorers = config.current().scorers
    rows = [("judge", "licence of its weights", "size", "weights", "numbers")]
    meanings = []
    absences = []
    for pack, about in registry.described_networks():
        weights = getattr(scorers.get(pack.name), "model", "") or pack.weights
        is_here = is_on_this_machine(weights)
        state = "present" if is_here else "missing"
        rows.append((pack.name, about.licence, about.size, state, about.range))
        meanings.append(f"{pack.name}: measures {about.meaning} ({about.source})")
        is_address = "://" in weights
        place = f", to download to {local_path(weights)}" if is_address else ""
        absences += (
            [] if is_here else [f"{pack.name}: its weights are {weights}{place}"]
        )
        absences += filter(None, [missing_wording(pack)])
    return [*text_table(rows), "", *meanings, "", *absences]


def _benchmarks() -> list[str]:
    from vieval_plugin.benchmarks import tasks
    from vieval_plugin.text.tables import text_table

    rows = []
    complete_count = 0
    for name, members in sorted(tasks.by_benchmark().items()):
        state = tasks.joined_states(members, tasks.data_state)
        complete_count += state in tasks.COMPLETE
        judges = ", ".join(dict.fromkeys(task.judge for task in members))
        rows.append((name, str(len(members)), state, judges))
    are = "is" if complete_count == 1 else "are"
    ready = f"{complete_count} of {len(rows)} benchmarks {are} ready"
    advice = (
        "`vieval tasks NAME` lists a benchmark's tasks, requirements and missing data; '*' "
        "lists all tasks."
    )
    return [
        ready,
        "",
        *text_table([("benchmark", "tasks", "data", "judges"), *rows]),
        advice,
    ]


def _tasks(pattern: str) -> list[str]:
    """The tasks that a filter chooses, those of a group in one line, and what is
    missing, one line per part.
    """
    from vieval_plugin.benchmarks import tasks
    from vieval_plugin.text.tables import text_table

    singles = {task.name: task for task in tasks.tasks()}
    groups = tasks.groups()
    benchmarks = {name: task.benchmark for name, task in singles.items()}
    benchmarks |= {group.name: group.benchmark for group in groups}
    names = tasks.matching(pattern, benchmarks)
    state_of = cache(tasks.data_state)
    rows = []
    grouped_task_names = set[str]()
    for group in groups:
        leaves = tasks.leaves(group.name, groups)
        if group.name not in names:
            leaves = [name for name in leaves if name in names]
        if leaves and group.averaged:
            rows.append(
                tasks.table_row(
                    group.name, [singles[name] for name in leaves], state_of
                )
            )
            grouped_task_names.update(leaves)
        elif group.name in names:
            rows.append(
                (group.name, f"runs {len(group.members)} of these tasks", "", "", "")
            )
    selected = [task for name, task in singles.items() if name in names]
    rows += [
        tasks.table_row(task.name, [task], state_of)
        for task in selected
        if task.name not in grouped_task_names
    ]
    header = ("task", "parts", "requires", "calls per image", "data")
    return [*text_table([header, *sorted(rows)]), *_missing_data(selected, state_of)]


def _missing_data(selected: Iterable[Task], state_of: StateOf) -> Iterator[str]:
    parts = dict.fromkeys((task.benchmark, task.part) for task in selected)
    for benchmark, part in parts:
        _, reason = state_of(benchmark, part)
        if reason:
            yield f"{benchmark}/{part}: {reason}"
