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
    record: Record, exchanges: Sequence[Exchange] = (), judged: Judged | None = None
) -> Node:
    """Build the tree of a record by the paths of its steps, with questions and images
    from `exchanges` and texts from `judged`, if these are passed.
    """
    verdict = record.verdict
    source = record.provenance
    spec = judge_registry.judge_of_results(source.judge, source.options)
    titles = _titles(record, spec) if spec else {}
    lines = _root_lines(record)
    file = output_file(record)
    name = f"{record.id} ({file})" if file else str(record.id)
    title = f"{name}: {_answer(record)}"
    root = Node(title, verdict.status, lines=tuple(lines))
    if judged is not None:
        root.texts = candidates_of(judged)[0].texts
    nodes: dict[Path, Node] = {(): root}
    by_step = {
        (exchange.step.path, exchange.step.attempt): exchange for exchange in exchanges
    }
    for step in verdict.trace:
        parent = _node_at(nodes, step.path[:-1], titles)
        reminder = f" (reminder {step.attempt})" if step.attempt else ""
        name = step.path[-1] + (reminder)
        node = _leaf(step, name, by_step.get((step.path, step.attempt)))
        parent.children.append(node)
        nodes.setdefault(step.path, node)
    return root


def _root_lines(record: Record) -> list[str]:
    source = record.provenance
    judge = " ".join((source.judge, *source.settings))
    lines = [
        " by ".join(filter(None, (judge, source.backbone))),
    ]
    lines += _voted(record) if record.votes else []
    lines += [
        f"human {aspect}: {', '.join(f'{v:g}' for v in values)}"
        for aspect, values in record.ratings.items()
    ]
    lines += missed_requirements(record.verdict)
    lines += [f"finding: {finding}" for finding in record.verdict.findings]
    return lines


def _answer(record: Record) -> str:
    """Scores of a sample; for a contest, the judge's votes or the candidates' scores."""
    choice = record.verdict.choice
    if choice is None:
        return _scores_text(record.verdict.scores)
    given_votes = filter(None, choice.votes.values())
    votes = " and ".join(dict.fromkeys(given_votes))
    if votes:
        return f"vote {votes}"
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
    models = [candidate.image_model for candidate in record.candidates]
    yield (
        "candidates: "
        f"{', '.join((f'{n} {model}' for n, model in enumerate(models, start=1)))}"
    )
    yield from (
        f"{number}: {_scores_text(scores)}"
        for number, scores in enumerate(choice.scores, start=1)
    )
    yield from (
        f"vote, {order}: {vote}" for order, vote in choice.votes.items() if vote
    )
    yield from (
        f"preference for 1, {order}: {value:.4g}"
        for order, value in choice.preferences.items()
    )
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
        named_titles = judge.titles(steps).items()
        titles |= {(name, *path): title for path, title in named_titles}
    return titles


def _node_at(nodes: dict[Path, Node], path: Path, titles: Mapping[Path, str]) -> Node:
    if path not in nodes:
        title = f"{path[-1]} {titles[path]}" if path in titles else path[-1]
        nodes[path] = Node(title)
        parent = _node_at(nodes, path[:-1], titles)
        parent.children.append(nodes[path])
    return nodes[path]


def _leaf(step: Step, name: str, exchange: Exchange | None) -> Node:
    lines = list(_answer_lines(step.answer))
    if step.reason and step.reason not in "\n".join(lines):
        lines.append(step.reason)
    numbers = step.scores or step.bounds or ()
    node = Node(name, step.status, numbers, tuple(lines))
    if exchange is None:
        return node
    node.question, node.question_images = question_display(exchange.ask)
    if isinstance(exchange.reply, ToolResult):
        node.answer_image = exchange.reply.image
    return node


def _answer_lines(answer: str) -> Iterator[str]:
    """Yield the lines of an answer; for a JSON object, one line per value."""
    try:
        document = read_json(answer)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        yield from answer.splitlines()
        return
    for key, value in document.items():
        value_text = (
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        )
        yield f"{key}: {value_text}"


def text(node: Node, depth: int = 0) -> list[str]:
    """Render the tree as indented lines of text, without the questions."""
    indent = "  " * depth
    rounded = (f"{score:g}" for score in node.scores)
    numbers = " ".join(rounded)
    status = [f"[{node.status}]"] if node.status else []
    scores = [f"-> {numbers}"] if numbers else []
    head = [
        node.title,
        *status,
        *scores,
    ]
    indented = (f"{indent}    {line}" for line in node.lines)
    lines = [indent + " ".join(head), *indented]
    return [
        *lines,
        *(line for child in node.children for line in text(child, depth + 1)),
    ]
