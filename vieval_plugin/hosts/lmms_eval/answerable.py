"""Which tasks the model of a run can answer. Others are left out of a wildcard in one line, and refused where they are named."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from vieval_plugin import config, registry, tasks
from vieval_plugin.errors import VievalError
from vieval_plugin.harmless import say
from vieval_plugin.run.router import ASKS_A_MODEL
from vieval_plugin.tasks import Task


@dataclass(frozen=True)
class Why:
    """Why a task cannot be answered: `all` of several such tasks, `one` in a line of its own."""

    all: str
    one: str


WhyNot: TypeAlias = Callable[[Task], Why | None]

_REPLAY = ("vieval_replay", "VievalReplay")
_MEASURE, _SCORER = ("vieval_measure", "VievalMeasure"), ("vieval_scorer", "VievalScorer")
_recorded: list[WhyNot] = []


def replaying(why_not: WhyNot) -> None:
    """Say what the replay of this run can answer: hosts make the model before they load its tasks."""
    _recorded[:] = [why_not]


def why_not(model: Any, loaded: bool) -> WhyNot:
    """What can be said of tasks by the host's model, by its name or as an object; of a replay once it is `loaded`."""
    name = model if isinstance(model, str) else type(model).__name__
    if name in _REPLAY:
        return _recorded[0] if loaded and _recorded else lambda task: None
    return lambda task: _unanswered(task, name in (*_MEASURE, *_SCORER), name in _SCORER)


def _unanswered(task: Task, measures_only: bool, has_scorers: bool) -> Why | None:
    spec = registry.judge(task.judge)
    named = config.current().scorers.get(task.judge)
    if (spec.scored or (spec.by_scorer and named and named.model)) and not has_scorers:
        return Why(
            "their judges measure with a network, with --model vieval_scorer",
            f"{task.name}: {task.judge} measures with a network: run it with --model vieval_scorer, or replay recorded "
            "values with --model vieval_replay --model_args logs=FOLDER",
        )
    if measures_only and spec.pack is not None and not (spec.by_scorer and has_scorers):
        return Why("their judges ask a model, and this run only measures images", f"{ASKS_A_MODEL} ({task.name})")
    return None


def require(names: Collection[str], answered: WhyNot) -> None:
    """VievalError for a named task or group with something in it that cannot be answered.

    Of a group that is only run together some of its members will do.
    """
    together = {group.name for group in tasks.groups() if not group.averaged}
    for name in names:
        whys = [answered(task) for task in _below(name)]
        unanswered = [why for why in whys if why]
        if unanswered and (name not in together or len(unanswered) == len(whys)):
            raise VievalError(unanswered[0].one)


def answerable(names: Sequence[str], answered: WhyNot) -> list[str]:
    """Those that can be answered, of a group in which only some can be these; the others are told in one line.

    VievalError where nothing is left.
    """
    left: dict[str, list[str]] = {}
    kept = [one for name in names for one in _kept(name, answered, left)]
    told = "; ".join(f"{', '.join(some)} ({why})" for why, some in left.items())
    if left and not kept:
        raise VievalError(f"none of these tasks can be answered by this model: {told}")
    if left and os.environ.get("RANK", "0") == "0":
        say(f"vieval: left out: {told}", file=sys.stderr)
    return kept


def _kept(name: str, answered: WhyNot, left: dict[str, list[str]]) -> list[str]:
    below = _below(name)
    whys = [why for task in below if (why := answered(task))]
    if not whys:
        return [name]
    if len(whys) == len(below):
        left.setdefault(whys[0].all, []).append(name)
        return []
    members = next(group.members for group in tasks.groups() if group.name == name)
    return [one for member in members for one in _kept(member, answered, left)]


def _below(name: str) -> list[Task]:
    """The task of ours that is called so, or those in a group of ours; none for anybody else's."""
    known = {task.name: task for task in tasks.tasks()}
    return [known[leaf] for leaf in (tasks.leaves(name, tasks.groups()) or [name]) if leaf in known]
