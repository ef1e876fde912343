"""Image tools that a judge may call, found by looking through this folder: adding one is adding a
file.

A module of this folder (names with a leading underscore are helpers) defines ``TOOL = Tool(...)``.
A tool that a plan may name has `use`, which turns a sub-question's images into a `ToolOutcome`
without any I/O; what needs pixels is in `run`, which a backend calls for `UseTool` asks, with each
image as an array (height, width, 3) of RGB. A tool whose run needs a model, threads or a cache has
it in `backends/image_tools/` instead.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import pkgutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from vieval_plugin.judges.protocol import (
    Asking,
    Box,
    Failure,
    Image,
    Path,
    Reply,
    Status,
    Step,
    ToolResult,
    UseTool,
    failed_step,
)
from vieval_plugin.prompts.pack import Pack
from vieval_plugin.text.errors import VievalError


class ToolMissing(VievalError):
    """A tool cannot run on this machine at all: a package or its model is not there."""


@dataclass(frozen=True)
class Request:
    """Request of a sub-question to a tool."""

    #: Beginning of the paths of the tool's asks.
    path: Path
    #: Name of the sub-question.
    question: str
    #: Its own images by role, in its order.
    images: Mapping[str, Image]
    #: Phrases to look for.
    phrases: tuple[str, ...]
    #: Prompt pack.
    wording: Pack
    #: Area that the task was to change, for tools that use one.
    mask: Image | None = None
    #: The judge's departures from the published choices, by name.
    improvements: Collection[str] = ()
    #: Model of the grounding tool.
    detector: str = ""


@dataclass(frozen=True)
class ToolOutcome:
    """Outcome of a tool for a sub-question."""

    #: Images in place of its own, by role.
    images: Mapping[str, Image] = field(default_factory=dict)
    #: Text for the rating model.
    text: str = ""
    #: Steps for the trace.
    steps: tuple[Step, ...] = ()
    #: Failure, with which there is nothing to use but the steps.
    failure: Failure | None = None
    #: Text of each image by role, where the tool speaks of each by itself.
    image_texts: Mapping[str, str] = field(default_factory=dict)


Use: TypeAlias = Callable[[Request], Asking[ToolOutcome]]
ToolRun: TypeAlias = Callable[[Mapping[str, Any]], ToolResult]


@dataclass(frozen=True)
class Tool:
    """Image tool."""

    name: str
    #: Description for the planner.
    description: str = ""
    #: Cost for the planner.
    cost: str = ""
    #: Note to the rating model on what the tool did.
    note: str = ""
    #: Outcome for a sub-question's images; None for one that serves other tools and is never
    #: planned.
    use: Use | None = None
    #: Work on pixels; None for one that asks a model, or has its run in the backend of its name.
    run: ToolRun | None = None
    #: Packages that it imports.
    needs: tuple[str, ...] = ()


@cache
def registry() -> Mapping[str, Tool]:
    """Tools by name."""
    tools = {}
    for module_info in pkgutil.iter_modules(__path__):
        if not module_info.name.startswith("_"):
            module = importlib.import_module(f"{__name__}.{module_info.name}")
            tools[module.TOOL.name] = module.TOOL
    return tools


def planned() -> tuple[Tool, ...]:
    """The tools that a plan may name, in the order of their names."""
    by_name = sorted(registry().items())
    return tuple(tool for _, tool in by_name if tool.use)


def require(tools: Sequence[Tool], advice: str) -> None:
    """ToolMissing naming the first tool whose packages are not installed, and what to do about
    it.
    """
    for tool in tools:
        missing = []
        for package in tool.needs:
            if importlib.util.find_spec(package) is None:
                missing.append(package)
        if missing:
            raise ToolMissing(
                f"the tool {tool.name} requires {' and '.join(missing)}; {advice}"
            )


def use_tools(
    asks: Sequence[UseTool],
) -> Asking[tuple[list[ToolResult], tuple[Step, ...]]]:
    """Ask for tool runs at once: their results, and a step for each.

    A run that failed has an empty result; `failed` finds it among the steps.
    """
    if not asks:
        return [], ()
    replies = yield list(asks)
    results = [
        reply if isinstance(reply, ToolResult) else ToolResult() for reply in replies
    ]
    pairs = zip(asks, replies, strict=True)
    return results, tuple(_step(ask, reply) for ask, reply in pairs)


def failed(steps: Sequence[Step]) -> Failure | None:
    """The first failure among the steps of a tool."""
    for step in steps:
        if not step.status.usable:
            return Failure(step.status, step.reason)
    return None


def to_json(result: ToolResult) -> str:
    """A tool's result as a trace keeps it: boxes (left, top, right, bottom), text, and which model
    found them.

    Images are left out: they are made again from the boxes.
    """
    boxes = []
    for box in result.boxes:
        boxes.append([box.left, box.top, box.right, box.bottom])
    by = {"by": result.by} if result.by else {}
    return json.dumps(
        {
            "boxes": boxes,
            "text": result.text,
            **by,
        },
        ensure_ascii=False,
    )


def from_json(text: str) -> ToolResult:
    """The inverse of `to_json`."""
    document = json.loads(text)
    boxes = tuple(Box(*box) for box in document["boxes"])
    return ToolResult(boxes, document["text"], by=document.get("by", ""))


def _step(ask: UseTool, reply: Reply) -> Step:
    if not isinstance(reply, ToolResult):
        return failed_step(
            reply,
            ask.path,
            "a tool result",
            Status.TOOL_ERROR,
        )
    return Step(ask.path, Status.OK, answer=to_json(reply))
