"""The mode `expected`: the mean of the numbers 0 to 10, each weighted with how likely the answer is to begin with it.

Source: Liu et al., G-Eval (EMNLP 2023), section 2, weights scores with the probabilities of their tokens. A 10 of two
tokens begins like a 1, so both are asked for as wholes (see `Likelihood`, definition `beginning`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from vieval_plugin.judges.parsing import ONE_ANSWER, parse_scores, without_thinking
from vieval_plugin.judges.probabilities import to_json
from vieval_plugin.judges.protocol import Failure, Path, Probabilities, Reply, Status, Step
from vieval_plugin.judges.structured_chat import Read

NUMBERS = tuple(range(11))
SPELLINGS = tuple(f"{space}{number}" for number in NUMBERS for space in ("", " "))
"""Each number without and with a space before it, as tokenizers have it."""
UNLIKELY = "a number is not likely"
"""The finding of an answer that hardly ever begins with a number asked for: of a model that thinks first, for example."""

_LIKELY = 0.5
_UNKNOWN = "none of the numbers is among the likeliest beginnings of the answer, so their mean is not known"


def step_of(reply: Reply, path: Path) -> Step:
    """A step whose bounds are the lowest and highest that the mean can be, in [0, 1]; no mean where nothing is known."""
    if isinstance(reply, Failure):
        return Step(path, reply.status, reason=reply.reason)
    if not isinstance(reply, Probabilities) or len(reply.low) != len(SPELLINGS):
        reason = f"probabilities were asked for, {type(reply).__name__} came"
        return Step(path, Status.API_ERROR, reason=reason)
    answer, (low, high) = to_json(SPELLINGS, reply), _of_numbers(reply)
    if sum(low) <= 0:
        return Step(path, Status.PARSE_FAILURE, answer=answer, reason=_UNKNOWN)
    return Step(path, Status.OK, answer=answer, bounds=mean_bounds(low, high))


def unlikely(reply: Reply) -> bool:
    """Return whether an answer begins with no number in most cases."""
    return isinstance(reply, Probabilities) and sum(_of_numbers(reply)[1]) < _LIKELY


def mean_bounds(low: Sequence[float], high: Sequence[float]) -> tuple[float, float]:
    """The lowest and the highest that the mean of the numbers 0, 1, ... can be, divided by the largest, in [0, 1].

    Of all weights between `low` and `high`, not all 0, the mean is highest where each number from some number on has
    the most it can have and each below it the least; and the other way round.

    >>> mean_bounds([0.0, 0.5, 0.5], [0.0, 0.5, 0.5])
    (0.75, 0.75)
    >>> mean_bounds([0.0, 0.0, 0.5], [0.5, 0.0, 0.5])
    (0.5, 1.0)
    """
    places = range(len(low) + 1)
    highest = [_mean([*low[:place], *high[place:]]) for place in places if sum(low[:place]) + sum(high[place:]) > 0]
    lowest = [_mean([*high[:place], *low[place:]]) for place in places if sum(high[:place]) + sum(low[place:]) > 0]
    return min(lowest), max(highest)


def _mean(weights: Sequence[float]) -> float:
    # exact sums: those of `sum` differ in the last digit between versions of Python
    return math.fsum(number * weight for number, weight in enumerate(weights)) / math.fsum(weights) / (len(weights) - 1)


def _of_numbers(reply: Probabilities) -> tuple[list[float], list[float]]:
    """The lowest and the highest that the probability of each number can be, over its spellings."""
    spelt = len(SPELLINGS) // len(NUMBERS)
    low, high = (
        [min(math.fsum(ends[spelt * number : spelt * (number + 1)]), 1.0) for number in NUMBERS]
        for ends in (reply.low, reply.high)
    )
    return low, high


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
        `ok` for the sentence asked for, `repaired` for another one or where the number is said otherwise, and nothing
        is guessed.

    >>> read_number("I rate this edit 7.", "I rate this edit ...", ["..."], "...").scores
    (7.0,)
    >>> read_number("7", "I rate this edit ...", ["..."], "...").status.value
    'repaired'
    """
    answer = without_thinking(text).strip()
    stated: set[float] = set()
    for sentence in (expected, *sentences):
        pattern = re.escape(sentence).replace(re.escape(place), rf"\**{_NUMBER}")
        if sentence != place:
            stated |= {float(number) for number in re.findall(rf"{pattern}(?![0-9])", answer, re.IGNORECASE)}
        if (match := re.fullmatch(rf"[\"'*]*{pattern}({_OUT_OF})?[\"'.*]*", answer, re.IGNORECASE)) is not None:
            number = float(match[1])
            if number > SCALE:
                return Read(Status.PARSE_FAILURE, reason=f"the score is not a number from 0 to {SCALE:g}")
            if sentence == expected and not match[2] and "*" not in answer:
                return Read(Status.OK, (number,), (number,))
            return Read(Status.REPAIRED, (number,), (number,), _OTHER_WORDS)
    parsed = parse_scores(text, count=1, high=SCALE, names=("edit",))
    if not parsed.status.usable:
        return Read(parsed.status, reason=parsed.reason, finding=parsed.finding)
    if stated - set(parsed.scores):
        return Read(Status.PARSE_FAILURE, reason=ONE_ANSWER)
    return Read(Status.REPAIRED, parsed.scores, parsed.scores, _OTHER_WORDS, parsed.finding)
