"""Formats of answers with sub-scores: what a server is asked to hold to, and how a reply is read.

A new format is an object here, with its name among `Replies`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any, TypeAlias

from vieval_plugin.judges.labelled_lines import mentions, parse_labelled_lines
from vieval_plugin.judges.parsing import Read, parse_number, parse_scores, reply_schema
from vieval_plugin.prompts.pack import Pack
from vieval_plugin.text.errors import VievalError

Schema: TypeAlias = Mapping[str, Any]
Reader: TypeAlias = Callable[[str], Read[tuple[float, ...]]]


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


def _json_reader(asked: ScoresAsked) -> Reader:
    schema = reply_schema(
        len(asked.names), asked.high, asked.low, asked.keys, asked.optional
    )
    return partial(parse_scores, schema=schema)


def _json_schema(asked: ScoresAsked) -> Schema:
    return reply_schema(len(asked.names), asked.high, asked.low)


def _number_reader(asked: ScoresAsked) -> Reader:
    return partial(parse_number, low=asked.low, high=asked.high)


def _lines_reader(asked: ScoresAsked) -> Reader:
    return partial(
        parse_labelled_lines, labels=asked.names, low=asked.low, high=asked.high
    )


def _number_problem(names: Sequence[str]) -> str:
    return "one name, where replies are number" if len(names) > 1 else ""


def _lines_problem(names: Sequence[str]) -> str:
    for first, second in permutations(names, 2):
        if mentions(second, first):
            return f"{first!r} is part of {second!r}; labels must be told apart"
    return ""


_FORMATS = (
    AnswerFormat("json", _json_reader, _json_schema, keys=frozenset(["optional"])),
    AnswerFormat("free_json", _json_reader, keys=frozenset(["optional"])),
    AnswerFormat("number", _number_reader, problem=_number_problem),
    AnswerFormat("labelled_lines", _lines_reader, problem=_lines_problem),
)
#: By the name that a judge file has.
FORMATS: Mapping[str, AnswerFormat] = {form.name: form for form in _FORMATS}


def format_of(pack: Pack) -> AnswerFormat:
    """The format of the answers to a pack; VievalError where a rubric's cannot have it."""
    if pack.replies not in FORMATS:
        known = ", ".join(FORMATS)
        raise VievalError(
            f"{pack.path}: replies: not {pack.replies!r} for sub-scores; known: {known}"
        )
    return FORMATS[pack.replies]
