"""The mode `prompt`: from the words of a model to the number in them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vieval_plugin.judges.parsing import ONE_ANSWER, parse_scores, without_thinking
from vieval_plugin.judges.protocol import Status
from vieval_plugin.judges.structured_chat import Read

SCALE = 10.0
_NUMBER = r"([0-9]{1,2}(?:\.[0-9]{1,6})?)"
_OTHER_WORDS = "not in the words asked for"


def read_number(text: str, asked: str, sentences: Sequence[str], place: str) -> Read[tuple[float, ...]]:
    """The number from 0 to 10 that a reply says.

    Args:
        text: the reply as it came.
        asked: the sentence that was asked for.
        sentences: all that a model may know.
        place: what stands in them in the number's place.

    Returns:
        `ok` for the sentence asked for, `repaired` for another one or where the number is said otherwise, and nothing
        is guessed.

    >>> read_number("I rate this edit 7.", "I rate this edit ...", ["..."], "...").scores
    (7.0,)
    >>> read_number("7", "I rate this edit ...", ["..."], "...").status.value
    'repaired'
    """
    answer = without_thinking(text).strip()
    stated: set[float] = set()
    for sentence in (asked, *sentences):
        pattern = re.escape(sentence).replace(re.escape(place), _NUMBER)
        if sentence != place:
            stated |= {float(number) for number in re.findall(rf"{pattern}(?![0-9])", answer, re.IGNORECASE)}
        if (found := re.fullmatch(rf"[\"']?{pattern}[\"'.]*", answer, re.IGNORECASE)) is not None:
            number = float(found[1])
            if number > SCALE:
                return Read(Status.PARSE_FAILURE, reason=f"the score is not a number from 0 to {SCALE:g}")
            if sentence == asked:
                return Read(Status.OK, (number,), (number,))
            return Read(Status.REPAIRED, (number,), (number,), _OTHER_WORDS)
    parsed = parse_scores(text, count=1, high=SCALE, names=("edit",))
    if not parsed.status.usable:
        return Read(parsed.status, reason=parsed.reason, finding=parsed.finding)
    if stated - set(parsed.scores):
        return Read(Status.PARSE_FAILURE, reason=ONE_ANSWER)
    return Read(Status.REPAIRED, parsed.scores, parsed.scores, _OTHER_WORDS, parsed.finding)
