"""Names of our tasks in the host: those of the one table, a group being one dataset, and how
papers spell them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks import tasks
from vieval_plugin.benchmarks.tasks import Task
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.suggestions import did_you_mean


@cache
def datasets() -> Mapping[str, tuple[Task, ...]]:
    """The tasks of each dataset by its name: a task alone, or all of a group that are averaged;
    then their other names.
    """
    # this host judges images; lmms-eval alone generates them
    singles = {
        task.name: task
        for task in tasks.tasks()
        if not benchmark_registry.benchmark(task.benchmark).generates
    }
    groups = tasks.groups()
    by_name = {}
    for group in groups:
        leaves = tasks.leaves(group.name, groups)
        if group.averaged and set(leaves) <= singles.keys():
            by_name[group.name] = tuple(singles[name] for name in leaves)
    by_name |= {name: (task,) for name, task in singles.items()}
    spelled = {_spelled(name, members[0]): members for name, members in by_name.items()}
    return {**by_name, **spelled}


def tasks_of(dataset: str) -> tuple[Task, ...]:
    """The tasks of a dataset; VievalError with the nearest name where it is none of ours."""
    if dataset not in datasets():
        suggestion = did_you_mean(dataset, datasets())
        raise VievalError(
            f"unknown dataset {dataset!r}{suggestion} `vieval vlmevalkit --list` lists all"
        )
    return datasets()[dataset]


def is_like_ours(dataset: str) -> bool:
    """Return whether a name begins as ours do: with a benchmark, in whatever letters."""
    name = dataset.lower().removeprefix("variant_")
    for benchmark in benchmark_registry.benchmarks().values():
        for known in filter(None, (benchmark.name, benchmark.title)):
            if name.startswith(f"{known.lower()}_"):
                return True
    return False


def _spelled(name: str, task: Task) -> str:
    """A name with benchmark and judge as their papers write them."""
    benchmark = benchmark_registry.benchmark(task.benchmark)
    # a title that users write may be no name of a file
    if not benchmark.title or benchmark.file:
        return name
    plain = f"{task.benchmark}_{task.judge}"
    spec = judge_registry.judge(task.judge)
    judge = spec.name if spec.file else spec.title.replace(" ", "")
    return name.replace(
        plain,
        f"{benchmark.title}_{judge}",
        1,
    )
