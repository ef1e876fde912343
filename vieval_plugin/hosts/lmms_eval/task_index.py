"""Makes lmms-eval find our tasks without a flag, and run each once when a wildcard matches groups
and their members.

What the run's model cannot answer is refused where it is named, and else left out.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks import tasks
from vieval_plugin.benchmarks.tasks import Task, TaskGroup
from vieval_plugin.hosts.lmms_eval import answerable, model_identity, tables, task_files
from vieval_plugin.hosts.shutdown import print_lines, vieval_errors
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.suggestions import nearest
from vieval_plugin.text.yaml_json import JsonObject

#: Likeness that a name must have to one of ours to be taken for it, by `difflib`; hosts have
#: thousands of others.
_ALIKE = 0.8


@cache
def entries() -> Mapping[str, Task | TaskGroup]:
    """Our tasks and groups by name, with those that other packages bring."""
    return tasks.entries()


def configuration(name: str) -> JsonObject:
    """The host's configuration of one of our tasks or groups, with its include resolved."""
    from lmms_eval.utils import load_yaml_config

    config = task_files.configuration(entries()[name])
    if "include" in config:
        config["include"] = str(tasks.FOLDER / Path(config["include"]).name)
    return dict(load_yaml_config(yaml_config=config, yaml_dir=str(tasks.FOLDER)))


def install() -> None:
    """Extend lmms-eval's TaskManager; there is no entry point for tasks. Doing it twice changes
    nothing.
    """
    from lmms_eval.tasks import TaskManager

    if getattr(TaskManager, "vieval_installed", False):
        return
    initialize = TaskManager.initialize_tasks
    match = TaskManager.match_tasks
    load = TaskManager.load_task_or_group
    get_config = TaskManager._get_config

    def initialize_tasks(
        self: Any, include_path: Any = None, include_defaults: bool = True
    ) -> Any:
        ours = _index()
        host_tasks = initialize(self, include_path, include_defaults)
        clashes = sorted(ours.keys() & host_tasks.keys())
        if clashes:
            print_lines(
                "these tasks replace VIEval's tasks of the same name: "
                f"{', '.join(clashes)}; rename them to keep both"
            )
        return {**ours, **host_tasks}

    def _get_config(self: Any, name: str) -> Any:
        indexed = (
            self.task_index.get(name, {}).get("yaml_path") == -1 and name in entries()
        )
        return configuration(name) if indexed else get_config(self, name)

    @vieval_errors
    def match_tasks(self: Any, task_list: list[str]) -> list[str]:
        for name in task_list:
            _require_task(name, self.all_tasks)
        exact_names = [name for name in task_list if name in self.task_index]
        matched = outermost(match(self, task_list), self.task_index)
        self.vieval_loose = set(matched) - (
            set(exact_names) - answerable.task_group_names_without_average()
        )
        if self.model_name is not None:
            # a model that takes minutes to load is not made for what it cannot be given
            by_model = answerable.make_check(self.model_name, loaded=False)
            answerable.require(exact_names, by_model)
            if self.vieval_loose.issuperset(matched):
                left_out = answerable.or_unprepared(by_model, self.model_name)
                answerable.answerable(matched, lambda _: left_out, quiet=True)
        return matched

    @vieval_errors
    def load_task_or_group(
        self: Any, task_list: Any = None, *arguments: Any, **options: Any
    ) -> Any:
        names = [task_list] if isinstance(task_list, str) else list(task_list or [])
        tables.install()
        model_identity.tell_tasks()
        if self.model_name is None:
            return load(self, names, *arguments, **options)
        loose: set[str] = getattr(self, "vieval_loose", set())
        by_model = answerable.make_check(self.model_name, loaded=True)
        by_name = answerable.check_of_named_tasks(by_model)
        answerable.require([name for name in names if name not in loose], by_name)
        left_out = answerable.or_unprepared(by_model, self.model_name)
        runnable = answerable.answerable(
            names, lambda name: left_out if name in loose else by_name
        )
        return load(self, runnable, *arguments, **options)

    TaskManager.initialize_tasks = initialize_tasks
    TaskManager._get_config = _get_config
    TaskManager.match_tasks = match_tasks
    TaskManager.load_task_or_group = load_task_or_group
    TaskManager.vieval_installed = True


def outermost(names: list[str], index: JsonObject) -> list[str]:
    """The matched names without those that a matched group of ours holds, directly or through a
    group in it.
    """
    inner: set[str] = set()
    for name in names:
        if name not in inner:
            inner |= members(name, index)
    return [name for name in names if name not in inner]


def members(name: str, index: JsonObject) -> set[str]:
    """Tasks and groups below one of our groups; none for a task or for a group that is not ours."""
    entry = entries().get(name)
    if not isinstance(entry, TaskGroup) or index[name]["type"] != "group":
        return set()
    return set(entry.members).union(*(members(child, index) for child in entry.members))


def _index() -> dict[str, JsonObject]:
    """The host's index of our tasks and groups, which have no file."""
    group: JsonObject = {"type": "group", "task": -1}
    return {
        name: {
            **(group if isinstance(entry, TaskGroup) else {"type": "python_task"}),
            "yaml_path": -1,
        }
        for name, entry in entries().items()
    }


def _require_task(name: str, all_names: list[str]) -> None:
    """VievalError, with the nearest name, for a name that is no task's and is nearest to one of
    ours.
    """
    if (
        name in all_names
        or any(wildcard in name for wildcard in "*?[")
        or os.path.exists(name)
    ):
        return
    ours = set(entries())
    begins_like_ours = name.removeprefix("variant_").startswith(
        tuple(benchmark_registry.benchmarks())
    )
    suggestion = nearest(name, ours if begins_like_ours else all_names)
    is_alike = difflib.SequenceMatcher(None, name, suggestion).ratio() >= _ALIKE
    if suggestion in ours and (begins_like_ours or is_alike):
        raise VievalError(
            f"unknown task {name!r}; did you mean {suggestion}? `vieval tasks '*'` lists all"
        )
