"""Reading of a reply about candidates A, B, ...: a vote about the candidates in the contest's
order.

As with scores, an answer is the whole object that was asked for; of the authors' labels, the one
that ends the reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from vieval_plugin.judges.contests import BOTH_BAD, BOTH_GOOD, FIRST, SECOND
from vieval_plugin.judges.pairwise.question import LETTERS, Form
from vieval_plugin.judges.parsing import (
    REASONING,
    REFUSAL_INSIDE,
    Read,
    object_schema,
    read_answer,
)
from vieval_plugin.judges.protocol import Status
from vieval_plugin.judges.refusals import declines
from vieval_plugin.judges.wrapping import is_lead_in, remove_ending, remove_thinking
from vieval_plugin.text.yaml_json import JsonObject

ReplyForm: TypeAlias = Form | Literal["labels"]

BETTER_KEY = "better"
PLACES_KEY = "places"
ONE_ANSWER = "the reply must end with exactly one label"
_LONGEST_REASON = 600
_LABEL = re.compile(
    r"\[\[\s*(A\s*>>?\s*B|B\s*>>?\s*A|A\s*=\s*B(?:\s*=\s*(?:good|bad))?)\s*\]\]",
    re.IGNORECASE,
)


def schema(form: Form, number: int) -> JsonObject:
    """JSON schema of an answer about so many candidates: a short reasoning first, and then what
    it comes to.
    """
    if form == "ranking":
        rank_schema = {
            "type": "integer",
            "minimum": 1,
            "maximum": number,
        }
        key = PLACES_KEY
        answer = object_schema(dict.fromkeys(LETTERS[:number], rank_schema))
    else:
        key = BETTER_KEY
        answer = {"type": "string", "enum": list(_votes(form, (1, 2)))}
    reasoning = {
        "type": "string",
        "minLength": 1,
        "maxLength": _LONGEST_REASON,
    }
    return object_schema({REASONING: reasoning, key: answer})


def reader(form: ReplyForm, numbers: Sequence[int]) -> Callable[[str], Read[str]]:
    """Reader of a reply, where `numbers` are the candidates' numbers by place.

    >>> read = reader("four_way", (2, 1))
    >>> read('{"reasoning": "sharper", "better": "A"}').value
    'second'
    >>> reader("ranking", (3, 2, 1))('{"reasoning": "a tie", "places": {"A": 2, "B": 1, "C": 2}}').value
    '2>1=3'
    """
    if form == "labels":
        return lambda text: read_label(text, numbers)
    answer_schema = schema(form, len(numbers))

    def read(text: str) -> Read[str]:
        try:
            answer, exact = read_answer(text, answer_schema)
        except ValueError as error:
            return _unreadable(str(error))
        if form != "ranking":
            vote = _votes(form, numbers)[answer[BETTER_KEY]]
            return _read(vote, answer[REASONING], exact)
        ranks = {}
        for letter, number in zip(LETTERS, numbers, strict=False):
            ranks[number] = answer[PLACES_KEY][letter]
        return _read(_ranking(ranks), answer[REASONING], exact)

    return read


def plain_labels(text: str) -> frozenset[str]:
    """The different labels of GenAI-Bench's authors that a text without thinking has, in their
    plain form.

    >>> sorted(plain_labels("[[B>A]] at first sight. My verdict: [[A >> B]]"))
    ['A>B', 'B>A']
    >>> sorted(plain_labels("[[a=b=bad]] A>B"))
    ['A=B=Bad']
    """
    labels = set()
    for label in _LABEL.findall(text):
        plain = "".join(label.split()).replace(">>", ">").upper()
        labels.add(plain.replace("GOOD", "Good").replace("BAD", "Bad"))
    return frozenset(labels)


def _votes(form: Form, numbers: Sequence[int]) -> dict[str, str]:
    """Answers that are allowed for two candidates, each with the vote that it is."""
    candidate_votes = (FIRST, SECOND)
    votes = {}
    for letter, number in zip(LETTERS, numbers, strict=False):
        votes[letter] = candidate_votes[number - 1]
    return votes | (
        {"both good": BOTH_GOOD, "both bad": BOTH_BAD} if form == "four_way" else {}
    )


def _ranking(ranks: Mapping[int, int]) -> str:
    """Candidates by their places as a ranking: `2>1=3`."""
    tied = []
    for rank in sorted(set(ranks.values())):
        group = sorted(n for n in ranks if ranks[n] == rank)
        tied.append("=".join(map(str, group)))
    return ">".join(tied)


def read_label(
    text: str, numbers: Sequence[int] = (1, 2), *, recorded: bool = False
) -> Read[str]:
    """The vote of the one label that ends a reply; a bare tie is none, because it does not say of
    which kind.

    In a `recorded` reply the one label may stand anywhere, as its authors read it.
    """
    text = remove_thinking(text)
    labels = plain_labels(text)
    has_other_brackets = len(_LABEL.findall(text)) < text.count("[[")
    is_at_end = recorded or _ends_in_label(text)
    if len(labels) != 1 or has_other_brackets or not is_at_end:
        return _unreadable(ONE_ANSWER if labels else "no label found")
    [label] = labels
    votes = _votes("four_way", numbers)
    plain = {
        "A>B": votes["A"],
        "B>A": votes["B"],
        "A=B=Good": BOTH_GOOD,
        "A=B=Bad": BOTH_BAD,
    }
    if label not in plain:
        return _unreadable("a tie must be labelled good or bad")
    return _read(plain[label], _LABEL.split(text)[0], True)


def _ends_in_label(text: str) -> bool:
    """Return whether the last line has a label and at most a lead-in to it."""
    last_line = remove_ending(text).rpartition("\n")[2]
    label = _LABEL.search(last_line)
    if label is None:
        return False
    before = last_line[: label.start()].strip("\"'")
    behind = last_line[label.end() :].strip("\"'")
    return not behind and is_lead_in(before)


def _read(vote: str, reasoning: str, exact: bool) -> Read[str]:
    reason = " ".join(reasoning.split())
    short = reason
    if len(reason) > _LONGEST_REASON:
        short = f"{reason[:_LONGEST_REASON]} [...]"
    finding = REFUSAL_INSIDE if declines(reason) else ""
    return Read(
        Status.OK if exact else Status.REPAIRED,
        vote,
        reason=short,
        finding=finding,
    )


def _unreadable(reason: str) -> Read[str]:
    return Read(Status.PARSE_FAILURE, reason=reason)
