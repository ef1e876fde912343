"""Reader of answers in JSON: a reply is an answer only if it is what was asked for.

That is the whole object of a schema, once: every key, no other key, every number in range, no empty text.
Before it stands at most thinking that ended and a lead-in of the words in `lead_ins.txt`, around it at most
a code fence, an answer tag and a wrapper key, after it nothing. Words are asked only whether they are in that list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Generic, TypeVar

from vieval_plugin.judges.json_repairs import number, repair_json
from vieval_plugin.judges.protocol import Status
from vieval_plugin.judges.refusals import declines

REFUSAL_INSIDE = "a refusal in the reasoning beside scores"
SCORE, REASONING = "score", "reasoning"

T = TypeVar("T")

# a model that runs on ends under a schema
_LONGEST_REASONING = 1500
_LONGEST_LEAD_IN = 300
_MOST_ENDS = 8
_DELIMITER = "||V^=^V||"  # of the VIEScore authors
_TAG = r"(?:<answer>|<\|begin_of_box\|>)?"
_OPENING = re.compile(
    rf"\s*{_TAG}\s*(?:(?:```|~~~)(?:json[5c]?|text)?|{re.escape(_DELIMITER)})?\s*{_TAG}\s*\Z", re.IGNORECASE
)
_CLOSING = re.compile(
    rf"(?:[\s`*_.]|~~~|</answer>|{re.escape(_DELIMITER)}|</s>|<eos>|<end_of_turn>|<\uff5cend\u2581of\u2581sentence\uff5c>"
    r"|<\|(?:im_end|eo[tm](?:_id)?|eos|end|return|endoftext|end_of_(?:text|turn|box)|end_of_turn_token)\|>)*",
    re.IGNORECASE,
)
_PUNCTUATION = re.compile(
    r"[\s#*_:.,!\u00a1()|=\-\u2013\u2014\u3001\u3002\uff01\uff0c\uff1a\u060c\u0964\ufeff"
    "\u2705\U0001f4ca\U0001f4dd\U0001f3af\u2b50\u2728\U0001f4cb\U0001f50d\U0001f5bc\ufe0f]*"
)
_SENTENCE_END = re.compile("[.:!\n\u3002\uff01\uff1a\u0964]")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# how each family of models ends its thinking
_THOUGHT = r"(?:[a-z]{1,9}[:_-]){0,3}(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad)"
_THINKING_END = re.compile(
    rf"(^[ \t]{{0,99}})?(?=[<&\\\u25c1\[])(?:(?:<|&lt;|\\u003c)\s{{0,9}}\\?/\s{{0,9}}{_THOUGHT}\s{{0,9}}(?:>|&gt;|\\u003e)"
    r"|\u25c1/think\u25b7|\[/think\]|<\|end_(?:of_thought|thinking)\|>|<\|channel\|>\s{0,9}final\s{0,9}(?:<\|message\|>)?)"
    r"|assistantfinal",
    re.IGNORECASE | re.MULTILINE,
)
_THINKING_BEGIN = re.compile(
    rf"(?:<|&lt;|\\u003c)\s{{0,9}}{_THOUGHT}\s{{0,9}}(?:>|&gt;|\\u003e)|\u25c1think\u25b7|\[think\]"
    r"|<\|(?:begin_of_thought|start_thinking)\|>|<\|channel\|>\s{0,9}analysis",
    re.IGNORECASE,
)
# what gpt-oss writes where its marks are left out
_BARE_ANALYSIS = re.compile("analysis(?=[A-Z])")
# what differs between the beginning and the end of one thinking
_SIDE = re.compile(r"begin_of|start|end_of|end|assistant|analysis|final|message|&[lg]t;|\\u003[ce]|[^a-z\u25c1\[]")


@dataclass(frozen=True)
class _LeadIns:
    """Words of one language that may stand before an answer."""

    #: All of them.
    allowed: re.Pattern[str]
    #: Those that name an image.
    image: re.Pattern[str]
    #: An image with its number at the end.
    heading: re.Pattern[str]
    #: Those that name a judgement.
    judgement: re.Pattern[str]
    #: Those that name an answer.
    answer: re.Pattern[str]

    def leads_in(self, text: str) -> bool:
        """Return whether words lead in to an answer; those that name an image but no judgement may say what it shows."""
        if not _PUNCTUATION.fullmatch(self.allowed.sub(" ", text)):
            return False
        sentences = [
            part for part in _SENTENCE_END.split(self.heading.sub("", text)) if not _PUNCTUATION.fullmatch(part)
        ]
        return not (sentences and self.image.search(text)) or self.judgement.search(sentences[-1]) is not None


@dataclass(frozen=True)
class Read(Generic[T]):
    """Reading of a reply."""

    #: Outcome.
    status: Status
    #: Value where the status is usable.
    value: T | None = None
    #: Its sub-scores.
    scores: tuple[float, ...] = ()
    #: The reasoning in it, or why there is no value, for the trace.
    reason: str = ""
    #: Fixed word for what is to be counted over a run.
    finding: str = ""


def reply_schema(
    count: int,
    high: float = 10.0,
    low: float = 0.0,
    keys: Sequence[str] = (SCORE, REASONING),
    optional: Sequence[str] = (),
) -> dict[str, Any]:
    """JSON schema of an answer with `count` sub-scores from `low` to `high`, a short reasoning, and whatever other keys."""
    score = {"type": "number", "minimum": low or 0, "maximum": high}
    schemas = {
        SCORE: {"type": "array", "items": score, "minItems": count, "maxItems": count},
        REASONING: {"type": "string", "minLength": 1, "maxLength": _LONGEST_REASONING},
    }
    return object_schema({key: schemas.get(key, {}) for key in (*keys, *optional)}, keys)


def object_schema(properties: Mapping[str, Any], required: Iterable[str] | None = None) -> dict[str, Any]:
    """JSON schema of an object with these keys and no others; all are required where nothing else is said."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def text_schema(longest: int) -> dict[str, Any]:
    """JSON schema of a text that is not empty."""
    return {"type": "string", "minLength": 1, "maxLength": longest}


