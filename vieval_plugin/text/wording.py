"""Counts, lists and numbers as people and JSON read them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence


def plural(number: int, noun: str) -> str:
    """A number with its noun, which takes an s for all numbers but 1.

    >>> plural(1, "file"), plural(0, "file"), plural(1200, "image")
    ('1 file', '0 files', '1,200 images')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def range_text(numbers: Collection[int]) -> str:
    """The least and the greatest of numbers, or the one that all are.

    >>> range_text([3, 5, 4]), range_text([3, 3])
    ('3 to 5', '3')
    """
    ends = sorted({min(numbers), max(numbers)})
    return " to ".join(f"{number:,}" for number in ends)


def enumeration(names: Sequence[str], conjunction: str = "and") -> str:
    """Names as a sentence lists them.

    >>> enumeration(["a"]), enumeration(["a", "b", "c"]), enumeration(["a", "b"], "or")
    ('a', 'a, b and c', 'a or b')
    """
    *leading, final = names
    return f"{', '.join(leading)} {conjunction} {final}" if leading else final


def possessive(name: str) -> str:
    """The possessive form of a name.

    >>> possessive("mine"), possessive("theirs")
    ("mine's", "theirs'")
    """
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def decimals(value: float, form: str, undefined: str = "") -> str:
    """A number in a format; `undefined` in place of NaN.

    >>> decimals(0.51234, ".3f"), decimals(float("nan"), ".3f"), decimals(float("nan"), ".3f", "-")
    ('0.512', '', '-')
    """
    return undefined if math.isnan(value) else format(value, form)


def nan_to_none(value: float) -> float | None:
    """A number as JSON has it, which has no NaN.

    >>> nan_to_none(0.5), nan_to_none(float("nan"))
    (0.5, None)
    """
    return None if math.isnan(value) else value


def none_to_nan(value: float | None) -> float:
    """The same the other way.

    >>> none_to_nan(0.5), none_to_nan(None)
    (0.5, nan)
    """
    return math.nan if value is None else value


_WITHIN_NUMBERS = re.compile(
    r"(?<=\bp) (?=[<=])|(?<=[<=]) (?=\.?\d)|(?<=\d) (?=to -?\d)|(?<=\bto) (?=-?\d)|(?<=\bn) (?=\d)"
)


def unbroken(text: str) -> str:
    """A text in which no line ends within a number or an interval.

    >>> unbroken("0.07 to 0.14, p < .001, on 36").split(" ")
    ['0.07\\xa0to\\xa00.14,', 'p\\xa0<\\xa0.001,', 'on', '36']
    """
    return _WITHIN_NUMBERS.sub("\N{NO-BREAK SPACE}", text)


_STEP = re.compile(
    r"(.*(?:step|checkpoint|ckpt|epoch|iter|iteration)s?)[-_ =.]?(\d+)", re.IGNORECASE
)


def steps_in_order(names: Sequence[str]) -> list[str]:
    """Names of the steps of one training in their order; empty for other names.

    >>> steps_in_order(["lora_step_900", "lora_step_1200", "lora_step_300"])
    ['lora_step_300', 'lora_step_900', 'lora_step_1200']
    >>> steps_in_order(["epoch1", "final"]), steps_in_order(["flux1", "flux2"])
    ([], [])
    """
    steps = {name: _STEP.fullmatch(name) for name in names}
    prefixes = {step and step[1] for step in steps.values()}
    if len(steps) < 2 or len(prefixes) > 1 or None in prefixes:
        return []
    return sorted(steps, key=natural)


def natural(name: str) -> list[tuple[int, str]]:
    """A sort key by which `2.png` stands before `10.png`."""
    pieces = re.split(r"(\d+)", name)
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in pieces]
