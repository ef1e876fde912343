"""A verdict as a tree that a person can read: what was asked, shown, answered and scored, step by step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vieval_plugin.exchanges import Exchange
from vieval_plugin.judges import t2i_eval
from vieval_plugin.judges.protocol import Chat, Image, Likelihood, Status, Step, ToolResult, UseTool
from vieval_plugin.records import Record


@dataclass
class Node:
    """A step, or what several steps have in common; `shown` are the images of its question, `found` that of its answer."""

    title: str
    status: Status | None = None
    scores: tuple[float, ...] = ()
    lines: tuple[str, ...] = ()
    asked: str = ""
    shown: tuple[Image, ...] = ()
    found: Image | None = None
    children: list[Node] = field(default_factory=list)


def outline(record: Record, exchanges: Sequence[Exchange] = ()) -> Node:
    """The tree of a record, by the paths of its labels; with questions and images where its exchanges are known."""
    verdict, source = record.verdict, record.provenance
    titles: Mapping[str, str] = t2i_eval.titles(verdict.trace) if source.judge == "t2i_eval" else {}
    scores = [f"{aspect} {value:.4g}" for aspect, value in verdict.scores.items()]
    about = [f"{source.judge} {source.setting} by {source.backbone or 'nobody'}", ", ".join(scores) or "no scores"]
    about += [f"human {aspect}: {', '.join(f'{v:g}' for v in values)}" for aspect, values in record.ratings.items()]
    about += [f"finding: {finding}" for finding in verdict.findings]
    root = Node(str(record.id), verdict.status, lines=tuple(about))
    places = {"": root}
    by_step = {one.step.label: one for one in exchanges}
    for step in verdict.trace:
        path, _, name = step.label.rpartition("/")
        parent = _place(places, path, titles)
        node = _leaf(step, name, by_step.get(step.label))
        parent.children.append(node)
        places[step.label] = node
    return root


def _place(places: dict[str, Node], path: str, titles: Mapping[str, str]) -> Node:
    if path not in places:
        above, _, name = path.rpartition("/")
        title = f"{name} {titles[path]}" if path in titles else name
        places[path] = Node(title)
        _place(places, above, titles).children.append(places[path])
    return places[path]


def _leaf(step: Step, name: str, exchange: Exchange | None) -> Node:
    said = list(_said(step.answer))
    if step.reason and step.reason not in "\n".join(said):
        said.append(step.reason)
    node = Node(name, step.status, step.scores, tuple(said))
    if exchange is None:
        return node
    if isinstance(exchange.ask, (Chat, Likelihood)):
        parts = exchange.ask.messages[-1].parts
        node.asked = "\n".join(part for part in parts if isinstance(part, str))
        node.shown = tuple(part for part in parts if isinstance(part, Image))
    elif isinstance(exchange.ask, UseTool):
        node.shown = tuple(value for value in exchange.ask.arguments.values() if isinstance(value, Image))
    if isinstance(exchange.reply, ToolResult):
        node.found = exchange.reply.image
    return node


def _said(answer: str) -> Iterator[str]:
    """An answer in lines: of a JSON object a line for each of its values."""
    try:
        document = json.loads(answer)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        yield from answer.splitlines()
        return
    for key, value in document.items():
        yield f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"


def text(node: Node, depth: int = 0) -> str:
    """The tree as indented text, without the questions."""
    indent = "  " * depth
    numbers = " ".join(f"{score:g}" for score in node.scores)
    head = [node.title, *([f"[{node.status}]"] if node.status else []), *([f"-> {numbers}"] if numbers else [])]
    lines = [indent + " ".join(head), *(f"{indent}    {line}" for line in node.lines)]
    # a terminal must not be steered by what a model said
    lines = ["".join(c if c.isprintable() else " " for c in line) for line in lines]
    return "\n".join([*lines, *(text(child, depth + 1) for child in node.children)])
