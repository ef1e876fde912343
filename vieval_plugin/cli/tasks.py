"""`vieval tasks`: the tasks, and whether their data is there."""

from __future__ import annotations

import argparse
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from vieval_plugin.tasks import Task

    Commands = _SubParsersAction[argparse.ArgumentParser]


def add(commands: Commands) -> None:
    parser = commands.add_parser("tasks", help="list the tasks, and whether their data is there")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin import config, tasks
    from vieval_plugin.harmless import say
    from vieval_plugin.text_table import text_table

    groups, singles = tasks.groups(), tasks.tasks()
    say(f"data folder: {config.current().data_folder()}")
    told = {group.name: f"group of {len(tasks.leaves(group.name, groups))} tasks" for group in groups}
    told |= {task.name: data_of(task) for task in singles}
    say(*text_table(sorted(told.items())))
    return 0


def data_of(task: Task) -> str:
    """Whether the data of a task is there, in words."""
    return _data(task.benchmark, task.part)


@cache
def _data(name: str, part: str) -> str:
    from vieval_plugin import config, registry
    from vieval_plugin.errors import VievalError

    benchmark = registry.benchmark(name)
    if benchmark.prepare is None:
        return "nothing to prepare"
    root = config.current().data_folder()
    missing = benchmark.missing(root, part)
    if not missing:
        return f"{name}: ready"
    try:
        benchmark.load(root, part)
    except VievalError:
        return f"{name}: not there ({missing[0]})"
    return f"{name}: ratings ready, for live judging run `vieval prepare {name} --part {part}`"
