"""Structure that T2I-Eval takes from a prompt: entities with attributes, relations, and questions
of three kinds; and its rules.

Source: Tu et al., Automatic Evaluation for Text-to-Image Generation (2024), the extraction step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from vieval_plugin.judges.protocol import Path

Kind: TypeAlias = Literal["appearance", "intrinsic", "relationship"]

KINDS: tuple[Kind, ...] = ("appearance", "intrinsic", "relationship")
EXISTENCE = "existence"
QUANTITY = "quantity"
_QUANTITIES = (QUANTITY, "number", "count")
_POSITIONS = ("position", "location", "place")


@dataclass(frozen=True)
class Attribute:
    """Intrinsic attribute of an entity: existence, quantity, colour, size, material, ... (never
    its position).
    """

    name: str
    value: str


@dataclass(frozen=True)
class Entity:
    """Thing that the prompt names."""

    name: str
    attributes: tuple[Attribute, ...] = ()
    #: Look of it in the image, where that was asked for.
    caption: str = ""


@dataclass(frozen=True)
class Relation:
    """Relation between entities in the prompt: an action, a position, a comparison."""

    entities: tuple[str, ...]
    #: The relation in words.
    value: str


@dataclass(frozen=True)
class Question:
    """Question about the image."""

    #: Dimension that it is about.
    kind: Kind
    #: The question.
    text: str
    #: Names of the entities that it is about.
    entities: tuple[str, ...] = ()
    #: Name of the attribute that it is about, where that is known.
    attribute: str = ""


@dataclass(frozen=True)
class Extraction:
    """Result of the extraction step."""

    entities: tuple[Entity, ...]
    #: Relations between them.
    relations: tuple[Relation, ...] = ()
    #: Questions on both and on the looks.
    questions: tuple[Question, ...] = ()

    def questions_of(self, kind: Kind) -> tuple[Question, ...]:
        """The questions of one kind, in order."""
        return tuple(question for question in self.questions if question.kind == kind)


def violations(extraction: Extraction) -> tuple[str, ...]:
    """Rules of a structure that are broken, one entry each time.

    >>> cat = Entity("cat", (Attribute("existence", "yes"), Attribute("quantity", "one")))
    >>> violations(Extraction((cat,), (Relation(("cat", "mat"), "on"),)))[1]
    'entity without an appearance question'
    """
    broken = []
    entity_names = {folded(entity.name) for entity in extraction.entities}
    for entity in extraction.entities:
        names = [folded(attribute.name) for attribute in entity.attributes]
        if not any(EXISTENCE in name for name in names):
            broken.append("entity without existence")
        if not any(name in _QUANTITIES for name in names):
            broken.append("entity without quantity")
        positions = [name for name in names if name in _POSITIONS]
        broken += ["position as an attribute"] * len(positions)
        if len(_questions_about(extraction, "intrinsic", entity.name)) != len(names):
            broken.append("attributes and questions differ in number")
        if not _questions_about(extraction, "appearance", entity.name):
            broken.append("entity without an appearance question")
    for relation in extraction.relations:
        if not entity_names.issuperset(map(folded, relation.entities)):
            broken.append("relation with an unknown entity")
    if len(extraction.questions_of("relationship")) != len(extraction.relations):
        broken.append("relations and questions differ in number")
    return tuple(broken)


def _questions_about(extraction: Extraction, kind: Kind, entity: str) -> list[Question]:
    name = folded(entity)
    return [
        question
        for question in extraction.questions_of(kind)
        if name in map(folded, question.entities)
    ]


def folded(name: str) -> str:
    """Normalize words for comparison: lower case, single spaces."""
    return " ".join(name.lower().split())


def structure_text(extraction: Extraction, questions: bool = False) -> str:
    """The structure in the published layout (Markdown), with the captions there are and, if
    asked, the questions.
    """
    lines = ["# Structure Information", "## Intrinsic Attributes"]
    for entity in extraction.entities:
        lines.append(f"### {entity.name}")
        lines += [f"- {entry.name}: {entry.value}" for entry in entity.attributes]
    lines.append("## Relationship Attributes")
    for number, relation in enumerate(extraction.relations, start=1):
        lines += [
            f"### Relation {number}",
            f"- entities involved: {', '.join(relation.entities)}",
            f"- value: {relation.value}",
        ]
    if questions:
        lines.append("# Questions")
        for kind in KINDS:
            lines.append(f"## {TITLES[kind]} Questions")
            for question in extraction.questions_of(kind):
                lines += _question_lines(question)
    if any(entity.caption for entity in extraction.entities):
        lines.append("# Image Caption")
        for entity in extraction.entities:
            lines += [f"## {entity.name}", f"- caption: {entity.caption}"]
    return "\n".join(lines)


def _question_lines(question: Question) -> list[str]:
    heading = ", ".join(question.entities) or "Image"
    return [f"### {heading}", f"- question: {question.text}"]


TITLES: dict[Kind, str] = {
    "appearance": "Appearance Quality",
    "intrinsic": "Intrinsic Attribute Consistency",
    "relationship": "Relationship Attribute Consistency",
}


@dataclass(frozen=True)
class Fields:
    """Fields of a reply to one question: only what was asked for is there."""

    answer: str = ""
    explanation: str = ""
    score: float | None = None


NOTHING = Fields()


@dataclass(frozen=True)
class JudgedQuestion:
    """Question and its reply."""

    #: Place in the trace, such as `("intrinsic", "2")`.
    path: Path
    question: Question
    reply: Fields


@dataclass(frozen=True)
class Result:
    """Result of both modes."""

    #: Questions with their replies.
    judged: tuple[JudgedQuestion, ...] = ()
    #: Summary of each dimension.
    dimensions: Mapping[Kind, Fields] = field(default_factory=dict)
    #: Summary of all.
    overall: Fields = NOTHING


def path_of(extraction: Extraction) -> list[tuple[Path, Question]]:
    """Every question with its path: its kind, and its number among those of the kind."""
    counts = Counter[str]()
    paths: list[tuple[Path, Question]] = []
    for question in extraction.questions:
        kind = question.kind
        counts[kind] += 1
        paths.append(((kind, str(counts[kind])), question))
    return paths


def results_text(judged: Iterable[JudgedQuestion]) -> str:
    """Questions with their answers, explanations and scores, in the published layout; what is
    not known is left out.
    """
    blocks = []
    for judged_question in judged:
        reply = judged_question.reply
        lines = _question_lines(judged_question.question)
        if reply.answer:
            lines.append(f"- answer: {reply.answer}")
        if reply.explanation:
            lines.append(f"- explanation: {reply.explanation}")
        if not reply.answer and not reply.explanation:
            lines.append("- not answered")
        if reply.score is not None:
            lines.append(f"- score: {reply.score:g}")
        blocks.append("\n".join(lines))
    return "\n".join(blocks)


def summaries_text(dimensions: Mapping[Kind, Fields]) -> str:
    """The dimensions' summaries and scores, in the published layout."""
    blocks = []
    for kind, summary in dimensions.items():
        lines = [f"### {TITLES[kind]} Summary"]
        lines.append(f"- explanation: {summary.explanation or 'none'}")
        if summary.score is not None:
            lines.append(f"- score: {summary.score:g}")
        blocks.append("\n".join(lines))
    return "\n".join(blocks)
