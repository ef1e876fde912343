"""Configurations of our tasks as lmms-eval reads them: in memory for its index, and as YAML files for who reads files.

`python -m vieval_plugin.hosts.lmms_eval.task_files` (`make tasks`) writes the files of `task_configs/` from the table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks import tasks
from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.benchmarks.tasks import Task, TaskGroup, TaskRow
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.media.files import write_whole

README = "README.md"
INCLUDES = ("judged.inc", "generated.inc", "group.inc")


def configuration(entry: Task | TaskGroup) -> dict[str, Any]:
    """The host's configuration of a task or group, with what all of them share as an `include`.

    >>> configuration(tasks.TaskGroup("mine", ("mine_tig", "mine_tie"), "mine", averaged=False))
    {'group': 'mine', 'task': ['mine_tig', 'mine_tie']}
    """
    if isinstance(entry, TaskGroup):
        include = {"include": "../group.inc"} if entry.averaged else {}
        return {**include, "group": entry.name, "task": list(entry.members)}
    include_name = "generated" if benchmark_registry.benchmark(entry.benchmark).generates else "judged"
    metadata = {"version": 1, "benchmark": entry.benchmark, "part": entry.part, "judge": entry.judge}
    metadata |= {"setting": entry.setting} if entry.setting else {}
    return {"include": f"../{include_name}.inc", "task": entry.name, "metadata": metadata}


def files(entries: Collection[Task | TaskGroup]) -> dict[str, str]:
    """The text of each task file by its path below a folder: a folder a benchmark, a README, and the included files."""
    texts = {f"{entry.benchmark}/{entry.name}.yaml": _yaml(configuration(entry)) for entry in entries}
    texts |= {name: (tasks.FOLDER / name).read_text(encoding="utf-8") for name in INCLUDES}
    return texts | {README: _readme([entry for entry in entries if isinstance(entry, Task)])}


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write task files below a folder, each whole or not at all."""
    for name, text in texts.items():
        write_whole(folder / name, [text])


def plain_tasks() -> list[Task | TaskGroup]:
    """The tasks that have files in `task_configs/`: plain settings of judges that ask a model, on real ratings."""
    rows = [row for row in tasks.table() if _is_plain(row)]
    plain: list[Task | TaskGroup] = [*tasks.tasks(rows), *tasks.groups(rows)]
    names = {entry.name for entry in plain}
    return plain + [group for group in tasks.task_groups_without_average() if set(group.members) <= names]


def _is_plain(row: TaskRow) -> bool:
    benchmark = benchmark_registry.benchmark(row.benchmark)
    variant = row.variant or row.setting
    return not (variant or benchmark.generates or benchmark.synthetic or judge_registry.judge(row.judge).pack is None)


def _yaml(config: Mapping[str, Any]) -> str:
    return yaml.safe_dump(config, sort_keys=False, default_flow_style=None, width=1000)


def _readme(listed_tasks: Sequence[Task]) -> str:
    by_benchmark: dict[str, list[Task]] = {}
    for task in listed_tasks:
        by_benchmark.setdefault(task.benchmark, []).append(task)
    return "\n".join(
        [
            "# Tasks",
            "",
            "`tasks.yaml` is the table of all tasks, and the one file here that you edit.",
            "`make tasks` writes the other files from it: the plain tasks of each judge on real ratings.",
            "lmms-eval finds every task of the table without a file.",
            "You need files for `lmms-eval tasks list --include-path`, and to read or copy a task; "
            "`vieval tasks FILTER --write FOLDER` writes any of them.",
            *(
                line
                for name, part in by_benchmark.items()
                for line in _section(benchmark_registry.benchmark(name), part)
            ),
            "",
        ]
    )


def _section(benchmark: Benchmark, tasks_of_benchmark: Sequence[Task]) -> list[str]:
    """The lines of the README on a benchmark."""
    settings = dict.fromkeys((task.judge, _setting(task)) for task in tasks_of_benchmark)
    rows = [
        (judge, setting, [t for t in tasks_of_benchmark if (t.judge, _setting(t)) == (judge, setting)])
        for judge, setting in settings
    ]
    return [
        "",
        f"## {benchmark.title or benchmark.name}",
        "",
        *([benchmark.note, ""] if benchmark.note else []),
        f"- Source: {benchmark.source}",
        f"- Licence: {benchmark.licence}",
        f"- Its data {'may' if benchmark.trainable else 'may not'} train a model.",
        f"- Parts: {', '.join(benchmark.parts)}",
        "",
        "| judge | setting | tasks |",
        "|---|---|---|",
        *(f"| {judge} | {setting} | {_brace_expression(tasks_of_row)} |" for judge, setting, tasks_of_row in rows),
    ]


def _setting(task: Task) -> str:
    return task.setting or "plain"


def _brace_expression(tasks_of_row: Sequence[Task]) -> str:
    """The names of a row's tasks, which end in their parts, as a shell would have them."""
    if len(tasks_of_row) == 1:
        return f"`{tasks_of_row[0].name}`"
    stem = tasks_of_row[0].name.removesuffix(tasks_of_row[0].part)
    return f"`{stem}{{{','.join(task.part for task in tasks_of_row)}}}`"


def write_plain(folder: Path) -> None:
    """Write the files of the plain tasks, and remove task files that are none of them."""
    texts = files(plain_tasks())
    for path in folder.glob("*/*.yaml"):
        if path.relative_to(folder).as_posix() not in texts:
            path.unlink()
    write(folder, texts)


if __name__ == "__main__":
    write_plain(tasks.FOLDER)
    print(f"wrote {tasks.FOLDER}")
