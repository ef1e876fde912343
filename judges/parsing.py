"""Parser of a model's text: scores, with a status for each way it can go wrong.

Nothing is guessed. Strict JSON in the asked shape is `ok`. Anything else goes through json_repair, which drops and
invents to make ends meet: what it returns counts only if the same numbers stand, complete, behind every score key.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from vieval_plugin.judges.free_text_scores import contradicts, read_free_text_scores
from vieval_plugin.judges.json_repairs import LONGEST, QUOTES, SCORE, fold, number, repair_json, stands
from vieval_plugin.judges.protocol import Status
from vieval_plugin.judges.refusals import declines, refuses, withdrawn

ONE_ANSWER = "answers that differ, where one answer is wanted"
REFUSAL_INSIDE = "a refusal in the reasoning beside scores"
_NOT_STRICT_REASON = "not strict JSON in the asked shape"

_SCORE, _REASONING = "score", "reasoning"
_BARE = re.compile(rf"\[[^\[\]{{}}]*\]|[{QUOTES}]?{SCORE.pattern}[{QUOTES}]?")
_WRAPPING = re.compile(r"\|\|V\^=\^V\|\||```[A-Za-z]*")
_DEPTH_CHANGES = {"{": 1, "[": 1, "}": -1, "]": -1}
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\],]', re.DOTALL)
# The one key of an object around the answer. An example, a template or a form is around none.
_WRAPPER = re.compile(
    r"(?:(?:final|image|edit)[\W_]*)?"
    r"(?:(?:answer|assessment|evaluation|judge?ment|output|rating|response|result|verdict)s?[\W_]*)+"
)
_MOST_ANSWERS = 3  # each may take a second to repair

_LESS, _MORE = r"(?:<|&lt;|\\u003c)\s*", r"\s*(?:>|&gt;|\\u003e)"
_THOUGHT = r"(?:[a-z]{1,9}[:_-]){0,3}(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad)"
# how each family of models begins its thinking, and how it ends it
_THINKING = (
    (rf"{_LESS}{_THOUGHT}{_MORE}", rf"{_LESS}\\?/\s*{_THOUGHT}{_MORE}"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    (r"\[think\]", r"\[/think\]"),
    (r"<\|(?:begin_of_thought|start_thinking)\|>", r"<\|end_(?:of_thought|thinking)\|>"),
    (r"<\|channel\|>\s*(?:analysis|commentary)", r"<\|channel\|>\s*final\s*(?:<\|message\|>)?|assistantfinal"),
)
# what a mark begins with comes first, because nearly no reply has any of it
_MARK = r"(?=[<&\\\u25c1\[a])"
_THOUGHTS = re.compile(
    _MARK + "(?:" + "|".join(rf"{begin}.*?(?:{end}|\Z)" for begin, end in _THINKING) + ")", re.IGNORECASE | re.DOTALL
)
_THINKING_END = re.compile(_MARK + "(?:" + "|".join(end for _, end in _THINKING) + ")", re.IGNORECASE)


@dataclass(frozen=True)
class Parsed:
    """Reading of a reply: `scores` where `status` is usable, and in one line the `reason` it is not `ok`.

    `finding` is a fixed word for what is to be counted over a run: why scores said in prose were not read, or that the
    reasoning beside scores declines to give any.
    """

    status: Status
    scores: tuple[float, ...] = ()
    reasoning: str = ""
    reason: str = ""
    finding: str = ""


_NO_SCORE = Parsed(Status.PARSE_FAILURE, reason="no score found")


@dataclass(frozen=True, slots=True)
class ObjectText:
    """An outermost object of a reply; of one that is not `closed`, `complete` is what stands in it beyond doubt."""

    text: str
    complete: str
    closed: bool


def parse_scores(
    text: str, *, count: int, high: float = 10.0, low: float = 0.0, names: Sequence[str] = (), quoted: bool = False
) -> Parsed:
    """Read the scores of a reply that was asked to be like `{"score": [7, 8], "reasoning": "..."}`.

    All objects with the key must give the same scores, because a reply may quote a text in the image. What stands
    inside thinking is never read, nor are scores beside words that decline to give any or take them back.

    Args:
        text: the reply as it came.
        count: how many scores were asked.
        high: the end of the scale, and the only denominator accepted in `8/10`.
        low: its start, 0 or more, which a failure's reason names.
        names: what the scores are called, in order: the keys of a mapping of scores, and what scores said in prose are
            read by (see free_text_scores.py).
        quoted: whether scores were asked for in quotation marks, so that `{"score": "7"}` is as asked.

    Returns:
        `OK` or `REPAIRED` with exactly `count` scores in [0, high]; `PARSE_FAILURE` or `REFUSAL` with none.

    >>> parse_scores('Sure: {"score": [7, 8], "reasoning": "clean"}', count=2).scores
    (7.0, 8.0)
    >>> parse_scores("{'score': ['7/10', 8", count=2).reason
    'cut off before its scores were complete'
    """
    answer = without_thinking(text)
    if not answer.strip():
        return _failure("nothing to read outside thinking" if text.strip() else "empty reply")
    objects, outside = answer_objects(answer, _SCORE)
    readings = [_read(source, count, (low, high), names, quoted) for source in objects[:_MOST_ANSWERS] or _bare(answer)]
    if len(objects) > _MOST_ANSWERS or len({reading.scores for reading in readings}) > 1:
        return _failure(ONE_ANSWER)
    for parsed in readings:
        if parsed.scores and withdrawn(outside):
            return _failure("scores beside words that decline to give any, or take them back")
        if parsed.scores and contradicts("\n".join(outside), parsed.scores, high):
            return _failure(ONE_ANSWER)
        if parsed is not _NO_SCORE:
            return replace(parsed, finding=REFUSAL_INSIDE) if declines(parsed.reasoning) else parsed
    if refuses(answer):
        return Parsed(Status.REFUSAL, reason="the model declined to score")
    scores, finding = read_free_text_scores(answer, names, high)
    if scores:
        return Parsed(Status.REPAIRED, scores, answer.strip(), _NOT_STRICT_REASON)
    return Parsed(Status.PARSE_FAILURE, reason=finding, finding=finding) if finding else _NO_SCORE


def json_value(text: str) -> Any:
    """The JSON object or list in a reply, outside thinking and whatever is written around it; None if not exactly one."""
    body = without_thinking(text)
    for start in sorted({body.find("{"), body.find("[")} - {-1}):
        end = body.rfind("}" if body[start] == "{" else "]")
        with suppress(ValueError, RecursionError):
            # a control character in a text is no reason to lose it
            return json.loads(body[start : end + 1], strict=False, object_pairs_hook=_once)
    return None


def _failure(reason: str) -> Parsed:
    return Parsed(Status.PARSE_FAILURE, reason=reason)


def without_thinking(text: str) -> str:
    """A reply less its thinking, of which nothing is ever read.

    >>> [without_thinking(text).strip() for text in ("<think>7?</think>8", "[THINK]7?[/THINK]8", "7? </think>8")]
    ['8', '8', '8']
    """
    before, leading_object = next(_outermost(text))
    is_answer_first, place = bool(leading_object.text) and not _unwrapped(before), 0
    # In a string of the reply's own JSON a mark is prose; where that JSON is broken, nobody can tell which it is.
    if is_answer_first and strict_object(leading_object.text) is not None:
        place = len(before + leading_object.text)
    elif is_answer_first and (_THOUGHTS.search(leading_object.text) or _THINKING_END.search(leading_object.text)):
        return ""
    # Two halves of a number must not meet where a block was taken out.
    rest = _THOUGHTS.sub("\n", text[place:])
    if ends := list(_THINKING_END.finditer(rest)):
        # all before was thought, unless an answer is quoted behind an answer
        return "" if is_answer_first else rest[ends[-1].end() :]
    return text[:place] + rest


def uncut_answers(text: str) -> list[str]:
    """The objects of a reply, cut by its token limit, that can be its answer all the same.

    That is the object which it begins with, and a whole one which it ends with: anything else may be thinking in a form
    that is not known, or go on to say otherwise.
    """
    body = _unwrapped(without_thinking(text))
    return [
        candidate.text
        for _, candidate in _outermost(body)
        if candidate.text and (body.startswith(candidate.text) or (candidate.closed and body.endswith(candidate.text)))
    ]


def answer_objects(text: str, *keys: str) -> tuple[list[ObjectText], list[str]]:
    """The outermost objects that have one of the keys somewhere, each once, and the texts outside them.

    An object that is not closed may have been cut before its key: its reasoning is enough.
    """
    answer_key_pattern, cut = (
        re.compile(rf"(?<!\w)(?:{'|'.join(map(fold, names))})s?[{QUOTES}]?\s*:", re.IGNORECASE)
        for names in (keys, (*keys, _REASONING))
    )
    objects: dict[ObjectText, None] = {}
    outside = [""]
    for outside_text, candidate in _outermost(text):
        outside[-1] += outside_text
        if (answer_key_pattern if candidate.closed else cut).search(candidate.text):
            objects[candidate] = None
            outside.append("")
        else:
            outside[-1] += candidate.text
    return list(objects), outside


def has_object(texts: Sequence[str]) -> bool:
    """Return whether any text has an object with a key, whatever that is."""
    return any(re.search(r"\{[^{}]*\w[^{}]*:", text) for text in texts)


def _outermost(text: str) -> Iterator[tuple[str, ObjectText]]:
    """The outermost objects, each with the text before it, and at last an empty one with the text behind them."""
    last, start = 0, text.find("{")
    while start >= 0:
        candidate = _object_at(text, start)
        yield text[last:start], candidate
        last = start + len(candidate.text)
        start = text.find("{", last)
    yield text[last:], ObjectText("", "", True)


def _object_at(text: str, start: int) -> ObjectText:
    depth, complete = 0, start
    for token in _TOKEN.finditer(text, start):
        depth += _DEPTH_CHANGES.get(token[0], 0)
        if depth == 0:
            return ObjectText(text[start : token.end()], text[start : token.end()], True)
        if depth == 1 and token[0] in ("}", "]", ","):
            complete = token.end()
    return ObjectText(text[start:], text[start:complete].rstrip(", \t\r\n") + "}", False)


def _unwrapped(text: str) -> str:
    return _WRAPPING.sub(" ", text).strip()


def _bare(text: str) -> list[ObjectText]:
    body = _unwrapped(text)
    # Single quotes keep it from passing as the strict JSON it was not.
    source = f"{{'{_SCORE}': {body}}}"
    return [ObjectText(source, source, True)] if _BARE.fullmatch(body) else []


def _read(source: ObjectText, count: int, scale: tuple[float, float], names: Sequence[str], quoted: bool) -> Parsed:
    """The scores of one object; `_NO_SCORE` if it has nothing that looks like one where scores belong."""
    low, high = scale
    # Up to a cut the JSON may be strict; then it outweighs what json_repair sees in its strings.
    so_far = strict_object(source.complete)
    strict = so_far is not None and source.closed
    reply: object = so_far if strict else repair_json(source.text[:LONGEST])
    holder = owner(reply, _SCORE)
    values = values_of(holder, _SCORE)
    value = values[0] if values else None
    items = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else [value]
    scores = [number(item, high) for item in items]
    exact = strict and len(values) == 1 and (quoted or not any(isinstance(item, str) for item in items))

    no_number = all(score is None for score in scores)
    if no_number and source.closed:
        return _NO_SCORE
    otherwise = so_far is not None and values_of(owner(so_far, _SCORE), _SCORE) != values
    literal = exact or all(stands(part, scores, _SCORE, high) for part in {source.complete, source.text})
    if no_number or otherwise or not literal:
        return _failure(
            "which scores it gives is unclear" if source.closed else "cut off before its scores were complete"
        )
    if isinstance(value, dict):
        by_name = dict(zip(map(_words, value), scores, strict=True))
        if sorted(map(_words, value)) != sorted(map(_words, names)):
            return _failure("scores under other names than asked")
        scores = [by_name[_words(name)] for name in names]
    if len(scores) != count:
        return _failure(f"scores given: {len(scores)}, asked: {count}")
    valid = tuple(score for score in scores if score is not None and math.isfinite(score) and 0 <= score <= high)
    if len(valid) != count:
        return _failure(f"a score is not a number from {low:g} to {high:g}")

    further = {name: item for name, item in holder.items() if fold(name) not in (_SCORE, _REASONING)}
    if contradicts(json.dumps(further), valid, high):
        return _failure(ONE_ANSWER)
    explanations = values_of(holder, _REASONING)
    lines = explanations[0] if explanations and isinstance(explanations[0], list) else explanations
    reasoning = "\n".join(line for line in lines if isinstance(line, str))
    if exact and holder is reply and not isinstance(value, dict) and _SCORE in holder:
        return Parsed(Status.OK, valid, reasoning)
    return Parsed(Status.REPAIRED, valid, reasoning, _NOT_STRICT_REASON)


def _words(name: object) -> str:
    return " ".join(re.findall(r"[^\W_]+", str(name).lower()))


def owner(reply: object, key: str) -> dict[str, Any]:
    """The object whose own key it is: the reply, or the single value of a wrapper such as `{"evaluation": {...}}`."""
    if isinstance(reply, dict) and len(reply) == 1 and not values_of(reply, key):
        [(name, reply)] = reply.items()
        if not _WRAPPER.fullmatch(str(name).lower()):
            return {}
    return reply if isinstance(reply, dict) else {}


def values_of(holder: Mapping[str, Any], key: str) -> list[Any]:
    """Values under a key, whose case and plural s do not matter: one, if the object is in order."""
    return [value for name, value in holder.items() if fold(name) == fold(key)]


def strict_object(source: str) -> dict[str, Any] | None:
    """The object of strict JSON; None for anything else."""
    with suppress(ValueError, RecursionError):
        reply = json.loads(source, object_pairs_hook=_once)
        return reply if isinstance(reply, dict) else None
    return None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; ValueError for a key that comes twice, which Python lets pass."""
    if len(document := dict(pairs)) < len(pairs):
        raise ValueError("a key twice")
    return document
