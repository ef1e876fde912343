"""Replies -> extractions, texts and scores: JSON in the asked shape, or the published Markdown layout.

Three known ways in which small models fail are told apart: refusing to extract, missing parts, endless repetition.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vieval_plugin.judges.parsing import ONE_ANSWER, json_value, parse_scores, without_thinking
from vieval_plugin.judges.protocol import Status
from vieval_plugin.judges.refusals import refuses
from vieval_plugin.judges.structured_chat import Read
from vieval_plugin.judges.t2i_eval.markdown import Item, items
from vieval_plugin.judges.t2i_eval.structure import KINDS, Attribute, Entity, Extraction, Kind, Question, Relation

REFUSED, MISSING, REPEATED = "refused to extract", "missing parts", "endless repetition"

_REPEATS, _SPAN, _LONGEST_PERIOD = 5, 120, 400
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True)
class Fields:
    """What a reply says of one question: only what was asked for is there."""

    answer: str = ""
    explanation: str = ""
    score: float | None = None


def repeats(text: str) -> bool:
    """Whether a text ends in the same words over and over: at least five times and for 120 characters.

    >>> repeats("It is a cat. " + "Its tail is red. " * 9)
    True
    """
    tail = text.rstrip()
    for period in range(1, min(_LONGEST_PERIOD, len(tail) // _REPEATS) + 1):
        span = max(_SPAN, _REPEATS * period)
        # the last turn may have been cut anywhere, which a comparison with itself moved by a period does not mind
        if span <= len(tail) and tail[-span + period :] == tail[-span:-period] and tail[-period:].strip():
            return True
    return False


def read_extraction(text: str) -> Read[Extraction]:
    """The extraction of a reply; usable with one entity and one question, whatever rules it breaks."""
    if repeats(text):
        return _unread(REPEATED)
    body = without_thinking(text)
    document = as_json(body)
    try:
        found = _from_json(document) if document is not None else _from_markdown(items(body))
    except (KeyError, TypeError, AttributeError):
        return _unread(f"{MISSING}: JSON of another shape")
    if not found.entities and refuses(body):
        return _unread(REFUSED)
    absent = [name for name, part in (("entities", found.entities), ("questions", found.questions)) if not part]
    if absent:
        return _unread(f"{MISSING}: {' and '.join(absent)}")
    return Read(Status.OK, found)


def read_fields(text: str, names: Sequence[str]) -> Read[Fields]:
    """What a reply says under each name: `score` a number from 0 to 10, anything else a text.

    A JSON object, items `name: value`, or, where one name is asked, the whole reply. A name with several values has none.
    """
    if repeats(text):
        return _unread(REPEATED)
    body = without_thinking(text).strip()
    document = as_json(body)
    if document is None and body.startswith("{"):
        return _unread(f"{MISSING}: not one JSON object, or cut off")
    if document is not None:
        return fields({name: str(document[name]) for name in names if document.get(name) not in (None, "")}, names)
    keyed = _keyed(items(body), names)
    if any(len(values) > 1 for values in keyed.values()):
        return _unread(ONE_ANSWER)
    said = {name: value for name, [value] in keyed.items()}
    return fields({names[0]: body} if len(names) == 1 and body and not said else said, names)


def fields(said: Mapping[str, str], names: Sequence[str]) -> Read[Fields]:
    """Texts by name as fields, the score read; unusable where one is absent or the score is none."""
    absent = [name for name in names if not said.get(name)]
    if absent:
        return _unread(f"{MISSING}: {' and '.join(absent)}")
    answer, explanation = (said[name] if name in names else "" for name in ("answer", "explanation"))
    read = Fields(answer, explanation)
    if "score" not in names:
        return Read(Status.OK, read)
    parsed = parse_scores(said["score"], count=1)
    if not parsed.status.usable:
        return Read(parsed.status, reason=parsed.reason)
    published = _NUMBER.fullmatch(said["score"].strip())
    return Read(Status.OK if published else parsed.status, replace(read, score=parsed.scores[0]), parsed.scores)


def _keyed(lines: Sequence[Item], names: Sequence[str]) -> dict[str, set[str]]:
    """The values of each name; lines without a key go on with the item before them."""
    entries: list[tuple[str, str]] = []
    for item in lines:
        if item.key:
            entries.append((item.key, item.value))
        elif entries:
            entries[-1] = (entries[-1][0], f"{entries[-1][1]}\n{item.value}")
    return {name: values for name in names if (values := {value for key, value in entries if key == name})}


def as_json(text: str) -> dict[str, Any] | None:
    """The JSON object in a reply; None where there is none."""
    document = json_value(text)
    return document if isinstance(document, dict) else None


def _unread(reason: str) -> Read[Any]:
    return Read(Status.PARSE_FAILURE, reason=reason)


def _from_json(document: Mapping[str, Any]) -> Extraction:
    entities, questions = [], []
    for entity in document["entities"]:
        name = _said(entity["name"])
        listed = [(_said(a["name"]), _said(a["value"]), _said(a.get("question", ""))) for a in entity["attributes"]]
        attributes = tuple(Attribute(attribute, value) for attribute, value, _ in listed)
        entities.append(Entity(name, attributes, _said(entity.get("caption", ""))))
        questions.append(Question("appearance", _said(entity.get("appearance_question", "")), (name,)))
        questions += [Question("intrinsic", asked, (name,), attribute) for attribute, _, asked in listed]
    relations = []
    for relation in document.get("relations", []):
        involved = tuple(map(_said, relation["entities"]))
        relations.append(Relation(involved, _said(relation["value"])))
        questions.append(Question("relationship", _said(relation.get("question", "")), involved))
    return Extraction(
        tuple(entity for entity in entities if entity.name),
        tuple(relations),
        tuple(q for kind in KINDS for q in questions if q.kind == kind and q.text),
    )


def _said(value: object) -> str:
    if not isinstance(value, (str, int, float)):
        raise TypeError
    return str(value).strip()


def _from_markdown(found: Sequence[Item]) -> Extraction:
    attributes: dict[str, list[Attribute]] = {}
    relations: dict[str, dict[str, str]] = {}
    captions: dict[str, str] = {}
    questions: list[Question] = []
    for item in found:
        titles, name = " / ".join(item.headings).lower(), item.headings[-1] if item.headings else ""
        kind = next((kind for kind in KINDS if kind in titles), None)
        if "question" in titles:
            if item.key in ("entities", "entities involved", "entity") and questions:
                questions[-1] = Question(questions[-1].kind, questions[-1].text, split_names(item.value))
            elif kind and item.key in ("question", ""):
                named = split_names(name) if kind == "relationship" else (name,)
                questions.append(Question(kind, item.value, () if _names_kind(name) else named))
        elif "caption" in titles and not _names_kind(name):
            captions[name] = item.value
        elif kind == "intrinsic" and not _names_kind(name):
            said = (item.key, item.value) if item.key else (item.value, "")
            attributes.setdefault(name, []).append(Attribute(*said))
        elif kind == "relationship" and item.key:
            relations.setdefault(name, {})[item.key] = item.value
    entities = tuple(Entity(name, tuple(held), captions.get(name, "")) for name, held in attributes.items())
    return Extraction(
        entities,
        tuple(
            Relation(split_names(r.get("entities involved", r.get("entities", ""))), r.get("value", ""))
            for r in relations.values()
        ),
        tuple(q for kind in KINDS for q in questions if q.kind == kind),
    )


def _names_kind(title: str) -> bool:
    """Whether a heading is one of the layout's own and no entity's."""
    folded = title.lower()
    return any(word in folded for word in ("questions", "attributes", "image caption", "structure information"))


def split_names(text: str) -> tuple[str, ...]:
    """Names in a list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def given_extraction(text: str) -> Extraction:
    """A benchmark's own extraction, as its loader puts it into a sample's annotations; ValueError where it is none.

    JSON with `structured_info` (the published layout) and `<kind>_questions`, a list of texts or of objects with
    `question` and `entity`.
    """
    document = json.loads(text)
    read = _from_markdown(items(str(document.get("structured_info", ""))))
    questions = [_given(kind, q) for kind in KINDS for q in document.get(f"{kind}_questions") or []]
    extraction = Extraction(read.entities, read.relations, tuple(questions) or read.questions)
    if not extraction.questions:
        raise ValueError("an extraction without questions")
    return extraction


def _given(kind: Kind, question: Any) -> Question:
    if isinstance(question, str):
        return Question(kind, question.strip())
    entity = question.get("entity") or ""
    return Question(
        kind,
        str(question["question"]).strip(),
        split_names(entity) if kind == "relationship" else (entity,) if entity else (),
    )
