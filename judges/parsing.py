"""From the text of a model to scores, with a status for each way it can go wrong.

Nothing is guessed. Strict JSON in the asked shape is `ok`. Anything else goes through json_repair, which drops and
invents to make ends meet: what it returns counts only if the same numbers stand, complete, behind the score key.
"""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import json_repair

from vieval_plugin.judges.protocol import Status

# json_repair takes quadratic time on hostile text; these keep a reply at about a second.
_MEND_LENGTH, _MEND_BRACKETS, _LAST_OBJECTS = 4000, 24, 3
_REFUSAL_LENGTH = 10_000

_NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_SCORE = re.compile(rf"({_NUMBER})(?:\s*/\s*({_NUMBER}))?")
_QUOTES = "\"'\u201c\u201d\u2018\u2019"
_BARE = re.compile(rf"\[[^\[\]{{}}]*\]|[{_QUOTES}]?{_SCORE.pattern}[{_QUOTES}]?")
_WRAPPING = re.compile(r"\|\|V\^=\^V\|\||```[A-Za-z]*")
_LEADING_OBJECT = re.compile(rf"(?:\s|{_WRAPPING.pattern})*(?=\{{)")
_THINK_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\],]', re.DOTALL)
# A value without brackets ends at a comma, unless a digit follows: 8,5 may be a decimal, and 7, 8 two scores.
_VALUE = re.compile(r"\s*(?:[\[{(]([^\]})]*)[\]})]|([^\[{(]*?)(?:,(?!\s*[0-9])|[}\n]))")
_REFUSAL = re.compile(
    r"""\b(?:i'?m|i\ am|we'?re|we\ are)\ (?:\w+\ )?(?:sorry|afraid)\b | ^\W*sorry\b | \bapologi(?:[sz]e|es)\b
    | \b(?:can't|cannot|can\ not|couldn't|won't|will\ not|unable\ to|not\ able\ to)\ (?:\w+\ ){0,3}?
      (?:assist|help|comply|assess(?:ed)?|(?:rate|score|judge|evaluate|provide|complete)d?|(?:conduct|perform)(?:ed)?)\b
    | \bi\ (?:can't|cannot|can\ not|am\ unable\ to|am\ not\ able\ to)\ (?:\w+\ )?(?:see|view|access|process|open)\b
    | \bas\ an?\ (?:ai|artificial\ intelligence|(?:\w+\ )?language\ model|assistant)\b(?!-)
    | \b(?:don't|do\ not|doesn't|lack)\ (?:have\ )?(?:the\ |any\ )?(?:ability|capability|capacity|means)\b
    | \b(?:decline|refuse)\ to\b | \bagainst\ (?:my|our|the)\ (?:guidelines|polic)
    | \b(?:evaluation|assessment|rating|scores?)\ (?:is\ |are\ )?not\ (?:possible|available)\b""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True)
class Parsed:
    """What was read from a reply: `scores` where `status` is usable, and in one line the `reason` it is not `ok`."""

    status: Status
    scores: tuple[float, ...] = ()
    reasoning: str = ""
    reason: str = ""


def parse_scores(
    text: str,
    *,
    count: int,
    low: float = 0.0,
    high: float = 10.0,
    keys: Sequence[str] = ("score",),
    reasoning_key: str = "reasoning",
) -> Parsed:
    """Read the scores of a reply that was asked to be like `{"score": [7, 8], "reasoning": "..."}`.

    Where a reply holds several such objects the last is the answer. What stands inside thinking is never read.

    Args:
        text: the reply as it came.
        count: how many scores were asked.
        low, high: the ends of the scale; `high` is also the only denominator accepted in `8/10`.
        keys: names the scores may go by, best first; case and a plural s do not matter.
        reasoning_key: the name of the explanation.

    Returns:
        `OK` or `REPAIRED` with exactly `count` scores in [low, high]; `PARSE_FAILURE` or `REFUSAL` with none.

    Raises nothing.

    >>> parse_scores('Sure: {"score": [7, 8], "reasoning": "clean"}', count=2).scores
    (7.0, 8.0)
    >>> parse_scores("{'score': ['7/10', 8", count=2).reason
    'cut off before its scores were complete'
    """
    if not text.strip():
        return _failure("empty reply")
    answer = without_thinking(text)
    if not answer.strip():
        return _failure("nothing to read outside thinking")
    for source in _objects(answer, (*keys, reasoning_key)) or _bare(answer, keys[0]):
        parsed = _read(source, count, low, high, keys, reasoning_key)
        if parsed is not None:
            return parsed
    if refuses(answer):
        return Parsed(Status.REFUSAL, reason="the model declined to score")
    return _failure("no score found")


def json_value(text: str) -> Any:
    """The JSON object or list in a reply, outside thinking and whatever is written around it; None if there is none."""
    body = without_thinking(text)
    brackets = [("{", "}"), ("[", "]")]
    # whichever opens first; what is not found comes last
    for opening, closing in sorted(brackets, key=lambda pair: body.find(pair[0]) % (len(body) + 1)):
        start, end = body.find(opening), body.rfind(closing)
        if 0 <= start < end:
            try:
                # a control character in a text is no reason to lose it
                return json.loads(body[start : end + 1], strict=False)
            except (ValueError, RecursionError):
                continue
    return None


def refuses(answer: str) -> bool:
    """Whether an answer without scores reads like a refusal to give any."""
    return bool(_REFUSAL.search(answer[:_REFUSAL_LENGTH].replace("\u2019", "'")))


def _failure(reason: str) -> Parsed:
    return Parsed(Status.PARSE_FAILURE, reason=reason)


def without_thinking(text: str) -> str:
    """A reply less its thinking, of which nothing is ever read."""
    kept: list[str] = []
    lead = _LEADING_OBJECT.match(text)
    if lead and _THINK_TAG.search(text):
        end, closed = _extent(text, lead.end())
        end = end if closed else len(text)
        # In a string of the reply's own JSON a tag is prose; where that JSON is broken, nobody can tell which it is.
        if _strict(text[lead.end() : end]) is not None:
            kept, text = [text[:end]], text[end:]
        elif _THINK_TAG.search(text, lead.end(), end):
            return ""
    thinking = False
    # The split alternates between text and the slash of a tag.
    for place, piece in enumerate(_THINK_TAG.split(text)):
        if place % 2 == 0:
            kept += [] if thinking else [piece]
            continue
        if piece == "/" and not thinking:
            kept = []
        thinking = piece != "/"
    # Two halves of a number must not meet where a block was taken out.
    return "\n".join(kept)


def _extent(text: str, start: int = 0) -> tuple[int, bool]:
    """Up to where the object that opens at `start` is complete beyond doubt, and whether it is closed there."""
    depth, complete = 0, start
    for token in _TOKEN.finditer(text, start):
        mark = token[0]
        if mark in ("{", "["):
            depth += 1
        elif mark in ("}", "]"):
            depth -= 1
        if depth == 0:
            return token.end(), True
        if depth == 1 and mark in ("}", "]", ","):
            complete = token.end()
    return complete, False


def _objects(text: str, names: Sequence[str]) -> list[str]:
    """The outermost objects that mention a name, last first; an unclosed one reaches to the end of the text."""
    mention = re.compile("|".join(re.escape(_fold(name)) for name in names), re.IGNORECASE)
    found: deque[str] = deque(maxlen=_LAST_OBJECTS)
    start = text.find("{")
    while start >= 0:
        end, closed = _extent(text, start)
        end = end if closed else len(text)
        if mention.search(text, start, end):
            found.appendleft(text[start:end])
        start = text.find("{", end)
    return list(found)


def _bare(text: str, key: str) -> list[str]:
    body = _WRAPPING.sub(" ", text).strip()
    # Single quotes keep it from passing as the strict JSON it was not.
    return [f"{{'{key}': {body}}}"] if _BARE.fullmatch(body) else []


def _read(source: str, count: int, low: float, high: float, keys: Sequence[str], reasoning_key: str) -> Parsed | None:
    """What one object says; none if it has nothing that looks like a score."""
    reply: object = _strict(source)
    strict, closed, complete = reply is not None, True, source
    if not strict:
        source = source[:_MEND_LENGTH]
        end, closed = _extent(source)
        reply, complete = _mend(source), source[:end]
    holder = _holder(reply, keys)
    value = _get(holder, keys)
    items = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else [value]
    scores = [_number(item, high) for item in items]
    exact = strict and not any(isinstance(item, str) for item in items)

    found_none = all(score is None for score in scores)
    if found_none and closed:
        return None
    # Up to a cut the JSON may be strict; then it outweighs what the mender sees in its strings.
    so_far = None if closed else _strict(complete.rstrip(", \t\r\n") + "}")
    found_none = found_none or (so_far is not None and _get(_holder(so_far, keys), keys) != value)
    if found_none or not (exact or _stands(complete, scores, keys, high)):
        return _failure("which scores it gives is unclear" if closed else "cut off before its scores were complete")
    if len(scores) != count:
        return _failure(f"scores given: {len(scores)}, asked: {count}")
    valid = tuple(score for score in scores if score is not None and math.isfinite(score) and low <= score <= high)
    if len(valid) != count:
        return _failure(f"a score is not a number from {low:g} to {high:g}")

    explanation = _get(holder, [reasoning_key])
    lines = explanation if isinstance(explanation, list) else [explanation]
    reasoning = "\n".join(line for line in lines if isinstance(line, str))
    if exact and holder is reply and not isinstance(value, dict) and any(key in holder for key in keys):
        return Parsed(Status.OK, valid, reasoning)
    return Parsed(Status.REPAIRED, valid, reasoning, "not strict JSON in the asked shape")


def _strict(source: str) -> dict[str, Any] | None:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        reply = json.loads(source, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None
    return reply if isinstance(reply, dict) else None


def _mend(source: str) -> object:
    if sum(map(source.count, "{[(")) > _MEND_BRACKETS:
        return None
    try:
        return json_repair.loads(source, skip_json_loads=True)
    except Exception:  # a defect of the mender on one garbled reply must not end a run of thousands
        return None


def _fold(key: object) -> str:
    return str(key).strip().lower().rstrip("s")


def _get(reply: object, names: Sequence[str]) -> Any:
    if not isinstance(reply, dict):
        return None
    folded = {_fold(key): value for key, value in reply.items()}
    values = [reply.get(name) for name in names] + [folded.get(_fold(name)) for name in names]
    return next((value for value in values if value is not None), None)


def _holder(reply: object, keys: Sequence[str]) -> dict[str, Any]:
    """The object with the scores: the reply or, where it alone has any, one directly inside it."""
    if not isinstance(reply, dict) or _get(reply, keys) is not None:
        return reply if isinstance(reply, dict) else {}
    inner = [value for value in reply.values() if _get(value, keys) is not None]
    return inner[0] if len(inner) == 1 else {}


def _number(item: object, high: float) -> float | None:
    """The number an item stands for, none if it is no number; infinity for `4/5` where the scale ends elsewhere."""
    if isinstance(item, str):
        match = _SCORE.fullmatch(item.strip())
        if match is None:
            return None
        if match[2] and float(match[2]) != high:
            return math.inf
        item = float(match[1])
    # The bound keeps out NaN, infinity and what no float can hold.
    if isinstance(item, bool) or not isinstance(item, (int, float)) or not abs(item) < 1e300:
        return None
    return float(item)


def _stands(source: str, scores: list[float | None], keys: Sequence[str], high: float) -> bool:
    """Whether these scores stand literally behind every score key; keys without quotes count where none has any."""
    names = "|".join(re.escape(_fold(key)) for key in keys)
    quoted = re.compile(rf"[{_QUOTES}](?:{names})s?[{_QUOTES}]\s*:", re.IGNORECASE)
    naked = re.compile(rf"\b(?:{names})s?\s*:", re.IGNORECASE)
    found = list(quoted.finditer(source)) or list(naked.finditer(source))
    for key in found:
        value = _VALUE.match(source, key.end())
        if value is None:
            return False
        pieces = (value[2] if value[1] is None else value[1]).split(",")
        if len(pieces) > 1 and not pieces[-1].strip():
            pieces.pop()
        # In an object a name precedes the number; stars are Markdown.
        if [_number(piece.rpartition(":")[2].strip(f"{_QUOTES}* \t\r\n"), high) for piece in pieces] != scores:
            return False
    return bool(found)
