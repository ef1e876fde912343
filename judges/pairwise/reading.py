"""From a reply about candidates A, B, ... to a vote about the candidates in the contest's order.

As with scores, nothing is guessed: answers that differ are none, and so is one that was cut off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from vieval_plugin.judges.contests import BOTH_BAD, BOTH_GOOD, FIRST, SECOND
from vieval_plugin.judges.json_repairs import QUOTES
from vieval_plugin.judges.pairwise.question import LETTERS, Form
from vieval_plugin.judges.parsing import (
    ONE_ANSWER,
    REFUSAL_INSIDE,
    ObjectText,
    answer_objects,
    owner,
    strict_object,
    values_of,
    without_thinking,
)
from vieval_plugin.judges.protocol import Status
from vieval_plugin.judges.refusals import declines, refuses, withdrawn
from vieval_plugin.judges.structured_chat import Read

ReplyForm: TypeAlias = Form | Literal["labels"]

BETTER, PLACES, REASONING = "better", "places", "reasoning"
_LONGEST_REASON = 600
_WITHDRAWN = "an answer beside words that decline to give any, or take it back"
_LABEL = re.compile(r"\[\[\s*(A\s*>>?\s*B|B\s*>>?\s*A|A\s*=\s*B(?:\s*=\s*(?:good|bad))?)\s*\]\]", re.IGNORECASE)


@dataclass(frozen=True)
class _Given:
    """What a reply has under its key; `strict` where it is JSON in the asked shape."""

    value: Any
    reason: str
    strict: bool


def schema(form: Form, number: int) -> dict[str, Any]:
    """JSON schema of an answer about so many candidates: a short reasoning first, and then what it comes to."""
    if form == "ranking":
        place = {"type": "integer", "minimum": 1, "maximum": number}
        key, answer = PLACES, _closed(dict.fromkeys(LETTERS[:number], place))
    else:
        key, answer = BETTER, {"type": "string", "enum": list(_votes(form, (1, 2)))}
    return _closed({REASONING: {"type": "string", "maxLength": _LONGEST_REASON}, key: answer})


def reader(form: ReplyForm, shown: Sequence[int]) -> Callable[[str], Read[str]]:
    """How a reply is read where `shown` are the candidates' numbers by place.

    >>> read = reader("four_way", (2, 1))
    >>> read('{"reasoning": "sharper", "better": "A"}').value
    'second'
    >>> reader("ranking", (3, 2, 1))('{"reasoning": "", "places": {"A": 2, "B": 1, "C": 2}}').value
    '2>1=3'
    """
    if form == "labels":
        return lambda text: _read_label(text, shown)
    key = PLACES if form == "ranking" else BETTER

    def read(text: str) -> Read[str]:
        given = _given(text, key)
        if isinstance(given, Read):
            return given
        if form == "ranking":
            return _ranked(given, shown)
        return _chosen(given, _votes(form, shown))

    return read


def plain_labels(text: str) -> frozenset[str]:
    """The different labels of GenAI-Bench's authors that a text without thinking has, in their plain form.

    >>> sorted(plain_labels("[[B>A]] at first sight. My verdict: [[A >> B]]"))
    ['A>B', 'B>A']
    >>> sorted(plain_labels("[[a=b=bad]] A>B"))
    ['A=B=Bad']
    """
    joined = ("".join(label.split()).replace(">>", ">").upper() for label in _LABEL.findall(text))
    return frozenset(label.replace("GOOD", "Good").replace("BAD", "Bad") for label in joined)


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _votes(form: Form, shown: Sequence[int]) -> dict[str, str]:
    """What may be answered of two candidates, and the vote that each answer is."""
    words = (FIRST, SECOND)
    votes = {letter: words[number - 1] for letter, number in zip(LETTERS, shown, strict=False)}
    return votes | ({"both good": BOTH_GOOD, "both bad": BOTH_BAD} if form == "four_way" else {})


def _given(text: str, key: str) -> _Given | Read[str]:
    """The value that all objects of a reply with the key agree on; a failed reading where they do not."""
    if not text.strip():
        return _unread("empty reply")
    answer = without_thinking(text)
    if not answer.strip():
        return _unread("nothing to read outside thinking")
    objects, outside = answer_objects(answer, key)
    if not objects:
        if refuses(answer):
            return Read(Status.REFUSAL, reason="the model declined to choose")
        return _Given(answer.strip().strip(f"{QUOTES}*.`[]() \n"), "", False)
    first, *others = (_under_key(source, key) for source in objects)
    if any(other is None or first is None or other.value != first.value for other in others):
        return _unread(ONE_ANSWER)
    if first is None:
        return _unread("not one JSON object with one answer, or cut off")
    return _unread(_WITHDRAWN) if withdrawn(outside) else first


def _under_key(source: ObjectText, key: str) -> _Given | None:
    """The value of an object under its key, if it has it once."""
    document = strict_object(source.text)
    holder = owner(document, key)
    if document is not None:
        values, [reason] = values_of(holder, key), values_of(holder, REASONING)[:1] or [""]
        exact = key in document
        return _Given(values[0], reason if isinstance(reason, str) else "", exact) if len(values) == 1 else None
    # not strict JSON, often for quotes within the reasoning: what stands behind the one key is still an answer
    named = rf"[{QUOTES}]{key}[{QUOTES}]\s*:"
    values = re.findall(rf"{named}\s*[{QUOTES}]([^{QUOTES}\n]+)[{QUOTES}]", source.text, re.IGNORECASE)
    once = len(re.findall(named, source.text, re.IGNORECASE)) == len(values) == 1
    return _Given(values[0], "", False) if once else None


def _chosen(given: _Given, votes: Mapping[str, str]) -> Read[str]:
    if not isinstance(given.value, str) or given.value == "":
        return _unread(f"no answer of {', '.join(votes)} under {BETTER!r}")
    plain = {label.casefold(): vote for label, vote in votes.items()}
    said = " ".join(re.split(r"[\s_-]+", given.value.strip().casefold())).removeprefix("candidate ")
    if said not in plain:
        return _unread(f"the answer is none of {', '.join(votes)}")
    return _read(plain[said], given, given.strict and given.value in votes)


def _ranked(given: _Given, shown: Sequence[int]) -> Read[str]:
    number = len(shown)
    letters = LETTERS[:number]
    places = given.value
    if not isinstance(places, dict) or sorted(places) != list(letters):
        return _unread(f"no object under {PLACES!r} with a place for each of {', '.join(letters)}")
    if not all(type(place) is int and 1 <= place <= number for place in places.values()):
        return _unread(f"a place is not a whole number from 1 to {number}")
    return _read(
        _ranking({shown[letters.index(letter)]: place for letter, place in places.items()}), given, given.strict
    )


def _ranking(places: Mapping[int, int]) -> str:
    """Candidates by their places as a ranking: `2>1=3`."""
    tied = [sorted(n for n in places if places[n] == place) for place in sorted(set(places.values()))]
    return ">".join("=".join(map(str, group)) for group in tied)


def _read_label(text: str, shown: Sequence[int]) -> Read[str]:
    """The vote of a reply's label; a bare tie is none, because it does not say of which kind."""
    text = without_thinking(text)
    labels = plain_labels(text)
    if not labels:
        refused = refuses(text)
        return Read(Status.REFUSAL, reason="the model declined to choose") if refused else _unread("no label found")
    if len(labels) > 1:
        return _unread(ONE_ANSWER)
    [label], outside = labels, _LABEL.split(text)[::2]
    votes = _votes("four_way", shown)
    plain = {"A>B": votes["A"], "B>A": votes["B"], "A=B=Good": BOTH_GOOD, "A=B=Bad": BOTH_BAD}
    if label not in plain:
        return _unread("a tie that is said to be neither good nor bad")
    return _unread(_WITHDRAWN) if withdrawn(outside) else _read(plain[label], _Given(label, outside[0], True), True)


def _read(vote: str, given: _Given, exact: bool) -> Read[str]:
    reason = " ".join(given.reason.split())
    short = reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]} [...]"
    finding = REFUSAL_INSIDE if declines(reason) else ""
    return Read(Status.OK if exact else Status.REPAIRED, vote, reason=short, finding=finding)


def _unread(reason: str) -> Read[str]:
    return Read(Status.PARSE_FAILURE, reason=reason)
