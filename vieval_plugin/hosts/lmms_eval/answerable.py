"""Tasks that a run's model can answer, and whose data is there.

Others are left out of a wildcard in one line, and refused where they are named.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from vieval_plugin import config
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks import tasks
from vieval_plugin.benchmarks.tasks import Task
from vieval_plugin.hosts.shutdown import print_lines
from vieval_plugin.hosts.task_data import samples_of
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.spec import missing_inputs_reason
from vieval_plugin.readers.absent_images import require_images
from vieval_plugin.text.errors import VievalError

WhyNot: TypeAlias = Callable[[Task], "Why | None"]
#: Our models by the name that the host knows each by: those of `models` only judge, those of
#: `generators` make images.
MODELS = {
    "vieval_replay": "models.VievalReplay",
    "vieval_scorer": "models.VievalScorer",
    "vieval_openai": "models.VievalOpenAI",
    "vieval_vllm": "models.VievalVLLM",
    "vieval_images": "generators.VievalImages",
    "vieval_image_api": "generators.VievalImageApi",
    "vieval_diffusers": "generators.VievalDiffusers",
    "vieval_transformers": "models.VievalTransformers",
}
_why_not_by_model_path: dict[str, WhyNot] = {}


@dataclass(frozen=True)
class Why:
    """Reason that a task cannot be answered."""

    #: Reason in words, for several such tasks.
    all: str
    #: Reason in a line of its own.
    line: str
    #: True where it can be run by name: a replay of other parts, in which all its samples are
    #: `missing`.
    as_missing: bool = False


def answering(model: Any, make_check: WhyNot) -> None:
    """Say what a model of ours, that of this run, can answer: hosts make the model before they
    load its tasks.
    """
    _why_not_by_model_path[_path_of(model)] = make_check


def make_check(model: Any, loaded: bool) -> WhyNot:
    """Make the check of tasks by the host's model, a name or an object; for a model of ours once
    it is `loaded`.
    """
    name = _name_of(model)
    path = _path_of(model)
    recorded = _why_not_by_model_path.get(path) if loaded else None

    def why(task: Task) -> Why | None:
        generates = benchmark_registry.benchmark(task.benchmark).generates
        if generates and path.startswith("models."):
            line = f"{task.name} requires a generator, but {name} is a judge"
            return Why("they require a generator", line)
        if not generates and path.startswith("generators."):
            line = f"{task.name} requires a judge, but {name} is a generator"
            return Why("they require a judge", line)
        if generates or (path == MODELS["vieval_replay"] and recorded is None):
            return None
        if recorded:
            return recorded(task)
        return _unanswered(task, path == MODELS["vieval_scorer"])

    return why


def _name_of(model: Any) -> str:
    return model if isinstance(model, str) else type(model).__name__


def _path_of(model: Any) -> str:
    """The module and class of a model of ours, which may be an object, a registered name or a
    class's; empty for others.
    """
    name = _name_of(model)
    if name in MODELS:
        return MODELS[name]
    paths = (path for path in MODELS.values() if path.endswith(f".{name}"))
    return next(paths, "")


def _unanswered(task: Task, is_scorer: bool) -> Why | None:
    spec = judge_registry.judge(task.judge)
    if spec.scored and not is_scorer:
        return Why(
            "their judges are networks, which require --model vieval_scorer",
            f"{task.name}: {task.judge} is a network; use --model vieval_scorer, or replay "
            "recorded values with --model vieval_replay --model_args logs=FOLDER",
        )
    if is_scorer and spec.pack is not None:
        return Why(
            "their judges ask a model, so they require another --model",
            f"{task.name}: {task.judge} asks a model; use --model vieval_openai",
        )
    return None


def check_of_named_tasks(check: WhyNot) -> WhyNot:
    """A check of tasks that are named, and not matched by a wildcard."""

    def named_task_reason(task: Task) -> Why | None:
        why = check(task)
        return why if why and not why.as_missing else None

    return named_task_reason


def require(names: Collection[str], check: WhyNot) -> None:
    """Raise VievalError for a named task or group with something in it that cannot be answered.

    Of a group that is only run together some of its members will do.
    """
    for name in names:
        whys = list(map(check, tasks_below(name)))
        unanswered = list(filter(None, whys))
        if unanswered and (
            name not in task_group_names_without_average()
            or len(unanswered) == len(whys)
        ):
            raise VievalError(unanswered[0].line)


def answerable(
    names: Sequence[str], check_of: Callable[[str], WhyNot], quiet: bool = False
) -> list[str]:
    """Select what can be run; of a group of which some can, these; the others are printed in one
    line, unless `quiet`.

    `check_of` says by name what can be said of its tasks. VievalError where nothing remains.
    """
    names_by_reason: dict[str, list[str]] = {}
    runnable = [
        entry
        for name in names
        for entry in _runnable(name, check_of(name), names_by_reason)
    ]
    reasons = "; ".join(
        f"{', '.join(unrunnable)} ({reason})"
        for reason, unrunnable in names_by_reason.items()
    )
    if reasons and not runnable:
        first_lines: dict[str, str] = {}
        for name in names:
            for why in filter(None, map(check_of(name), tasks_below(name))):
                first_lines.setdefault(why.all, why.line)
        remedies = "; ".join(first_lines.values())
        raise VievalError(f"cannot run these tasks: {reasons}. {remedies}")
    if reasons and not quiet and os.environ.get("RANK", "0") == "0":
        print_lines(f"skipped tasks: {reasons}")
    return runnable


def _runnable(
    name: str, check: WhyNot, names_by_reason: dict[str, list[str]]
) -> list[str]:
    members = tasks_below(name)
    whys = list(filter(None, map(check, members)))
    if not whys:
        return [name]
    if len(whys) == len(members):
        names_by_reason.setdefault(whys[0].all, []).append(name)
        return []
    group = next(group for group in tasks.groups() if group.name == name)
    return [
        entry
        for member in group.members
        for entry in _runnable(member, check, names_by_reason)
    ]


def task_group_names_without_average() -> frozenset[str]:
    """The groups that are only run together, and not averaged."""
    return frozenset(group.name for group in tasks.groups() if not group.averaged)


def tasks_below(name: str) -> list[Task]:
    """The task of ours that is called so, or those in a group of ours; none for anybody else's."""
    tasks_by_name = {task.name: task for task in tasks.tasks()}
    leaves = tasks.leaves(name, tasks.groups()) or [name]
    return [tasks_by_name[leaf] for leaf in leaves if leaf in tasks_by_name]


