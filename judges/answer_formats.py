"""Formats of answers with sub-scores: what a server is asked to hold to, and how a reply is read.

A new format is an object here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import TypeAlias

from vieval_plugin.judges.parsing import (
    Read,
    parse_number,
    parse_scores,
    reasoned,
    reply_schema,
    unread,
)
from vieval_plugin.judges.protocol import Schema, Scores
from vieval_plugin.judges.wrapping import remove_ending, remove_thinking
from vieval_plugin.prompts.pack import Pack
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.suggestions import did_you_mean

_MARKS = r"[\s*_#>`\-\u2022]*"
_RANGE = r"(?:[(\[][^()\[\]\n]{0,40}[)\]])?"
_NUMBER = r"(?P<number>[+-]?\d{1,4}(?:\.\d{1,6})?)(?:\s*/\s*(?P<of>\d{1,4}))?"

Reader: TypeAlias = Callable[[str], Read[Scores]]


@dataclass(frozen=True)
class ScoresAsked:
    """Sub-scores that a question asks for."""

    #: Their names, in order.
    names: tuple[str, ...]
    low: float
    high: float
    #: Keys of the JSON that the question shows.
    keys: tuple[str, ...]
    #: Further keys that may be there.
    optional: tuple[str, ...] = ()


@dataclass(frozen=True)
class AnswerFormat:
    """Format of the answers to a rubric's questions."""

    #: `replies` of a judge file.
    name: str
    reader: Callable[[ScoresAsked], Reader]
    #: Schema that a server enforces, None where it is not asked to.
    schema: Callable[[ScoresAsked], Schema | None] = lambda asked: None
    #: What is wrong with the names of a question's sub-scores, or nothing.
    problem: Callable[[Sequence[str]], str] = lambda names: ""
    #: Keys of a judge file that mean something with it alone.
    keys: frozenset[str] = frozenset()


def _json_reader(spec: ScoresAsked) -> Reader:
    schema = reply_schema(
        count=len(spec.names),
        high=spec.high,
        low=spec.low,
        keys=spec.keys,
        optional=spec.optional,
    )
    return partial(parse_scores, schema=schema)


def _lines_problem(names: Sequence[str]) -> str:
    for first, second in permutations(names, 2):
        if mentions(second, first):
            return f"labels must not contain each other, got {first!r} in {second!r}"
    return ""


_FORMATS = (
    AnswerFormat(
        "json",
        _json_reader,
        lambda spec: reply_schema(len(spec.names), spec.high, spec.low),
        keys=frozenset(["optional"]),
    ),
    AnswerFormat("free_json", _json_reader, keys=frozenset(["optional"])),
    AnswerFormat(
        "number",
        lambda spec: partial(parse_number, low=spec.low, high=spec.high),
        problem=lambda names: (
            "must contain only one name if `replies` is `number`"
            if len(names) > 1
            else ""
        ),
    ),
    AnswerFormat(
        "labelled_lines",
        lambda spec: partial(
            parse_labelled_lines,
            labels=spec.names,
            low=spec.low,
            high=spec.high,
        ),
        problem=_lines_problem,
    ),
)
#: By the name that a judge file has.
FORMATS: Mapping[str, AnswerFormat] = {form.name: form for form in _FORMATS}
#: All names, with those of answers that are no sub-scores, each of which one judge reads.
NAMES = (
    *FORMATS,
    "markdown",
    "labels",
    "expected",
    "two_way",
    "four_way",
)


def require_known_format(pack: Pack) -> None:
    """VievalError, with the nearest name, for a pack whose answers have no known format."""
    if pack.replies not in NAMES:
        hint = did_you_mean(pack.replies, NAMES, 0.5)
        formats = ", ".join(NAMES)
        raise VievalError(
            f"{pack.path}: replies: unknown format {pack.replies!r}{hint or ';'} known formats: {formats}"
        )


def format_of(pack: Pack) -> AnswerFormat:
    """The format of the answers to a pack; VievalError where a rubric's cannot have it."""
    if pack.replies not in FORMATS:
        formats = ", ".join(FORMATS)
        raise VievalError(
            f"{pack.path}: replies: must be one of {formats} for sub-scores, got {pack.replies!r}"
        )
    return FORMATS[pack.replies]


def parse_labelled_lines(
    text: str, labels: Sequence[str], low: float, high: float
) -> Read[Scores]:
    """Read the number behind each label, as in `Alignment Score (1-5): 4`: some judges are tuned to
    such a form and answer in it, whatever they are asked for.

    Source of the form: public scripts that ask UnifiedReward for scores of one image.

    Args:
        text: the reply as it came.
        labels: each begins a line of its own, once, in this order, and stands nowhere else.
        low, high: ends of the range of each number.

    Returns:
        `OK` with the numbers in the order of the labels, and what else was said as the reason; else
        `PARSE_FAILURE`.

    >>> parse_labelled_lines("A clean edit.\\nFidelity (1-5): 4\\n**Quality:** 3/5", ["Fidelity", "Quality"], 1, 5).scores
    (4.0, 3.0)
    >>> parse_labelled_lines("Fidelity: 4 or 5", ["Fidelity"], 1, 5).reason
    'the line for "Fidelity" must contain only its label and one number from 1 to 5'
    """
    answer = remove_ending(remove_thinking(text))
    lines = answer.splitlines()
    line_numbers = list[int]()
    scores = list[float]()
    for label in labels:
        if mentions(answer, label) != 1:
            return unread(f'"{label}" must occur exactly once')
        line_number = [mentions(line, label) for line in lines].index(1)
        score = _number(lines[line_number], label, low, high)
        if score is None:
            expected = f"only its label and one number from {low:g} to {high:g}"
            return unread(f'the line for "{label}" must contain {expected}')
        line_numbers.append(line_number)
        scores.append(score)
    if line_numbers != sorted(set(line_numbers)):
        return unread("the labels must be in the requested order")
    other_lines = [line for n, line in enumerate(lines) if n not in line_numbers]
    return reasoned(
        tuple(scores),
        tuple(scores),
        "\n".join(other_lines).strip(),
        True,
    )


def mentions(text: str, label: str) -> int:
    """Count the occurrences of a label in a text, as whole words in any case.

    >>> mentions("Final score: 4 of the Score", "score"), mentions("Scores", "score")
    (2, 0)
    """
    pattern = r"\s+".join(map(re.escape, label.split()))
    return len(
        re.findall(
            rf"(?<!\w){pattern}(?!\w)",
            text,
            re.IGNORECASE,
        )
    )


def _number(line: str, label: str, low: float, high: float) -> float | None:
    """The number of a line that is a label and one number in range; None for any other."""
    name = r"\s+".join(map(re.escape, label.split()))
    label_part = rf"{_MARKS}{name}{_MARKS}{_RANGE}{_MARKS}"
    pattern = rf"{label_part}[:\uff1a][\s*_`]*{_NUMBER}[\s*_.`]*"
    match = re.fullmatch(pattern, line, re.IGNORECASE)
    if not match or (match["of"] and float(match["of"]) != high):
        return None
    number = float(match["number"])
    return number if low <= number <= high else None
