"""Show a verdict as a readable tree: questions, images, answers and scores, step by
step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.contests import Judged, Votes, candidates_of
from vieval_plugin.judges.conversation import Exchange
from vieval_plugin.judges.protocol import Choice, Image, Path, Status, Step, ToolResult
from vieval_plugin.judges.required import missed_requirements
from vieval_plugin.judges.spec import JudgeSpec
from vieval_plugin.records import Record, output_file
from vieval_plugin.run.router import question_display
from vieval_plugin.text.yaml_json import read_json


@dataclass
class Node:
    """A step, or the steps below a path."""

    title: str
    #: Status of the step.
    status: Status | None = None
    scores: tuple[float, ...] = ()
    #: Its answer in lines.
    lines: tuple[str, ...] = ()
    question: str = ""
    question_images: tuple[Image, ...] = ()
    #: Image in a tool's answer.
    answer_image: Image | None = None
    #: Nodes below it.
    children: list[Node] = field(default_factory=list)
    #: Texts of the tree's sample, such as its prompt.
    texts: Mapping[str, str] = field(default_factory=dict)


def outline(
    record: Record,
    exchanges: Sequence[Exchange] = (),
    judged: Judged | None = None,
) -> Node:
    """Build the tree of a record by the paths of its steps, with questions and images
    from `exchanges` and texts from `judged`, if these are passed.
    """
    verdict = record.verdict
    source = record.provenance
    spec = judge_registry.judge_of_results(source.judge, source.options)
    titles = _titles(record, spec) if spec else {}
    file = output_file(record)
    name = str(record.id)
    if file:
        name = f"{name} ({file})"
    title = f"{name}: {_answer(record)}"
    root = Node(
        title,
        verdict.status,
        lines=tuple(_root_lines(record)),
    )
    if judged is not None:
        root.texts = candidates_of(judged)[0].texts
    nodes: dict[Path, Node] = {(): root}
    by_step = {
        (exchange.step.path, exchange.step.attempt): exchange for exchange in exchanges
    }
    for step in verdict.trace:
        parent = _node_at(nodes, step.path[:-1], titles)
        reminder = f" (reminder {step.attempt})" if step.attempt else ""
        exchange = by_step.get((step.path, step.attempt))
        node = _leaf(
            step,
            f"{step.path[-1]}{reminder}",
            exchange,
        )
        parent.children.append(node)
        nodes.setdefault(step.path, node)
    return root


def _root_lines(record: Record) -> Iterator[str]:
    source = record.provenance
    judge = " ".join((source.judge, *source.settings))
    # a judge that asks no model has its own name there
    backbone = source.backbone if source.backbone != source.judge else ""
    yield " by ".join(filter(None, (judge, backbone)))
    if record.votes:
        yield from _voted(record)
    for aspect, values in record.ratings.items():
        ratings = ", ".join(f"{value:g}" for value in values)
        yield f"human {aspect}: {ratings}"
    yield from missed_requirements(record.verdict)
    for finding in record.verdict.findings:
        yield f"finding: {finding}"


def _answer(record: Record) -> str:
    """Scores of a sample; for a contest, the judge's votes or the candidates' scores."""
    choice = record.verdict.choice
    if choice is None:
        return _scores_text(record.verdict.scores)
    votes = dict.fromkeys(filter(None, choice.votes.values()))
    if votes:
        return f"vote {' and '.join(votes)}"
    return " against ".join(map(_scores_text, choice.scores)) or "no vote"


def _scores_text(scores: Mapping[str, float]) -> str:
    return (
        ", ".join(f"{aspect} {value:.3f}" for aspect, value in scores.items())
        or "no scores"
    )


def _voted(record: Record) -> Iterator[str]:
    """Yield lines on the votes of the judge and of people on a contest."""
    choice = record.verdict.choice or Choice()
    votes = record.votes or Votes("")
    names = (
        f"{number} {candidate.image_model}"
        for number, candidate in enumerate(record.candidates, start=1)
    )
    yield f"candidates: {', '.join(names)}"
    for number, scores in enumerate(choice.scores, start=1):
        yield f"{number}: {_scores_text(scores)}"
    for order, vote in choice.votes.items():
        if vote:
            yield f"vote, {order}: {vote}"
    for order, value in choice.preferences.items():
        yield f"preference for 1, {order}: {value:.4g}"
    if not (choice.scores or choice.votes or choice.preferences):
        yield "no vote"
    if votes.vote:
        yield f"people: {votes.vote}"
    if any(votes.annotators):
        annotators = (vote or "-" for vote in votes.annotators)
        yield f"annotators: {', '.join(annotators)}"


def _titles(record: Record, judge: JudgeSpec) -> Mapping[Path, str]:
    """Titles of paths; those of a candidate are below its number."""
    if record.votes is None or judge.rates == "contest":
        return judge.titles(record.verdict.trace)
    titles: dict[Path, str] = {}
    for number, candidate in enumerate(record.candidates, start=1):
        name = str(number)
        steps = [
            replace(step, path=step.path[1:])
            for step in record.verdict.trace
            if step.path[0] == name
        ]
        titles[(name,)] = candidate.image_model
        for path, title in judge.titles(steps).items():
            titles[name, *path] = title
    return titles


def _node_at(
    nodes: dict[Path, Node],
    path: Path,
    titles: Mapping[Path, str],
) -> Node:
    if path not in nodes:
        title = titles.get(path, "")
        nodes[path] = Node(f"{path[-1]} {title}".rstrip())
        parent = _node_at(nodes, path[:-1], titles)
        parent.children.append(nodes[path])
    return nodes[path]


def _leaf(
    step: Step,
    name: str,
    exchange: Exchange | None,
) -> Node:
    lines = list(_answer_lines(step.answer))
    if step.reason and step.reason not in "\n".join(lines):
        lines.append(step.reason)
    scores = step.scores or step.bounds or ()
    node = Node(
        name,
        step.status,
        scores,
        tuple(lines),
    )
    if exchange:
        node.question, node.question_images = question_display(exchange.ask)
        if isinstance(exchange.reply, ToolResult):
            node.answer_image = exchange.reply.image
    return node


def _answer_lines(answer: str) -> Iterator[str]:
    try:
        document = read_json(answer)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        yield from answer.splitlines()
        return
    for key, value in document.items():
        is_text = isinstance(value, str)
        yield f"{key}: {value if is_text else json.dumps(value, ensure_ascii=False)}"


def text(node: Node, depth: int = 0) -> list[str]:
    """Render the tree as indented lines of text, without the questions."""
    indent = "  " * depth
    head = f"{indent}{node.title}"
    if node.status:
        head += f" [{node.status}]"
    if node.scores:
        head += f" -> {' '.join(f'{score:g}' for score in node.scores)}"
    lines = [head, *(f"{indent}    {line}" for line in node.lines)]
    for child in node.children:
        lines += text(child, depth + 1)
    return lines
