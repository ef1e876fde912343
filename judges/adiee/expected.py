"""The mode `expected`: the mean of the numbers 0 to 10, each weighted with how likely the answer is to begin with it.

Source: Liu et al., G-Eval (EMNLP 2023), section 2, weights scores with the probabilities of their tokens. A 10 of two
tokens begins like a 1, so both are asked for as wholes (see `Likelihood`, definition `beginning`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from vieval_plugin.judges.probabilities import to_json
from vieval_plugin.judges.protocol import Failure, Path, Probabilities, Reply, Status, Step

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
    """Whether an answer begins with no number in most cases."""
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
