"""Reader of answers in JSON: a reply is an answer only if it has the requested form.

That is the whole object of a schema, once: every key, every number in range, no empty text, and at
most further keys on which no score depends. Before it stands at most thinking that ended and a
lead-in of the words in `lead_ins.txt`, around it at most form (fences, tags, role words, a list of
one, a wrapper key), after it nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from vieval_plugin.judges.json_repairs import number, repair_json
from vieval_plugin.judges.protocol import Schema, Scores, Status
from vieval_plugin.judges.refusals import declines
from vieval_plugin.judges.wrapping import (
    DELIMITER,
    LONGEST_LEAD_IN,
    announces,
    doubts,
    is_closing,
    is_lead_in,
    names_answer,
    remove_pair,
    remove_thinking,
    thinking_ends,
    unwrapped,
    words_before,
)
from vieval_plugin.text.yaml_json import JsonObject

REFUSAL_INSIDE = "scores with a refusal in the reasoning"
SCORE = "score"
REASONING = "reasoning"

T = TypeVar("T")

# a model that runs on ends under a schema
_LONGEST_REASONING = 1500
_SHORTEST_REMARK = 40
_MOST_ENDS = 8
# two braces stand before the object of a template, or of a LaTeX box
_BRACKETS = {"{": re.compile(r"\{(?!\s*\{)"), "{[": re.compile(r"\{(?!\s*\{)|\[")}


@dataclass(frozen=True)
class Read(Generic[T]):
    """Reading of a reply."""

    #: Outcome.
    status: Status
    #: Value where the status is usable.
    value: T | None = None
    #: Its sub-scores.
    scores: Scores = ()
    #: The reasoning in it, or why there is no value, for the trace.
    reason: str = ""
    #: Fixed word for what is to be counted over a run.
    finding: str = ""


def unread(reason: object) -> Read[Any]:
    """The reading of a reply that is not an answer, with the reason."""
    return Read(Status.PARSE_FAILURE, reason=str(reason))


def reasoned(value: T, scores: Scores, reasoning: str, exact: bool) -> Read[T]:
    """The reading of an answer with its reasoning, which may be a refusal.

    Args:
        value: the value of the answer.
        scores: its sub-scores.
        reasoning: its words.
        exact: whether it came exactly as asked for.
    """
    return Read(
        Status.OK if exact else Status.REPAIRED,
        value,
        scores,
        reasoning,
        REFUSAL_INSIDE if declines(reasoning) else "",
    )


def number_schema(low: float, high: float, kind: str = "number") -> JsonObject:
    """JSON schema of a number, or of an `integer`."""
    return {"type": kind, "minimum": low, "maximum": high}


def reply_schema(
    count: int,
    high: float = 10.0,
    low: float = 0.0,
    keys: Sequence[str] = (SCORE, REASONING),
    optional: Sequence[str] = (),
) -> JsonObject:
    """JSON schema of an answer with `count` sub-scores from `low` to `high`, a short reasoning,
    and whatever other keys.
    """
    schemas = {
        SCORE: list_schema(number_schema(low or 0, high), count, count),
        REASONING: text_schema(_LONGEST_REASONING),
    }
    properties = {key: schemas.get(key, {}) for key in (*keys, *optional)}
    return object_schema(properties, keys)


def object_schema(
    properties: Mapping[str, Any], required: Iterable[str] | None = None
) -> JsonObject:
    """JSON schema of an object with these keys and no others; all are required where nothing
    else is said.
    """
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def text_schema(longest: int) -> JsonObject:
    """JSON schema of a text that is not empty."""
    return {
        "type": "string",
        "minLength": 1,
        "maxLength": longest,
    }


def list_schema(item: Schema, min_items: int = 0, max_items: int = 8) -> JsonObject:
    """JSON schema of a list."""
    return {
        "type": "array",
        "items": item,
        "minItems": min_items,
        "maxItems": max_items,
    }


def parse_scores(text: str, schema: Schema, *, as_shown: bool = False) -> Read[Scores]:
    """Read the scores of a reply that was asked to be like `{"score": [7, 8], "reasoning": "..."}`.

    Args:
        text: the reply as it came.
        schema: that of the answer, as `reply_schema` makes it.
        as_shown: whether a number alone or in quotation marks is as asked.

    Returns:
        `OK` or `REPAIRED` with the scores asked for, else `PARSE_FAILURE`.

    >>> parse_scores('Sure: {"score": [7, 8], "reasoning": "clean"}', reply_schema(2)).scores
    (7.0, 8.0)
    >>> parse_scores('{"score": [7, 8]}', reply_schema(2)).reason
    'the answer lacks reasoning'
    """
    try:
        answer, exact = read_answer(text, schema, as_shown=as_shown)
    except ValueError as error:
        return unread(error)
    score = answer[SCORE]
    scores = tuple(score) if isinstance(score, list) else (score,)
    return reasoned(
        scores,
        scores,
        str(answer.get(REASONING, "")),
        exact,
    )


def read_answer(
    text: str, schema: Schema, *, as_shown: bool = False
) -> tuple[JsonObject, bool]:
    """The object of a schema that a reply is, and whether it came exactly so.

    Raises:
        ValueError: why it is no answer.
    """
    value, exact = _label_value(text, schema) or json_value(text)
    if isinstance(value, dict) and len(value) == 1:
        [(key, inner)] = value.items()
        is_wrapper = key not in schema["properties"] and isinstance(inner, dict)
        if is_wrapper and names_answer(key):
            value = inner
            exact = False
    answer = conformed(value, schema, "the answer")
    if not exact and len(value) > len(answer):
        raise ValueError("unknown keys in repaired JSON")
    return answer, exact and (as_shown or answer == value)


def _label_value(text: str, schema: Schema) -> tuple[Any, bool] | None:
    """The one key that is asked for with a label that came alone; None where that is not so."""
    [key, *further] = schema["required"]
    labels = () if further else schema["properties"][key].get("enum", ())
    label = unwrapped(text).rstrip("!.") if labels else ""
    if label.casefold() in map(str.casefold, labels):
        return {key: label}, False
    return None


def parse_number(text: str, low: float, high: float) -> Read[Scores]:
    """Read a reply that was asked to be one number from `low` to `high` and nothing else.

    >>> parse_number("Rating: **7/10**", 0, 10).scores, parse_number("7 or 8", 0, 10).scores
    ((7.0,), ())
    """
    answer = unwrapped(text)
    beginning = answer[: LONGEST_LEAD_IN + 1].replace("\uff1a", ":")
    lead_in, _, digits = beginning.rstrip("\r\n\t `*_.").rpartition(":")
    is_short = len(answer) <= LONGEST_LEAD_IN and is_lead_in(lead_in)
    value = number(digits.strip("* \r\n\t"), high) if is_short else None
    if value is None or not low <= value <= high:
        return unread(f"the reply must be a single number from {low:g} to {high:g}")
    is_alone = re.fullmatch("[0-9.]+", remove_thinking(text).strip())
    return Read(
        Status.OK if is_alone else Status.REPAIRED,
        (value,),
        (value,),
    )


def json_value(text: str, begins: str = "{") -> tuple[Any, bool]:
    """The one JSON value that a reply is, and whether it is strict JSON.

    Args:
        text: the reply as it came.
        begins: what the value may begin with: `{`, `[` or both.

    Raises:
        ValueError: why there is none.
    """
    text = _unquoted(text)
    if not text.strip():
        raise ValueError("empty reply")
    start = _start(text, begins)
    value, end, exact = decoded(text, start)
    prefix, suffix = remove_pair(text[:start], text[end:])
    if prefix.rstrip().endswith(("[", "{")) or not is_closing(suffix):
        raise ValueError("the reply must end with its only answer")
    return value, exact and DELIMITER not in prefix + suffix


def decoded(text: str, start: int) -> tuple[Any, int, bool]:
    """The JSON value that begins at a place of a text, the place behind it, and whether it is
    strict JSON.

    Raises:
        ValueError: it is none, even where quotes and commas are mended.
    """
    try:
        return *_STRICT.raw_decode(text, start), True
    except (ValueError, RecursionError):
        end = text.rfind("}" if text[start] == "{" else "]") + 1
        return repair_json(text[start:end]), end, False


def _unquoted(text: str) -> str:
    """A reply without quotation marks, if it is one string of JSON."""
    try:
        value = json.loads(text) if text.lstrip().startswith('"{') else text
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str) else text


def conformed(value: Any, schema: Schema, name: str) -> Any:
    """A value as its schema has it: a lone number as a list of one, a number in quotation marks or
    of its scale as one.

    Raises:
        ValueError: what the value lacks, or has beside what was asked for.
    """
    kind = "enum" if "enum" in schema else schema.get("type")
    conform = _CONFORM.get(kind)
    return conform(value, schema, name) if conform else value


def _conformed_label(value: Any, schema: Schema, name: str) -> Any:
    labels = {label.casefold(): label for label in schema["enum"]}
    text = value if isinstance(value, str) else ""
    folded = text.strip().replace("_", " ").casefold()
    if folded not in labels:
        raise ValueError(f"{name} must be one of {', '.join(schema['enum'])}")
    return labels[folded]


def _conformed_object(value: Any, schema: Schema, name: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object")
    properties = schema["properties"]
    fields = _named_as_asked(value, properties)
    missing = [key for key in schema["required"] if key not in fields]
    if missing:
        raise ValueError(f"{name} lacks {', '.join(missing)}")
    further = {key: fields.pop(key) for key in [*fields] if key not in properties}
    telling = [
        key
        for key in further
        if not _is_remark(
            key,
            further[key],
            properties,
        )
    ]
    if telling:
        raise ValueError(f"{name} has unknown keys: {', '.join(telling)[:100]}")
    return {key: conformed(item, properties[key], key) for key, item in fields.items()}


def _conformed_list(value: Any, schema: Schema, name: str) -> Any:
    numbers = schema["items"].get("type") == "number"
    parsed = _list_in(value) if numbers and isinstance(value, str) else value
    items = parsed if isinstance(parsed, list) else [value]
    min_items = schema.get("minItems", 0)
    if not min_items <= len(items) <= (schema["maxItems"] if numbers else len(items)):
        raise ValueError(
            f"{name}: the number of values must be {min_items}, got {len(items)}"
        )
    return [conformed(item, schema["items"], name) for item in items]


def _conformed_text(value: Any, schema: Schema, name: str) -> Any:
    lines = value if isinstance(value, list) and value else [value]
    if not all(isinstance(line, str) for line in lines):
        raise ValueError(f"{name} must be a string")
    if schema.get("minLength") and not any(map(str.isalnum, "".join(lines))):
        raise ValueError(f"{name} is empty")
    return "\n".join(lines)


def _conformed_number(value: Any, schema: Schema, name: str) -> Any:
    low = schema["minimum"]
    high = schema["maximum"]
    read = number(value, high)
    is_whole = schema["type"] == "number" or not (read or 0) % 1
    if read is None or not low <= read <= high or not is_whole:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}")
    return read


_CONFORM: Mapping[Any, Callable[[Any, Schema, str], Any]] = {
    "enum": _conformed_label,
    "object": _conformed_object,
    "array": _conformed_list,
    "string": _conformed_text,
    "number": _conformed_number,
    "integer": _conformed_number,
}


def _named_as_asked(value: JsonObject, properties: Schema) -> JsonObject:
    """Fields under the names that were asked for, whatever their case."""
    names = {key.casefold(): key for key in properties}
    keys = [names.get(key.strip().casefold(), key) for key in value]
    return _once([*zip(keys, value.values(), strict=True)])


def _is_remark(key: str, item: object, properties: Mapping[str, Schema]) -> bool:
    """Return whether a further field is a number or a text, no answer itself, and does not say
    that there is none.
    """
    if isinstance(item, bool) or not isinstance(item, (int, float, str)):
        return False
    if any(name.casefold() in key.casefold() for name in properties):
        return False
    folded = str(item).casefold()
    for schema in properties.values():
        if folded in map(str.casefold, schema.get("enum", ())):
            return False
        if schema.get("type") == "integer" and not isinstance(item, str):
            return False
    text = f"{key}: {item}".replace("_", " ")
    return not doubts(text, text if len(text) < _SHORTEST_REMARK else key)


def _list_in(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _start(text: str, begins: str) -> int:
    """Place at which an answer begins, at the reply's own beginning or behind an end of
    thinking.
    """
    for end in (0, *thinking_ends(text)[-_MOST_ENDS:]):
        beginning = text[end : end + LONGEST_LEAD_IN]
        first = _BRACKETS[begins].search(beginning)
        lead_in = words_before(beginning[: first.start()]) if first else ""
        if first and (not lead_in or is_lead_in(lead_in) or announces(lead_in)):
            return end + first.start()
    raise ValueError(
        "the text before the answer does not introduce it"
        if begins[0] in text
        else "no JSON object found"
    )


def _once(pairs: list[tuple[str, Any]]) -> JsonObject:
    """An object of JSON; ValueError for a key that comes twice, which Python lets pass."""
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("duplicate key")
    return document


# a control character in a text is no reason to lose it
_STRICT = json.JSONDecoder(object_pairs_hook=_once, strict=False)
