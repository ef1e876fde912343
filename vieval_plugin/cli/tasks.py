"""`vieval tasks`: the tasks, and whether their data is there."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from vieval_plugin.tasks import Task

    Commands = _SubParsersAction[argparse.ArgumentParser]


def add(commands: Commands) -> None:
    parser = commands.add_parser(
        "tasks", help="list the tasks: what they need, what they cost, and whether their data is there"
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin import config, registry, tasks
    from vieval_plugin.harmless import say
    from vieval_plugin.text_table import text_table

    groups, singles = tasks.groups(), tasks.tasks()
    say(f"data folder: {config.current().data_folder()}")
    data = data_told()
    rows = [(group.name, f"group of {len(tasks.leaves(group.name, groups))} tasks", "", "", "") for group in groups]
    for task in singles:
        generates = registry.benchmark(task.benchmark).generates
        what = "generator" if generates else "judge"
        rows.append((task.name, what, _needs(task, generates), _calls(task), data(task)))
    say(*text_table([("task", "of a", "needs", "calls for an image", "data"), *sorted(rows)]))
    return 0


def _needs(task: Task, generates: bool) -> str:
    """What a run needs beside the data, in words."""
    from vieval_plugin import registry

    spec = registry.judge(task.judge)
    judged_by = "a scorer" if spec.scored else "a model that judges" if spec.pack else ""
    return " and ".join(filter(None, ["a model that makes images" if generates else "", judged_by])) or "nothing"


def _calls(task: Task) -> str:
    from vieval_plugin import config, registry

    spec = registry.judge(task.judge)
    return spec.calls(config.current().judges.of(spec), task.setting)


def data_told() -> Callable[[Task], str]:
    """What says in words whether the data of a task is there; it looks at each part once."""
    data = cache(_data)
    return lambda task: data(task.benchmark, task.part)


def _data(name: str, part: str) -> str:
    from vieval_plugin import config, registry
    from vieval_plugin.errors import VievalError

    benchmark, options = registry.benchmark(name), config.current()
    try:
        root = options.root_of(benchmark)
    except VievalError as error:
        return f"not there ({error})"
    missing = benchmark.missing(root, part)
    if not missing:
        return "nothing to prepare" if benchmark.prepare is None and benchmark.root == "data" else f"{name}: ready"
    if benchmark.generates:
        return f"{name}: not there ({missing[0]})"
    try:
        benchmark.load(root, part)
    except VievalError:
        return f"{name}: not there ({missing[0]})"
    return f"{name}: ratings ready, for live judging run `vieval prepare {name} --part {part}`"
