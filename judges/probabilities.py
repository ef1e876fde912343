"""Probabilities of answers: as a trace keeps them, and the mean of the numbers that answers stand
for, each weighted with how likely the answer is to begin with it.

Source: Liu et al., G-Eval (EMNLP 2023), section 2, weights scores with the probabilities of their
tokens. A 10 of two tokens begins like a 1, so both are asked for as wholes (see `Likelihood`,
definition `beginning`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence

from vieval_plugin.judges.protocol import (
    Path,
    Probabilities,
    Reply,
    Status,
    Step,
    failed_step,
)

_SPACES = ("", " ")
_LIKELY = 0.5
_UNKNOWN = (
    "the mean is unknown, because the most likely beginnings of the reply include "
    "none of the {what}"
)


def interval_text(low: float, high: float) -> str:
    """A probability in words, by its lowest and its highest where it is not known.

    >>> interval_text(0.5, 0.5), interval_text(0.25, 0.5)
    ('0.500000', '0.250000 to 0.500000')
    """
    if low == high:
        return f"{low:.6f}"
    return f"{low:.6f} to {high:.6f}"


def to_json(continuations: Sequence[str], reply: Probabilities) -> str:
    """The probability of each continuation: a number where it is known, else its lowest and
    highest.

    >>> to_json(["1", "10"], Probabilities((0.5, 0.0), (0.5, 0.25)))
    '{"1": 0.5, "10": [0.0, 0.25]}'
    """
    ends = zip(reply.low, reply.high, strict=True)
    probabilities = {}
    for text, (low, high) in zip(continuations, ends, strict=True):
        probabilities[text] = low if low == high else [low, high]
    return json.dumps(probabilities)


def from_json(text: str, continuations: Sequence[str]) -> Probabilities:
    """The inverse of `to_json`; ValueError for what it does not write of these continuations."""
    document = json.loads(text)
    if not isinstance(document, dict) or list(document) != list(continuations):
        raise ValueError("expected the probabilities of the requested answers")
    ends = []
    for probability in document.values():
        is_interval = isinstance(probability, list)
        ends.append(probability if is_interval else [probability, probability])
    return Probabilities(*zip(*ends, strict=True))


def spellings(answers: Iterable[object]) -> tuple[str, ...]:
    """Each answer without and with a space before it, as tokenizers have it."""
    return tuple(f"{space}{answer}" for answer in answers for space in _SPACES)


def step_of(
    reply: Reply,
    path: Path,
    continuations: Sequence[str],
    values: Sequence[float],
    what: str = "answers",
) -> Step:
    """A step whose bounds are the lowest and highest that the mean can be.

    Args:
        reply: the reply to a `Likelihood` of these continuations.
        path: that of the ask.
        continuations: the `spellings` of the answers.
        values: the score that each answer stands for, ascending.
        what: the answers in a word.

    Returns:
        No mean where none of the answers is known to be likely at all.
    """
    if not isinstance(reply, Probabilities):
        return failed_step(reply, path, "probabilities")
    if len(reply.low) != len(continuations):
        return failed_step(reply, path, "probabilities")
    answer = to_json(continuations, reply)
    low, high = probability_ranges(reply)
    if sum(low) <= 0:
        return Step(
            path,
            Status.PARSE_FAILURE,
            answer=answer,
            reason=_UNKNOWN.format(what=what),
        )
    return Step(
        path,
        Status.OK,
        answer=answer,
        bounds=mean_bounds(low, high, values),
    )


def unlikely(reply: Reply) -> bool:
    """Return whether a reply begins with none of the answers in most cases."""
    if not isinstance(reply, Probabilities):
        return False
    _, high = probability_ranges(reply)
    return sum(high) < _LIKELY


def mean_bounds(
    low: Sequence[float], high: Sequence[float], values: Sequence[float]
) -> tuple[float, float]:
    """The lowest and the highest that the mean of ascending values can be.

    Of all weights between `low` and `high`, not all 0, the mean is highest where each value from
    some value on has the most it can have and each below it the least; and the other way round.

    >>> mean_bounds([0.0, 0.5, 0.5], [0.0, 0.5, 0.5], [0.0, 0.5, 1.0])
    (0.75, 0.75)
    >>> mean_bounds([0.0, 0.0, 0.5], [0.5, 0.0, 0.5], [0.0, 0.5, 1.0])
    (0.5, 1.0)
    """
    lowest = min(_cut_means(high, low, values))
    highest = max(_cut_means(low, high, values))
    return lowest, highest


def _cut_means(
    before: Sequence[float], after: Sequence[float], values: Sequence[float]
) -> list[float]:
    """The mean for each cut, with the weights of `before` up to it and of `after` from it on."""
    means = []
    for cut in range(len(before) + 1):
        first = before[:cut]
        rest = after[cut:]
        if sum(first) + sum(rest) > 0:
            means.append(_mean([*first, *rest], values))
    return means


def _mean(weights: Sequence[float], values: Sequence[float]) -> float:
    # exact sums: those of `sum` differ in the last digit between versions of Python
    pairs = zip(values, weights, strict=True)
    weighted = math.fsum(value * weight for value, weight in pairs)
    return weighted / math.fsum(weights)


def probability_ranges(reply: Probabilities) -> tuple[list[float], list[float]]:
    """The lowest and the highest that the probability of each answer can be, over its spellings."""
    return _answer_sums(reply.low), _answer_sums(reply.high)


def _answer_sums(ends: Sequence[float]) -> list[float]:
    spelt = len(_SPACES)
    sums = []
    for start in range(0, len(ends), spelt):
        spelling_ends = ends[start : start + spelt]
        sums.append(min(math.fsum(spelling_ends), 1.0))
    return sums
