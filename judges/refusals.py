"""Reasonings beside scores that decline to judge or repeat the request: counted over a run, they
decide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from vieval_plugin.judges.protocol import Chat

ECHO = "reasoning that repeats the request"

#: Letters of a reasoning that is not in a request by chance.
_FEWEST_LETTERS = 12
_LONGEST = 10_000
_NO_LETTERS = re.compile(r"[\W_]+")
# most texts are ASCII, of which `translate` removes them in a tenth of the time
_REMOVED = {code: None for code in range(128) if not chr(code).isalnum()}

_CANNOT = r"(?:can't|cannot|can\ not|couldn't|won't|will\ not|unable\ to|not\ able\ to)"
_IMAGE = r"(?:images?|pictures?|photos?)"
# not "the image clearly" or "the picture quality"
_AN_IMAGE = rf"(?:\w+\ ){{0,2}}?{_IMAGE}\b(?!\ (?!(?:i|we|so|but|and|or|here|at|to|it|this|my|the)\b)\w)"
_IMAGE_PROVIDED_WORDS = r"(?:attached|provided|given|shown\ to\ me|supplied|uploaded|received|seen|sent|load(?:ed)?)"
_FULL_SCORE_WORDS = (
    r"(?:full|perfect|high\w*|top|max\w*)\ "  # a score that is lower is one
)
# An apology, or "the edit could not be completed", stands beside many honest scores.
_DECLINES = re.compile(
    rf"""\b(?:(?:can't|cannot|won't|will\ not|unable\ to)\ (?:assist|help|comply)
    | (?:(?:don't|do\ not|doesn't)\ have|lack)\ (?:the\ |any\ )?(?:ability|capability|capacity|means)
    | against\ (?:my|our)\ (?:guidelines|polic)
    | (?:evaluation|assessment|rating|scores?)\ (?:is\ |are\ )?not\ (?:possible|available)
    | (?:evaluation|assessment|rating|scoring)\ cannot\ be\ (?:conducted|completed|performed|given|provided|made|done)
    | (?:i|we)(?:'ve|\ am|\ are|\ was|\ were|\ have|\ did)?\ (?:{_CANNOT}|not|never|haven't|didn't|wasn't)\ (?:\w+\ )?
      (?:seen?|view(?:ed)?|access|process|open|received?|shown|given|got)\ {_AN_IMAGE}
    | (?:there\ (?:is|was|are|were)|see)\ no\ {_AN_IMAGE}
    | no\ {_IMAGE}\ (?:(?:was|were|is|are|has|have|been)\ )*{_IMAGE_PROVIDED_WORDS}\b(?!\ (?:that|which|where|of))
    | {_IMAGE}\ (?:was|were|is|are|has|have|did)\ (?:not|never)\ (?:been\ )?{_IMAGE_PROVIDED_WORDS}
    | without\ (?:seeing|having\ seen|access\ to)\ {_AN_IMAGE}
    | (?:i|we)(?:'m|'re|\ am|\ are|\ must|\ have\ to)?\ (?:\w+\ )?(?:{_CANNOT}|not\ going\ to|decline|refuse)\ (?:(?!{_FULL_SCORE_WORDS})\w+\ ){{0,3}}?
      (?:assess|rate|score|judge|evaluate|answer|(?:give|provide)\ (?:(?!{_FULL_SCORE_WORDS})\w+\ ){{0,2}}?(?:scores?|ratings?|evaluations?)|do))\b""",
    re.IGNORECASE | re.VERBOSE,
)


def declines(text: str) -> bool:
    """Return whether a reasoning says that no scores are given.

    >>> declines("I'm sorry, but I can't rate this."), declines("I am sorry to say that a finger is missing.")
    (True, False)
    """
    ends = text
    if len(text) > 2 * _LONGEST:
        ends = f"{text[:_LONGEST]} {text[-_LONGEST:]}"
    return bool(_DECLINES.search(ends.replace("\u2019", "'")))


def letters(text: str) -> str:
    """The letters and digits of a text, by which two texts are compared.

    >>> letters("One or two *short* sentences.")
    'oneortwoshortsentences'
    """
    shorter = text.casefold().translate(_REMOVED)
    return shorter if shorter.isascii() else _NO_LETTERS.sub("", shorter)


def repeats_request(reasoning: str, chat: Chat) -> bool:
    """Return whether the words of a reasoning stand in the question, such as those of the prompt
    or of the form.
    """
    reasoning_letters = letters(reasoning)
    if len(reasoning_letters) < _FEWEST_LETTERS:
        return False
    return reasoning_letters in letters(" ".join(_texts(chat)))


def _texts(chat: Chat) -> Iterable[str]:
    for message in chat.messages:
        if message.role != "assistant":
            yield from (part for part in message.parts if isinstance(part, str))
