"""The mode `expected`: how much likelier one letter is than the other as the beginning of the answer."""

from __future__ import annotations

from vieval_plugin.judges.contests import REVERSE
from vieval_plugin.judges.pairwise.question import LETTERS
from vieval_plugin.judges.protocol import Failure, Probabilities, Reply, Status, Step

_LIKELY = 0.5
_SPELLINGS = 2


def spellings() -> tuple[str, ...]:
    """The two letters, each without and with a space before it: A twice, then B twice."""
    return tuple(f"{space}{letter}" for letter in LETTERS[:2] for space in ("", " "))


def step_of(reply: Reply, order: str) -> Step:
    """A step whose bounds are the lowest and highest that P(A) - P(B) can be, in [-1, 1]."""
    if isinstance(reply, Failure):
        return Step((order,), reply.status, reason=reply.reason)
    if not isinstance(reply, Probabilities):
        reason = f"probabilities were asked for, {type(reply).__name__} came"
        return Step((order,), Status.API_ERROR, reason=reason)
    (low_a, high_a), (low_b, high_b) = _of_letters(reply)
    # together they are at most 1
    bounds = low_a - min(high_b, 1 - low_a), min(high_a, 1 - low_b) - low_b
    answer = f"P(A) {_interval(low_a, high_a)}, P(B) {_interval(low_b, high_b)}"
    return Step((order,), Status.OK, answer=answer, bounds=bounds)


def preference_of(bounds: tuple[float, float], order: str) -> tuple[float, float]:
    """An interval of P(A) - P(B) as one of P(first) - P(second).

    >>> preference_of((0.25, 0.5), "reverse")
    (-0.5, -0.25)
    """
    low, high = bounds
    return (0.0 - high, 0.0 - low) if order == REVERSE else bounds


def unlikely(reply: Reply) -> bool:
    """Whether an answer begins with neither letter in most cases: a model that thinks first, or writes a sentence."""
    return isinstance(reply, Probabilities) and sum(high for _, high in _of_letters(reply)) < _LIKELY


def _of_letters(reply: Probabilities) -> list[tuple[float, float]]:
    """The lowest and highest that P(A) and P(B) can be, summed over their spellings."""
    halves = slice(None, _SPELLINGS), slice(_SPELLINGS, None)
    return [(min(sum(reply.low[half]), 1.0), min(sum(reply.high[half]), 1.0)) for half in halves]


def _interval(low: float, high: float) -> str:
    return f"{low:.6f}" if low == high else f"{low:.6f} to {high:.6f}"