def list_schema(item: Mapping[str, Any], min_items: int = 0, max_items: int = 8) -> dict[str, Any]:
    """JSON schema of a list."""
    return {"type": "array", "items": item, "minItems": min_items, "maxItems": max_items}


def is_only_thinking(text: str) -> bool:
    """Return whether a text ends before an answer begins: it is empty, or thinking without an end.

    >>> is_only_thinking("<think>First,"), is_only_thinking("<think>First,</think> 7")
    (True, False)
    """
    words = text.strip()
    return not words or (words.startswith("<think>") and "</think>" not in words)


def parse_scores(text: str, schema: Mapping[str, Any], *, as_shown: bool = False) -> Read[tuple[float, ...]]:
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
        return Read(Status.PARSE_FAILURE, reason=str(error))
    reasoning = str(answer.get(REASONING, ""))
    scores = tuple(answer[SCORE]) if isinstance(answer[SCORE], list) else (answer[SCORE],)
    finding = REFUSAL_INSIDE if declines(reasoning) else ""
    return Read(Status.OK if exact else Status.REPAIRED, scores, scores, reasoning, finding)


def read_answer(text: str, schema: Mapping[str, Any], *, as_shown: bool = False) -> tuple[dict[str, Any], bool]:
    """The object of a schema that a reply is, and whether it came exactly so.

    Raises:
        ValueError: why it is no answer.
    """
    value, exact = json_value(text)
    if isinstance(value, dict) and len(value) == 1:
        [(key, inner)] = value.items()
        if key not in schema["properties"] and isinstance(inner, dict) and _names_answer(key):
            value, exact = inner, False
    answer = conformed(value, schema, "the answer")
    return answer, exact and (as_shown or answer == value)


