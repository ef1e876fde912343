"""Reading of a reply about candidates A, B, ...: a vote about the candidates in the contest's order.

As with scores, nothing is guessed: answers that differ are none, and so is one that was cut off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from vieval_plugin.judges.contests import BOTH_BAD, BOTH_GOOD, FIRST, SECOND
from vieval_plugin.judges.json_repairs import QUOTES, fold
from vieval_plugin.judges.pairwise.question import LETTERS, Form
from vieval_plugin.judges.parsing import (
    ONE_ANSWER,
    REFUSAL_INSIDE,
    ObjectText,
    answer_objects,
    has_object,
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

_VOTE = re.compile(r"(?:(?:candidate|image)\W)?[a-z]|both\W\w+|tie", re.IGNORECASE)
# a verdict in any form but the label's: a relation, a bracket, a sentence that ends with it
_VERDICT = re.compile(
    r"\b([AB])\s*(>{1,2}|<{1,2}|={1,2})\s*([AB])\b|\[\s*(A|B|C|tie[sd]?|both \w+)\s*\]"
    r"|\b([AB])\s+(?:is (?:the )?(?:clear(?:ly)? )?(?:better|best|winner|preferred)|wins)(?=[\s*]*(?:[.!]|$))"
    r"|\b(?:answer|verdict|choice|choose|winner|vote)[\s:*\"']+(?:is[\s:*\"']+)?([AB])\b(?!\s*[<>=]|[\s*]*[a-z])",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _KeyedAnswer:
    """Value that a reply has under its key; `strict` where it is JSON in the asked shape."""

    value: Any
    reason: str
    strict: bool


def schema(form: Form, number: int) -> dict[str, Any]:
    """JSON schema of an answer about so many candidates: a short reasoning first, and then what it comes to."""
    if form == "ranking":
        place = {"type": "integer", "minimum": 1, "maximum": number}
        key, answer = PLACES, _object_schema(dict.fromkeys(LETTERS[:number], place))
    else:
        key, answer = BETTER, {"type": "string", "enum": list(_votes(form, (1, 2)))}
    return _object_schema({REASONING: {"type": "string", "maxLength": _LONGEST_REASON}, key: answer})


def reader(form: ReplyForm, numbers: Sequence[int]) -> Callable[[str], Read[str]]:
    """Reader of a reply, where `numbers` are the candidates' numbers by place.

    >>> read = reader("four_way", (2, 1))
    >>> read('{"reasoning": "sharper", "better": "A"}').value
    'second'
    >>> reader("ranking", (3, 2, 1))('{"reasoning": "", "places": {"A": 2, "B": 1, "C": 2}}').value
    '2>1=3'
    """
    if form == "labels":
        return lambda text: _read_label(text, numbers)
    key = PLACES if form == "ranking" else BETTER

    def read(text: str) -> Read[str]:
        answer = _answer_under_key(text, key)
        if isinstance(answer, Read):
            return answer
        if form == "ranking":
            return _ranked(answer, numbers)
        return _vote(answer, _votes(form, numbers))

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


def _object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _votes(form: Form, numbers: Sequence[int]) -> dict[str, str]:
    """Answers that are allowed for two candidates, each with the vote that it is."""
    words = (FIRST, SECOND)
    votes = {letter: words[number - 1] for letter, number in zip(LETTERS, numbers, strict=False)}
    return votes | ({"both good": BOTH_GOOD, "both bad": BOTH_BAD} if form == "four_way" else {})


def _answer_under_key(text: str, key: str) -> _KeyedAnswer | Read[str]:
    """The value that all objects of a reply with the key agree on; a failed reading where they do not."""
    if not text.strip():
        return _unreadable("empty reply")
    answer = without_thinking(text)
    if not answer.strip():
        return _unreadable("nothing to read outside thinking")
    objects, outside = answer_objects(answer, key)
    if not objects:
        if refuses(answer):
            return Read(Status.REFUSAL, reason="the model declined to choose")
        return _KeyedAnswer(answer.strip().strip(f"{QUOTES}*.`[]() \n"), "", False)
    first, *further = (_under_key(source, key) for source in objects)
    if any(other is None or first is None or other.value != first.value for other in further):
        return _unreadable(ONE_ANSWER)
    if first is None:
        return _unreadable("not one JSON object with one answer, or cut off")
    plain = str(first.value).strip().upper()
    stated = set() if isinstance(first.value, dict) else _verdicts("\n".join(outside))
    if has_object(outside) or stated - {"=" if plain.startswith("BOTH") else plain[-1:]}:
        return _unreadable(ONE_ANSWER)
    return _unreadable(_WITHDRAWN) if withdrawn(outside) else first


def _under_key(source: ObjectText, key: str) -> _KeyedAnswer | None:
    """The value of an object under its key, if it has it once."""
    document = strict_object(source.text)
    holder = owner(document, key)
    if document is not None:
        values, [reason] = values_of(holder, key), values_of(holder, REASONING)[:1] or [""]
        exact = key in document
        further = [item for name, item in holder.items() if fold(name) not in (key, fold(REASONING))]
        if len(values) != 1 or any(item != values[0] for item in further if _may_be_answer(item)):
            return None
        return _KeyedAnswer(values[0], reason if isinstance(reason, str) else "", exact)
    # not strict JSON, often for quotes within the reasoning: what stands behind the one key is still an answer
    named = rf"[{QUOTES}]{key}[{QUOTES}]\s*:"
    values = re.findall(rf"{named}\s*[{QUOTES}]([^{QUOTES}\n]+)[{QUOTES}]", source.text, re.IGNORECASE)
    once = len(re.findall(named, source.text, re.IGNORECASE)) == len(values) == 1
    return _KeyedAnswer(values[0], "", False) if once else None


def _may_be_answer(item: object) -> bool:
    """Return whether a value is like a vote, or holds further values."""
    return isinstance(item, dict) or (isinstance(item, str) and bool(_VOTE.fullmatch(item.strip())))


def _verdicts(text: str) -> set[str]:
    """The verdicts that a text has in any form: A, B or a tie (`=`).

    >>> sorted(_verdicts("[[A<B]] [Tie] A is better. I choose A"))
    ['=', 'A', 'B']
    """
    verdicts = set()
    for match in _VERDICT.finditer(text):
        left, relation, right, *letters = match.groups()
        if relation:
            verdicts.add("=" if "=" in relation else (left if ">" in relation else right).upper())
        else:
            [word] = filter(None, letters)
            verdicts.add(word.upper() if len(word) == 1 else "=")
    return verdicts


def _vote(answer: _KeyedAnswer, votes: Mapping[str, str]) -> Read[str]:
    if not isinstance(answer.value, str) or answer.value == "":
        return _unreadable(f"no answer of {', '.join(votes)} under {BETTER!r}")
    plain = {label.casefold(): vote for label, vote in votes.items()}
    choice = " ".join(re.split(r"[\s_-]+", answer.value.strip().casefold())).removeprefix("candidate ")
    if choice not in plain:
        return _unreadable(f"the answer is none of {', '.join(votes)}")
    return _read(plain[choice], answer, answer.strict and answer.value in votes)


def _ranked(answer: _KeyedAnswer, numbers: Sequence[int]) -> Read[str]:
    number = len(numbers)
    letters = LETTERS[:number]
    places = answer.value
    if not isinstance(places, dict) or sorted(places) != list(letters):
        return _unreadable(f"no object under {PLACES!r} with a place for each of {', '.join(letters)}")
    if not all(type(place) is int and 1 <= place <= number for place in places.values()):
        return _unreadable(f"a place is not a whole number from 1 to {number}")
    return _read(
        _ranking({numbers[letters.index(letter)]: place for letter, place in places.items()}), answer, answer.strict
    )


def _ranking(places: Mapping[int, int]) -> str:
    """Candidates by their places as a ranking: `2>1=3`."""
    tied = [sorted(n for n in places if places[n] == place) for place in sorted(set(places.values()))]
    return ">".join("=".join(map(str, group)) for group in tied)


def _read_label(text: str, numbers: Sequence[int]) -> Read[str]:
    """The vote of a reply's label; a bare tie is none, because it does not say of which kind."""
    text = without_thinking(text)
    labels = plain_labels(text)
    if not labels:
        refused = refuses(text)
        return Read(Status.REFUSAL, reason="the model declined to choose") if refused else _unreadable("no label found")
    [label, *further], outside = labels, _LABEL.split(text)[::2]
    if further or _verdicts("\n".join(outside)) - {"=" if "=" in label else label[0]}:
        return _unreadable(ONE_ANSWER)
    votes = _votes("four_way", numbers)
    plain = {"A>B": votes["A"], "B>A": votes["B"], "A=B=Good": BOTH_GOOD, "A=B=Bad": BOTH_BAD}
    if label not in plain:
        return _unreadable("a tie that is said to be neither good nor bad")
    return (
        _unreadable(_WITHDRAWN)
        if withdrawn(outside)
        else _read(plain[label], _KeyedAnswer(label, outside[0], True), True)
    )


def _read(vote: str, answer: _KeyedAnswer, exact: bool) -> Read[str]:
    reason = " ".join(answer.reason.split())
    short = reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]} [...]"
    finding = REFUSAL_INSIDE if declines(reason) else ""
    return Read(Status.OK if exact else Status.REPAIRED, vote, reason=short, finding=finding)


def _unreadable(reason: str) -> Read[str]:
    return Read(Status.PARSE_FAILURE, reason=reason)
