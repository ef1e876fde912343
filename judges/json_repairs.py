"""JSON that is not quite JSON: json_repair drops and invents to make ends meet, so what it returns is checked against
the text.
"""

from __future__ import annotations

import math
import re

import json_repair

LONGEST = 4000
"""How much of a text is repaired: json_repair takes quadratic time on hostile text, and this keeps a reply at about a second."""

NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
SCORE = re.compile(rf"({NUMBER})(?:\s*/\s*({NUMBER}))?")
QUOTES = "\"'\u201c\u201d\u2018\u2019"

_MOST_BRACKETS = 24
# A value without brackets ends at a comma, unless a digit follows: 8,5 may be a decimal, and 7, 8 two scores.
_VALUE = re.compile(r"\s*(?:[\[{(]([^\]})]*)[\]})]|([^\[{(]*?)(?:,(?!\s*[0-9])|[}\n]))")


def repair_json(source: str) -> object:
    """Value that json_repair makes of a text; None for one with too many brackets."""
    if sum(map(source.count, "{[(")) > _MOST_BRACKETS:
        return None
    try:
        return json_repair.loads(source, skip_json_loads=True)
    except Exception:  # a defect of json_repair on one garbled reply must not end a run of thousands
        return None


def fold(key: object) -> str:
    """A key in lower case, without a plural s."""
    return str(key).strip().lower().rstrip("s")


def number(item: object, high: float) -> float | None:
    """The number an item stands for, none if it is no number; infinity for `4/5` where the scale ends elsewhere."""
    if isinstance(item, str):
        match = SCORE.fullmatch(item.strip())
        if match is None:
            return None
        if match[2] and float(match[2]) != high:
            return math.inf
        item = float(match[1])
    # The bound keeps out NaN, infinity and what no float can hold.
    if isinstance(item, bool) or not isinstance(item, (int, float)) or not abs(item) < 1e300:
        return None
    return float(item)


def stands(source: str, scores: list[float | None], name: str, high: float) -> bool:
    """Return whether these scores stand literally behind every such key; keys without quotes count where none has any."""
    quoted = re.compile(rf"[{QUOTES}]{name}s?[{QUOTES}]\s*:", re.IGNORECASE)
    naked = re.compile(rf"\b{name}s?\s*:", re.IGNORECASE)
    keys = list(quoted.finditer(source)) or list(naked.finditer(source))
    for key in keys:
        value = _VALUE.match(source, key.end())
        if value is None:
            return False
        pieces = (value[2] if value[1] is None else value[1]).rstrip().removesuffix(",").split(",")
        # In an object a name precedes the number; stars are Markdown.
        if [number(piece.rpartition(":")[2].strip(f"{QUOTES}* \t\r\n"), high) for piece in pieces] != scores:
            return False
    return bool(keys)
