"""Reading of a reply about candidates A, B, ...: a vote about the candidates in the contest's
order.

As with scores, an answer is the whole object that was asked for; of the authors' labels, the one
that ends the reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from vieval_plugin.judges.contests import BOTH_BAD, BOTH_GOOD, FIRST, SECOND
from vieval_plugin.judges.pairwise.question import LETTERS, Form
from vieval_plugin.judges.parsing import (
    REASONING,
    Read,
    number_schema,
    object_schema,
    read_answer,
    reasoned,
    text_schema,
    unread,
)
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
        rank_schema = number_schema(1, number, "integer")
        key = PLACES_KEY
        answer = object_schema(dict.fromkeys(LETTERS[:number], rank_schema))
    else:
        key = BETTER_KEY
        answer = {"type": "string", "enum": list(_votes(form, (1, 2)))}
    return object_schema({REASONING: text_schema(_LONGEST_REASON), key: answer})


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
            return unread(error)
        if form != "ranking":
            vote = _votes(form, numbers)[answer[BETTER_KEY]]
            return _read(vote, answer[REASONING], exact)
        ranks = dict(
            zip(
                numbers,
                map(answer[PLACES_KEY].get, LETTERS),
                strict=False,
            )
        )
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
    candidate_votes = [(FIRST, SECOND)[number - 1] for number in numbers]
    votes = dict(zip(LETTERS, candidate_votes, strict=False))
    if form == "four_way":
        votes |= {"both good": BOTH_GOOD, "both bad": BOTH_BAD}
    return votes


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
        return unread(ONE_ANSWER if labels else "no label found")
    [label] = labels
    votes = _votes("four_way", numbers)
    plain = {
        "A>B": votes["A"],
        "B>A": votes["B"],
        "A=B=Good": BOTH_GOOD,
        "A=B=Bad": BOTH_BAD,
    }
    if label not in plain:
        return unread("a tie must be labelled good or bad")
    return _read(plain[label], _LABEL.split(text)[0], True)


def _ends_in_label(text: str) -> bool:
    """Return whether the last line has a label and at most a lead-in to it."""
    last_line = remove_ending(text).rpartition("\n")[2]
    label = _LABEL.search(last_line)
    if not label:
        return False
    behind = last_line[label.end() :].strip("\"'")
    return not behind and is_lead_in(last_line[: label.start()].strip("\"'"))


def _read(vote: str, reasoning: str, exact: bool) -> Read[str]:
    reason = " ".join(reasoning.split())
    read = reasoned(vote, (), reason, exact)
    if len(reason) <= _LONGEST_REASON:
        return read
    return replace(read, reason=f"{reason[:_LONGEST_REASON]} [...]")
