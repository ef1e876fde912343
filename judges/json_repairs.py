"""JSON that is not quite JSON: json_repair drops and invents to make ends meet, so what it returns
is checked against the text.
"""

from __future__ import annotations

import math
import re

#: How much of a text is repaired: json_repair takes quadratic time on hostile text, and this keeps
#: a reply at about a second.
_LONGEST = 4000
_MOST_BRACKETS = 24
_NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_SCORE = re.compile(rf"({_NUMBER})(?:\s*/\s*({_NUMBER}))?")
_TOKEN = re.compile(r"[^\s,:\"'`\\\[\]{}\u201c\u201d\u2018\u2019]+|:")
# a quotation mark behind a value that had none before it, or a key in the midst of words: both may
# stand in a quoted text
_QUOTED = re.compile(
    r"(?:\]|:\s*[\"']?[0-9][0-9./\s]*[\"']?)[\"'\u2019\u201d]\s*[,}]"
    r"|[^\s{,\]\"'\u2018\u2019\u201c\u201d]\s*[\"'\u2018\u201c]\w+[\"'\u2019\u201d]\s*:"
)
# a key behind a comma that no value ends: it stands in a text whose quotation mark is missing
_NEXT_KEY = re.compile(r",\s*[\"'\u2018\u201c]\w+[\"'\u2019\u201d]\s*:")
_VALUE_END = re.compile(
    r"(?:[\]}\"'\u2019\u201d]|[:\[,]\s*[-+]?[0-9.]+|true|false|null)\s*\Z"
)
_ESCAPED = re.compile(r"\\[nrt]")


def repair_json(source: str) -> object:
    """Value of a text in which only quotes, commas and closing brackets are amiss.

    Raises:
        ValueError: it says anything else than the text, word for word, or goes on behind its first
            closing brace.
    """
    import json_repair

    inside = source.rstrip("} \t\r\n")
    brackets = sum(map(source.count, "{[("))
    is_too_long = len(source) > _LONGEST or brackets > _MOST_BRACKETS
    if not source or is_too_long or "}" in inside:
        raise ValueError("expected one complete JSON object")
    try:
        value = json_repair.loads(source, skip_json_loads=True)
    except (
        Exception
    ):  # a defect of json_repair on one garbled reply must not end a run of thousands
        value = None
    is_ambiguous = _QUOTED.search(source) or _key_in_text(source)
    tokens = _TOKEN.findall(_ESCAPED.sub(" ", source))
    if is_ambiguous or _TOKEN.findall(_flat(value)) != tokens:
        raise ValueError("the JSON is ambiguous")
    return value


def _key_in_text(source: str) -> bool:
    """Return whether a key may stand in a text, so that its value would be moved out of it."""
    for key in _NEXT_KEY.finditer(source):
        if not _VALUE_END.search(source[max(key.start() - 40, 0) : key.start()]):
            return True
    return False


def _flat(value: object) -> str:
    """The keys and values of a value as text, in order."""
    if isinstance(value, dict):
        fields = [f"{key} : {_flat(item)}" for key, item in value.items()]
        return " ".join(fields)
    if isinstance(value, list):
        return " ".join(map(_flat, value))
    return str(value)


def number(item: object, high: float) -> float | None:
    """The number an item stands for, none if it is not a number; infinity for `4/5`
    where the scale ends elsewhere.
    """
    if isinstance(item, str):
        match = _SCORE.fullmatch(item.strip())
        if not match:
            return None
        if match[2] and float(match[2]) != high:
            return math.inf
        item = float(match[1])
    # The bound keeps out NaN, infinity and what no float can hold.
    if isinstance(item, bool) or not isinstance(item, (int, float)):
        return None
    return float(item) if abs(item) < 1e300 else None
