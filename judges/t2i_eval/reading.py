"""Replies -> extractions, texts and scores: JSON in the asked shape, or the published Markdown
layout.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from vieval_plugin.judges.json_repairs import number
from vieval_plugin.judges.parsing import Read, read_answer
from vieval_plugin.judges.protocol import Schema
from vieval_plugin.judges.stages import MISSING, read_as
from vieval_plugin.judges.t2i_eval.structure import (
    KINDS,
    Attribute,
    Entity,
    Extraction,
    Fields,
    Kind,
    Question,
    Relation,
)
from vieval_plugin.judges.wrapping import is_lead_in, remove_thinking

if TYPE_CHECKING:
    from markdown_it.token import Token

_SCALE = 10.0
_KEYS = ("question", "answer", "explanation", "score")
_HEADINGS = {
    *KINDS,
    *_KEYS,
    "overall",
    "summary",
    "evaluation",
    "quality",
    "consistency",
    "of",
    "the",
    "and",
}

_LONGEST = 60_000
_LONGEST_KEY = 3


@dataclass(frozen=True)
class Item:
    """Line of text under headings."""

    #: Headings, outermost first.
    headings: tuple[str, ...]
    #: Words before its first colon, lower case; empty without a colon.
    key: str
    #: The rest of it.
    value: str


def items(text: str) -> list[Item]:
    """The list items and lines of paragraphs of a Markdown text, in order; marks of emphasis are
    dropped.

    >>> items("# Answer\\n## cat\\n- **question**: Is it red?\\n- answer: no")[1]
    Item(headings=('Answer', 'cat'), key='answer', value='no')
    """
    return [_item(headings, line) for headings, line in _lines(text[:_LONGEST])]


def _lines(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    from markdown_it import MarkdownIt

    # A line of dashes is a divider in these replies, and an indented line an item: neither heading
    # nor code.
    parser = MarkdownIt("commonmark").disable(["lheading", "code"])
    stack: list[tuple[int, str]] = []
    level = 0
    for token in parser.parse(text):
        if token.type == "heading_open":
            level = int(token.tag[1])
        elif token.type == "fence":
            yield from _lines(token.content)
        elif token.type == "inline":
            content = _inline_text(token)
            if level:
                stack = [(depth, title) for depth, title in stack if depth < level]
                stack.append((level, content.strip(" :")))
                level = 0
                continue
            for line in filter(None, map(str.strip, content.split("\n"))):
                yield tuple(title for _, title in stack), line


def _inline_text(inline: Token) -> str:
    breaks = ("softbreak", "hardbreak")
    pieces = [
        "\n" if child.type in breaks else child.content
        for child in inline.children or []
    ]
    return "".join(pieces)


def _item(headings: tuple[str, ...], line: str) -> Item:
    key, colon, value = line.partition(":")
    # A question may have a colon of its own: a key is a word or two.
    if colon and len(key.split()) <= _LONGEST_KEY:
        return Item(headings, key.strip().lower(), value.strip())
    return Item(headings, "", line)


def read_extraction(text: str, schema: Schema | None) -> Read[Extraction]:
    """The extraction of a reply, in JSON of the schema or, without one, in Markdown; whatever
    rules it breaks.
    """

    def parse(text: str) -> tuple[Extraction, bool]:
        if schema:
            extraction = _read_json(read_answer(text, schema)[0])
        else:
            extraction = _read_markdown(items(remove_thinking(text)))
        parts = ("entities", "questions")
        missing = [name for name in parts if not getattr(extraction, name)]
        if missing:
            raise ValueError(f"{MISSING}: {' and '.join(missing)}")
        return extraction, True

    return read_as(text, parse)


def read_fields(text: str, schema: Schema, markdown: bool) -> Read[Fields]:
    """Read the fields of a schema: `score` a number from 0 to 10, anything else a text.

    From JSON or, with `markdown`, from items `name: value` or, where one field is asked, from the
    whole reply. There, a score stands among the layout's own items alone.
    """

    def parse(text: str) -> tuple[Fields, bool]:
        if markdown:
            values, exact = _markdown_fields(text, schema["required"])
        else:
            values, exact = read_answer(text, schema)
        return fields_of(values), exact

    read = read_as(text, parse)
    if read.value and read.value.score is not None:
        return replace(read, scores=(read.value.score,))
    return read


def fields_of(values: Mapping[str, Any]) -> Fields:
    """Values by name as fields."""
    explanation = values.get("explanation", "")
    return Fields(
        values.get("answer", ""),
        explanation,
        values.get("score"),
    )


def _only_values(
    body: str, lines: Sequence[Item], names: Sequence[str]
) -> dict[str, Any]:
    """The value of each name; ValueError where one has none or several."""
    keyed = _keyed(lines, names)
    if not keyed and len(names) == 1 and body:
        keyed = {names[0]: {body}}
    missing = [name for name in names if len(keyed.get(name, ())) != 1]
    if missing:
        raise ValueError(f"{MISSING}: {' and '.join(missing)}")
    return {name: value for name, [value] in keyed.items()}


def _markdown_fields(text: str, names: Sequence[str]) -> tuple[dict[str, Any], bool]:
    """Raise ValueError if a name has no value or several, or a score is none or stands
    beside what was not asked for.
    """
    body = remove_thinking(text).strip()
    lines = items(body)
    values = _only_values(body, lines, names)
    if "score" not in names:
        return values, True
    first = lines[0]
    has_other_keys = bool({line.key for line in lines} - {"", *_KEYS})
    ends_otherwise = lines[-1].key != "score" and len(lines) > 1
    score = number(values["score"], _SCALE)
    if score is None or not 0 <= score <= _SCALE:
        raise ValueError(f"score must be a number from 0 to {_SCALE:g}")
    for title in chain.from_iterable(line.headings for line in lines):
        if not _is_heading(title):
            raise ValueError(f"unknown heading {title[:40]!r}")
    begins_well = (
        first.key or number(first.value, _SCALE) == score or is_lead_in(first.value)
    )
    if has_other_keys or ends_otherwise or not begins_well:
        raise ValueError("unexpected text around the score")
    return {**values, "score": score}, "/" not in values["score"]


def _is_heading(title: str) -> bool:
    """Return whether a heading is one of the layout's: a dimension, a field, or what leads in to
    an answer.
    """
    title_words = re.findall(r"[^\W\d_]+", title.lower())
    return is_lead_in(title) or _HEADINGS.issuperset(title_words)


def _keyed(lines: Sequence[Item], names: Sequence[str]) -> dict[str, set[str]]:
    """The values of each name; lines without a key go on with the item before them."""
    entries = []
    for item in lines:
        if item.key:
            entries.append((item.key, item.value))
        elif entries:
            key, value = entries[-1]
            entries[-1] = (key, f"{value}\n{item.value}")
    by_name = {name: {text for key, text in entries if key == name} for name in names}
    return {name: values for name, values in by_name.items() if values}


def _read_json(document: Mapping[str, Any]) -> Extraction:
    entities = []
    questions = []
    for entity in document["entities"]:
        name = _text_of(entity["name"])
        attributes = []
        intrinsic = []
        for fields in entity["attributes"]:
            attribute = Attribute(_text_of(fields["name"]), _text_of(fields["value"]))
            attributes.append(attribute)
            text = _text_of(fields.get("question", ""))
            intrinsic.append(
                Question(
                    "intrinsic",
                    text,
                    (name,),
                    attribute.name,
                )
            )
        caption = _text_of(entity.get("caption", ""))
        entities.append(Entity(name, tuple(attributes), caption))
        appearance = _text_of(entity.get("appearance_question", ""))
        questions.append(Question("appearance", appearance, (name,)))
        questions += intrinsic
    relations = []
    for relation in document.get("relations", []):
        involved = tuple(map(_text_of, relation["entities"]))
        relations.append(Relation(involved, _text_of(relation["value"])))
        text = _text_of(relation.get("question", ""))
        questions.append(Question("relationship", text, involved))
    return Extraction(
        tuple(entity for entity in entities if entity.name),
        tuple(relations),
        _in_order([question for question in questions if question.text]),
    )


def _in_order(questions: Sequence[Question]) -> tuple[Question, ...]:
    """Questions by kind, in the order of the kinds."""
    return tuple(sorted(questions, key=lambda question: KINDS.index(question.kind)))


def _text_of(value: object) -> str:
    if not isinstance(value, (str, int, float)):
        raise TypeError
    return str(value).strip()


def _read_markdown(lines: Sequence[Item]) -> Extraction:
    attributes: dict[str, list[Attribute]] = {}
    relations: dict[str, dict[str, str]] = {}
    captions = {}
    questions: list[Question] = []
    for item in lines:
        titles = " / ".join(item.headings).lower()
        name = item.headings[-1] if item.headings else ""
        kind = next((kind for kind in KINDS if kind in titles), None)
        if "question" in titles:
            _add_question(questions, item, name, kind)
        elif "caption" in titles and not _names_kind(name):
            captions[name] = item.value
        elif kind == "intrinsic" and not _names_kind(name):
            name_and_value = (item.key, item.value) if item.key else (item.value, "")
            attributes.setdefault(name, []).append(Attribute(*name_and_value))
        elif kind == "relationship" and item.key:
            relations.setdefault(name, {})[item.key] = item.value
    entities = [
        Entity(name, tuple(entity_attributes), captions.get(name, ""))
        for name, entity_attributes in attributes.items()
    ]
    return Extraction(
        tuple(entities),
        tuple(map(_relation, relations.values())),
        _in_order(questions),
    )


def _add_question(
    questions: list[Question],
    item: Item,
    heading: str,
    kind: Kind | None,
) -> None:
    """Add a question, or put the entities of the last one."""
    if item.key in ("entities", "entities involved", "entity") and questions:
        questions[-1] = replace(questions[-1], entities=split_names(item.value))
    elif kind and item.key in ("question", ""):
        entities = split_names(heading) if kind == "relationship" else (heading,)
        if _names_kind(heading):
            entities = ()
        questions.append(Question(kind, item.value, entities))


def _relation(fields: Mapping[str, str]) -> Relation:
    involved = fields.get("entities involved", fields.get("entities", ""))
    return Relation(split_names(involved), fields.get("value", ""))


def _names_kind(title: str) -> bool:
    """Return whether a heading is one of the layout's own and no entity's."""
    labels = (
        "questions",
        "attributes",
        "image caption",
        "structure information",
    )
    return any(label in title.lower() for label in labels)


def split_names(text: str) -> tuple[str, ...]:
    """Names in a list with commas."""
    return tuple(filter(None, map(str.strip, text.split(","))))


def given_extraction(text: str) -> Extraction:
    """A benchmark's own extraction, as its loader puts it into a sample's annotations;
    ValueError if it is invalid.

    JSON with `structured_info` (the published layout) and `<kind>_questions`, a list of texts or of
    objects with `question` and `entity`.
    """
    document = json.loads(text)
    read = _read_markdown(items(str(document.get("structured_info", ""))))
    questions = tuple(
        _benchmark_question(kind, question)
        for kind in KINDS
        for question in document.get(f"{kind}_questions") or []
    )
    extraction = replace(read, questions=questions or read.questions)
    if not extraction.questions:
        raise ValueError("the extraction has no questions")
    return extraction


def _benchmark_question(kind: Kind, question: Any) -> Question:
    if isinstance(question, str):
        return Question(kind, question.strip())
    entity = question.get("entity") or ""
    names = split_names(entity) if kind == "relationship" else filter(None, [entity])
    return Question(
        kind,
        str(question["question"]).strip(),
        tuple(names),
    )