def parse_number(text: str, low: float, high: float) -> Read[tuple[float, ...]]:
    """Read a reply that was asked to be one number from `low` to `high` and nothing else.

    >>> parse_number("Rating: **7/10**", 0, 10).scores, parse_number("7 or 8", 0, 10).scores
    ((7.0,), ())
    """
    answer = without_thinking(text).strip()
    lead_in, _, digits = answer[: _LONGEST_LEAD_IN + 1].rstrip("\r\n\t `*_.").rpartition(":")
    value = number(digits.strip("* \r\n\t"), high) if len(answer) <= _LONGEST_LEAD_IN and is_lead_in(lead_in) else None
    if value is None or not low <= value <= high:
        return Read(Status.PARSE_FAILURE, reason=f"not one number from {low:g} to {high:g} alone")
    status = Status.OK if re.fullmatch("[0-9.]+", answer) else Status.REPAIRED
    return Read(status, (value,), (value,))


def json_value(text: str, begins: str = "{") -> tuple[Any, bool]:
    """The one JSON value that a reply is, and whether it is strict JSON.

    Args:
        text: the reply as it came.
        begins: what the value may begin with: `{`, `[` or both.

    Raises:
        ValueError: why there is none.
    """
    if not text.strip():
        raise ValueError("empty reply")
    start = _start(text, begins)
    try:
        value, end = _STRICT.raw_decode(text, start)
        exact = _DELIMITER not in text[:start] + text[end:]
    except (ValueError, RecursionError):
        end = text.rfind("}" if text[start] == "{" else "]") + 1
        value, exact = repair_json(text[start:end]), False
    if not _CLOSING.fullmatch(text, end):
        raise ValueError("words behind the answer, or a second one")
    return value, exact


def without_thinking(text: str) -> str:
    """A reply less its thinking: what stands behind the last end of any, up to where one begins that has no end.

    >>> [without_thinking(text).strip() for text in ("<think>7?</think>8", "[THINK]7?[/THINK]8", "7?\\n</think>8")]
    ['8', '8', '8']
    """
    return _THINKING_BEGIN.split(text[max(_thinking_ends(text), default=0) :], maxsplit=1)[0]


def is_lead_in(text: str) -> bool:
    """Return whether a text is built of nothing but words of one language that may stand before an answer.

    >>> [is_lead_in(text) for text in ("**Final score of image 2:**", "Image 2:", "The image:", "An example:")]
    [True, True, False, False]
    """
    plain = _plain(text)
    return len(text) <= _LONGEST_LEAD_IN and any(language.leads_in(plain) for language in _lead_ins())


def conformed(value: Any, schema: Mapping[str, Any], name: str) -> Any:
    """A value as its schema has it: a lone number as a list of one, a number in quotation marks or of its scale as one.

    Raises:
        ValueError: what the value lacks, or has beside what was asked for.
    """
    if "enum" in schema:
        labels = {label.casefold(): label for label in schema["enum"]}
        folded = value.strip().replace("_", " ").casefold() if isinstance(value, str) else ""
        if folded not in labels:
            raise ValueError(f"{name} is none of {', '.join(schema['enum'])}")
        return labels[folded]
    kind = schema.get("type")
    if kind == "object":
        if not isinstance(value, dict):
            raise ValueError(f"{name} is no object")
        if missing := [key for key in schema["required"] if key not in value]:
            raise ValueError(f"{name} lacks {', '.join(missing)}")
        if further := [key for key in value if key not in schema["properties"]]:
            raise ValueError(f"{name} has keys that were not asked for: {', '.join(further)[:100]}")
        return {key: conformed(item, schema["properties"][key], key) for key, item in value.items()}
    if kind == "array":
        items = value if isinstance(value, list) else [value]
        max_items = schema["maxItems"] if schema["items"].get("type") == "number" else len(items)
        if not schema.get("minItems", 0) <= len(items) <= max_items:
            raise ValueError(f"{name}: values given: {len(items)}, asked: {schema.get('minItems', 0)}")
        return [conformed(item, schema["items"], name) for item in items]
    if kind == "string":
        lines = value if isinstance(value, list) and value else [value]
        if not all(isinstance(line, str) for line in lines):
            raise ValueError(f"{name} is no text")
        if schema.get("minLength") and not any(map(str.isalnum, "".join(lines))):
            raise ValueError(f"{name} is empty")
        return "\n".join(lines)
    if kind in ("number", "integer"):
        read = number(value, schema["maximum"])
        if read is None or not schema["minimum"] <= read <= schema["maximum"] or (kind == "integer" and read % 1):
            raise ValueError(f"{name}: not a number from {schema['minimum']:g} to {schema['maximum']:g}")
        return read
    return value


