"""Answers of the modes `prompt`, a number in words, and `expected`, the mean of the numbers 0 to 10."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vieval_plugin.judges.expected_value import spellings
from vieval_plugin.judges.parsing import parse_number, without_thinking
from vieval_plugin.judges.protocol import Status
from vieval_plugin.judges.structured_chat import Read

NUMBERS = tuple(range(11))
SCORES = tuple(number / 10 for number in NUMBERS)
SPELLINGS = spellings(NUMBERS)
UNLIKELY = "a number is not likely"
"""The finding of an answer that hardly ever begins with a number asked for: of a model that thinks first, for example."""

SCALE = 10.0
_NUMBER = r"([0-9]{1,2}(?:\.[0-9]{1,6})?)"
_OUT_OF = rf"\**\s*(?:/|out of)\s*\**{SCALE:g}"
_OTHER_WORDS = "not in the words asked for"


def read_number(text: str, expected: str, sentences: Sequence[str], place: str) -> Read[tuple[float, ...]]:
    """The number from 0 to 10 that a reply says.

    Args:
        text: the reply as it came.
        expected: the sentence that was asked for.
        sentences: all that a model may know.
        place: what stands in them in the number's place.

    Returns:
        `ok` for the sentence asked for, `repaired` for another one or for the number alone.

    >>> read_number("I rate this edit 7.", "I rate this edit ...", ["..."], "...").scores
    (7.0,)
    >>> read_number("7", "I rate this edit ...", ["..."], "...").status.value
    'repaired'
    """
    answer = without_thinking(text).strip()
    for sentence in (expected, *sentences):
        pattern = re.escape(sentence).replace(re.escape(place), rf"\**{_NUMBER}")
        if (match := re.fullmatch(rf"[\"'*]*{pattern}({_OUT_OF})?[\"'.*]*", answer, re.IGNORECASE)) is not None:
            number = float(match[1])
            if number > SCALE:
                return Read(Status.PARSE_FAILURE, reason=f"the score is not a number from 0 to {SCALE:g}")
            if sentence == expected and not match[2] and "*" not in answer:
                return Read(Status.OK, (number,), (number,))
            return Read(Status.REPAIRED, (number,), (number,), _OTHER_WORDS)
    parsed = parse_number(text, 0, SCALE)
    if not parsed.status.usable:
        return Read(parsed.status, reason=parsed.reason)
    return Read(Status.REPAIRED, parsed.scores, parsed.scores, _OTHER_WORDS)
