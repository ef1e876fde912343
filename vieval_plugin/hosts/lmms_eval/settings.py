"""Settings that lmms-eval records in its results: each is applied to our tasks, refused in one line
or told to have no effect.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from vieval_plugin import config
from vieval_plugin.benchmarks.tasks import Task, entries
from vieval_plugin.hosts.shutdown import print_lines
from vieval_plugin.text.errors import VievalError, docs_url

_TASK_ARGUMENTS: Mapping[str, Any] = {"until": [], "do_sample": False}
_TEMPLATE = (
    "--apply_chat_template does not apply to VIEval's tasks, because the model or its server "
    "applies its own template to a judge's messages; remove it"
)
_LAUNCHER = (
    "--launcher_args does not apply to VIEval's tasks, whose judges ask `backbones.judge` of the "
    "options file; start that server yourself, and remove the option"
)
_SENT = frozenset({"temperature", "max_new_tokens"})
#: The generation arguments that the host's clients of servers send, by module.
_SENT_BY: Mapping[str, frozenset[str]] = {
    "lmms_eval.models.simple.openai": _SENT,
    "lmms_eval.models.chat.async_openai": _SENT,
    "lmms_eval.models.chat.openai": _SENT
    | {"top_p", "seed", "presence_penalty", "frequency_penalty", "n"},
}


def prepare_command(arguments: Any) -> None:
    """Read the tasks of a command as its user means them; VievalError for settings on which the
    host would end without a word of the reason.
    """
    if not isinstance(arguments.tasks, str):
        return
    names = [name.strip() for name in arguments.tasks.split(",")]
    arguments.tasks = ",".join(names)
    if not any(fnmatch.filter(entries(), name) for name in names):
        return
    if arguments.apply_chat_template:
        raise VievalError(_TEMPLATE)
    if arguments.launcher_args:
        raise VievalError(_LAUNCHER)


def check(model: Any, tasks: Sequence[Any], run_arguments: Mapping[str, Any]) -> None:
    """Refuse the settings of a run that would be recorded and have no effect on these tasks, and
    tell the others.

    `given` are the arguments of the host's `evaluate`.
    """
    if not tasks:
        return
    if run_arguments.get("apply_chat_template"):
        raise VievalError(_TEMPLATE)
    if run_arguments.get("system_instruction"):
        raise VievalError(
            "--system_instruction does not apply to VIEval's tasks, because instructions are part "
            "of a judge; remove it, or write your own judge; see "
            f"{docs_url('guides/extending.md')}"
        )
    if run_arguments.get("eval_server_launcher"):
        raise VievalError(_LAUNCHER)
    for task in tasks:
        _require_own_shots(task)
    _check_generation(model, tasks)
    lines = _cache_lines(run_arguments)
    lines += _limit_lines(tasks, run_arguments.get("limit"))
    lines += _command_lines(model, run_arguments.get("cli_args"))
    if model.rank == 0:
        print_lines(*lines)


def _require_own_shots(task: Any) -> None:
    """Raise VievalError for a number of examples that is not that of the task's setting."""
    shots = task.config.num_fewshot
    setting = f"{shots}shot"
    if not shots or task.setting == setting:
        return
    task_key = (task.benchmark.name, task.part, task.judge.name, setting)
    tasks = [entry for entry in entries().values() if isinstance(entry, Task)]
    key = attrgetter("benchmark", "part", "judge", "setting")
    names = [entry.name for entry in tasks if key(entry) == task_key]
    advice = f"remove it, because {task.benchmark.name} has no {setting} task"
    if names:
        advice = f"use --tasks {names[0]} instead"
    raise VievalError(
        f"--num_fewshot {shots} does not apply to {task.config.task}, because examples are a "
        f"setting of its judge; {advice}"
    )


def _check_generation(model: Any, tasks: Sequence[Any]) -> None:
    """Raise VievalError for generation arguments that the model does not take; a line for those of
    which that is not known.
    """
    arguments = set[str]()
    for task in tasks:
        for argument in task.config.generation_kwargs.items():
            if argument not in _TASK_ARGUMENTS.items():
                arguments.add(argument[0])
    if not arguments:
        return
    kind = type(model)
    is_known = hasattr(model, "generation_arguments") or kind.__module__ in _SENT_BY
    accepted = getattr(model, "generation_arguments", _SENT_BY.get(kind.__module__))
    argument_names = ", ".join(sorted(arguments))
    if not is_known:
        print_lines(
            f"--gen_kwargs: lmms-eval's {kind.__name__} may ignore some of {argument_names}"
        )
        return
    unused = arguments & {"do_sample"} if accepted is None else arguments - accepted
    if unused:
        raise VievalError(
            f"{kind.__name__} does not use --gen_kwargs {', '.join(sorted(unused))}; remove it, "
            "or use --model vieval_openai, which sends every field to its server"
        )


def _cache_lines(run_arguments: Mapping[str, Any]) -> list[str]:
    if run_arguments.get("response_cache") is None:
        return []
    path = config.current().store_path()
    store_line = (
        f"replies are cached in {path}" if path else "the cache is off (store.use)"
    )
    return [f"--use_cache has no effect on VIEval's tasks: {store_line}"]


def _limit_lines(tasks: Sequence[Any], limit: float | None) -> list[str]:
    sizes = [len(task.samples) for task in tasks]
    if limit is None or not 0 < limit < 1 or len(set(sizes)) == 1:
        return []
    return [
        f"--limit {limit}: lmms-eval takes this share of the first task, and the same "
        "number of samples of each other task; run tasks of different sizes separately"
    ]


def _command_lines(model: Any, arguments: Any) -> list[str]:
    """Lines on options of the command that are only recorded."""
    if arguments is None:
        return []
    unused = []
    if getattr(arguments, "cache_requests", None):
        unused.append("--cache_requests")
    if arguments.seed != [0, 1234, 1234, 1234]:
        unused.append("--seed (use the option statistics: {seed: N})")
    for name in getattr(model, "unused_arguments", ()):
        if getattr(arguments, name) not in (None, 1, "1"):
            unused.append(f"--{name}")
    return [f"no effect on VIEval's tasks: {', '.join(unused)}"] if unused else []