def _start(text: str, begins: str) -> int:
    """Place at which an answer begins, at the reply's own beginning or behind an end of thinking."""
    for end in (0, *_thinking_ends(text)[-_MOST_ENDS:]):
        beginning = text[end : end + _LONGEST_LEAD_IN]
        starts = [at for at in map(beginning.find, begins) if at >= 0]
        if starts and is_lead_in(_OPENING.sub("", beginning[: min(starts)])):
            return end + min(starts)
    raise ValueError(
        "words before the answer that are no lead-in to it" if begins[0] in text else "no JSON object found"
    )


def _thinking_ends(text: str) -> list[int]:
    """Places behind each end of thinking that begins a line or whose own beginning opens the reply; others may be quoted."""
    reply = text.lstrip()
    begin = _THINKING_BEGIN.match(reply) or _BARE_ANALYSIS.match(reply)
    kind = _SIDE.sub("", begin[0].lower()) if begin else None
    return [
        end.end() for end in _THINKING_END.finditer(text) if end[1] is not None or _SIDE.sub("", end[0].lower()) == kind
    ]


def _names_answer(key: str) -> bool:
    """Return whether a key around an object says that it is an answer: `evaluation`, not `image`."""
    return is_lead_in(key) and any(language.answer.search(_plain(key)) for language in _lead_ins())


def _plain(text: str) -> str:
    return text.replace("\u2019", "'").lower()


@cache
def _lead_ins() -> tuple[_LeadIns, ...]:
    languages: dict[str, dict[str, list[str]]] = {}
    for line in Path(__file__).with_name("lead_ins.txt").read_text(encoding="utf-8").splitlines():
        head, _, phrases = line.partition(":")
        language, _, kind = head.partition(" ")
        if not line.startswith("#"):
            languages.setdefault(language, {}).setdefault(kind, []).extend(
                phrase.strip() for phrase in phrases.split(",")
            )
    return tuple(
        _LeadIns(
            allowed=_any_of(["json", *chain(*kinds.values())]),
            image=_any_of(kinds["image"]),
            heading=re.compile(
                rf"(?:\A|{_SENTENCE_END.pattern}){_PUNCTUATION.pattern}"
                rf"(?:{_any_of([phrase for phrase in kinds['image'] if 'N' in phrase]).pattern}){_PUNCTUATION.pattern}\Z"
            ),
            judgement=_any_of(kinds["judgement"]),
            answer=_any_of(kinds["answer"] + kinds["judgement"]),
        )
        for kinds in languages.values()
    )


def _any_of(phrases: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_pattern, sorted(phrases, key=len, reverse=True))))


def _pattern(phrase: str) -> str:
    literal = (
        re.escape(phrase.replace("N", "0").lower()).replace(r"\ ", r"[\s_]+").replace("0", r"[\s_#]{0,2}[0-9]{1,4}\s?")
    )
    return literal if _CJK.search(phrase) else rf"(?<![^\W_]){literal}(?![^\W_])"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; ValueError for a key that comes twice, which Python lets pass."""
    if len(document := dict(pairs)) < len(pairs):
        raise ValueError("a key twice")
    return document


# a control character in a text is no reason to lose it
_STRICT = json.JSONDecoder(object_pairs_hook=_once, strict=False)