def or_unprepared(check: WhyNot, model: Any) -> WhyNot:
    """Make the same check, and that for data that does not exist, or cannot be read;
    each part is looked at once.

    Images need not be there for a model that only hands on recorded verdicts.
    """
    options = config.current()
    images = _path_of(model) != MODELS["vieval_replay"]

    @cache
    def samples_or_reason(benchmark: str, part: str) -> Sequence[Judged] | str:
        try:
            samples = samples_of(Task("", benchmark, part, "", ""), options)
            if images:
                require_images(samples)
        except VievalError as error:
            return str(error)
        return samples

    def why(task: Task) -> Why | None:
        reason = check(task)
        if reason:
            return reason
        line = samples = samples_or_reason(task.benchmark, task.part)
        if not isinstance(samples, str):
            line = _unaskable(task, samples) if images else ""
        advice = f"their data is missing; see `vieval tasks {task.benchmark}`"
        return Why(advice, f"{task.name}: {line}") if line else None

    return why


def _unaskable(task: Task, samples: Sequence[Judged]) -> str:
    """The reason that a judge can be asked about none of the samples, such as texts
    that are missing.
    """
    if benchmark_registry.benchmark(task.benchmark).generates:
        return ""
    spec = judge_registry.judge(task.judge)
    if not samples:
        return "no samples"
    if all(missing_inputs_reason(spec, sample) for sample in samples):
        return missing_inputs_reason(spec, samples[0])
    return ""
