"""Counts, lists and numbers as people and JSON read them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from decimal import ROUND_HALF_UP, Decimal

#: Decimals that do not depend on the order of a sum.
_EXACT_DIGITS = 9
#: From here on a float has no such decimals.
_MOST_EXACT = 1e15


def plural(number: int, noun: str) -> str:
    """A number with its noun, which takes an s for all numbers but 1.

    >>> plural(1, "file"), plural(0, "file"), plural(1200, "image")
    ('1 file', '0 files', '1,200 images')
    """
    if number == 1:
        return f"{number:,} {noun}"
    return f"{number:,} {noun}s"


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
    if leading:
        return f"{', '.join(leading)} {conjunction} {final}"
    return final


def possessive(name: str) -> str:
    """The possessive form of a name.

    >>> possessive("mine"), possessive("theirs")
    ("mine's", "theirs'")
    """
    if name.endswith("s"):
        return f"{name}'"
    return f"{name}'s"


def decimals(value: float, form: str, undefined: str = "") -> str:
    """A number in a format; `undefined` in place of NaN.

    >>> decimals(0.51234, ".3f"), decimals(float("nan"), ".3f"), decimals(float("nan"), ".3f", "-")
    ('0.512', '', '-')
    """
    if math.isnan(value):
        return undefined
    return format(value, form)


def rounded(value: float, digits: int) -> str:
    """A number with so many decimals, a half away from 0.

    Sums that differ in their order differ in the last bits, so these are rounded off first.

    >>> rounded(0.345, 2), rounded(0.3449999999999999, 2), rounded(-0.0625, 3)
    ('0.35', '0.35', '-0.063')
    """
    if not abs(value) < _MOST_EXACT:  # also NaN
        return f"{value:.{digits}f}"
    exact = Decimal(repr(round(float(value), _EXACT_DIGITS)))
    unit = Decimal(1).scaleb(-digits)
    return f"{exact.quantize(unit, ROUND_HALF_UP):f}"


def nan_to_none(value: float) -> float | None:
    """A number as JSON has it, which has no NaN.

    >>> nan_to_none(0.5), nan_to_none(float("nan"))
    (0.5, None)
    """
    if math.isnan(value):
        return None
    return value


def none_to_nan(value: float | None) -> float:
    """The same the other way.

    >>> none_to_nan(0.5), none_to_nan(None)
    (0.5, nan)
    """
    if value is None:
        return math.nan
    return value


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
    prefixes = set()
    for name in names:
        step = _STEP.fullmatch(name)
        if step is None:
            return []
        prefixes.add(step[1])
    distinct = dict.fromkeys(names)
    if len(distinct) < 2 or len(prefixes) > 1:
        return []
    return sorted(distinct, key=natural)


def natural(name: str) -> list[tuple[int, str]]:
    """A sort key by which `2.png` stands before `10.png`."""
    pieces = re.split(r"(\d+)", name)
    key = []
    for piece in pieces:
        if piece.isdecimal():
            key.append((int(piece), ""))
        else:
            key.append((-1, piece))
    return key
