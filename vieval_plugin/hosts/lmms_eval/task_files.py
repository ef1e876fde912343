"""Configurations of our tasks as lmms-eval reads them: in memory for its index, and as YAML files
for who reads files.

`python -m vieval_plugin.hosts.lmms_eval.task_files` (`make tasks`) writes the files of
`task_configs/` from the table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import yaml

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks import tasks
from vieval_plugin.benchmarks.tasks import Task, TaskGroup, TaskRow
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.media.files import write_whole
from vieval_plugin.text.yaml_json import JsonObject

INCLUDES = ("judged.inc", "generated.inc", "group.inc")


def configuration(entry: Task | TaskGroup) -> JsonObject:
    """The host's configuration of a task or group, with what all of them share as an `include`.

    >>> configuration(tasks.TaskGroup("mine", ("mine_tig", "mine_tie"), "mine", averaged=False))
    {'group': 'mine', 'task': ['mine_tig', 'mine_tie']}
    """
    if isinstance(entry, TaskGroup):
        include = {"include": "../group.inc"} if entry.averaged else {}
        return {
            **include,
            "group": entry.name,
            "task": list(entry.members),
        }
    include_name = (
        "generated"
        if benchmark_registry.benchmark(entry.benchmark).generates
        else "judged"
    )
    metadata = {
        "version": 1,
        "benchmark": entry.benchmark,
        "part": entry.part,
        "judge": entry.judge,
    }
    metadata |= {"setting": entry.setting} if entry.setting else {}
    return {
        "include": f"../{include_name}.inc",
        "task": entry.name,
        "metadata": metadata,
    }


def files(entries: Collection[Task | TaskGroup]) -> dict[str, str]:
    """The text of each task file by its path below a folder: one folder per benchmark,
    and the files that they include.
    """
    texts = {
        f"{entry.benchmark}/{entry.name}.yaml": yaml.safe_dump(
            configuration(entry), sort_keys=False, default_flow_style=None, width=1000
        )
        for entry in entries
    }
    return texts | {
        name: (tasks.FOLDER / name).read_text(encoding="utf-8") for name in INCLUDES
    }


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write task files below a folder, each whole or not at all."""
    for name, text in texts.items():
        write_whole(folder / name, [text])


def plain_tasks() -> list[Task | TaskGroup]:
    """The tasks that have files in `task_configs/`: plain settings of judges that ask a model,
    on real ratings.
    """
    rows = [row for row in tasks.table() if _is_plain(row)]
    plain: list[Task | TaskGroup] = [*tasks.tasks(rows), *tasks.groups(rows)]
    names = {entry.name for entry in plain}
    return plain + [
        group
        for group in tasks.task_groups_without_average()
        if set(group.members) <= names
    ]


def _is_plain(row: TaskRow) -> bool:
    benchmark = benchmark_registry.benchmark(row.benchmark)
    return not (
        row.variant
        or row.setting
        or benchmark.generates
        or benchmark.synthetic
        or judge_registry.judge(row.judge).pack is None
    )


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
