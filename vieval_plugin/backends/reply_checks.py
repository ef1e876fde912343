"""Checks of replies that leave a backend, or to enter or leave the store: a text, or numbers
that are possible.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeGuard

from vieval_plugin.judges.protocol import (
    Box,
    Chat,
    Failure,
    Likelihood,
    Measurement,
    Probabilities,
    Reply,
    Status,
    Text,
    ToolResult,
)
from vieval_plugin.text.redaction import redacted, remove_secrets

#: A question that a model answers.
Question: TypeAlias = Chat | Likelihood
#: A question with the number of the job that asks it.
NumberedQuestion: TypeAlias = tuple[int, Question]
#: Replies that are stored and not asked for again.
Answer: TypeAlias = Text | Probabilities | Measurement | ToolResult

_ROUNDING = 1e-6  # so far above 0 a log-probability may come out of single precision
_MOST_IN_ALL = (
    1.01  # probabilities of what one token may be; half precision rounds them up
)
_MOST_TOKENS = 2**53


def checked(reply: Reply) -> Reply:
    """The reply less secrets of this process, or the failure that it is."""
    if isinstance(reply, Failure):
        return replace(reply, reason=redacted(reply.reason))
    if problem := fault(reply):
        return Failure(Status.API_ERROR, problem)
    if isinstance(reply, (Text, ToolResult)):
        return replace(reply, text=remove_secrets(reply.text))
    return reply


def fault(reply: Reply) -> str | None:
    """The fault of a reply's values, None if they are valid: their types and, of
    numbers, what they can be at all.
    """
    if isinstance(reply, Text):
        fine = _is_count(reply.input_tokens) and _is_count(reply.output_tokens)
        fine = fine and isinstance(reply.text, str)
        fine = fine and isinstance(reply.cut, (bool, type(None)))
        return None if fine else "the text or token count of the response is not valid"
    if isinstance(reply, ToolResult):
        fine = isinstance(reply.text, str) and reply.image is None
        fine = fine and all(map(_is_of_pixels, reply.boxes))
        return None if fine else "the text or boxes of the tool result are not valid"
    if isinstance(reply, Probabilities):
        fine = all(map(_are_bounds, reply.low, reply.high))
        if fine and len(reply.low) == len(reply.high):
            return None
        return f"invalid probabilities: {_numbers_or_type_names([*reply.low, *reply.high])}"
    if isinstance(reply, Measurement) and not _is_finite(reply.value):
        return f"an invalid measurement: {_numbers_or_type_names([reply.value])}"
    return None


def _is_of_pixels(box: Box) -> bool:
    return all(
        isinstance(side, int) for side in (box.left, box.top, box.right, box.bottom)
    )


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _are_bounds(low: Any, high: Any) -> bool:
    return _is_number(low) and _is_number(high) and 0 <= low <= high <= 1


def log_probability(value: Any, masked: bool = False) -> float:
    """A log-probability as it was told, 0 at most; ValueError for anything else: text,
    `true`, NaN, infinite, positive.

    Of a token that a server may have `masked` it can be -inf.
    """
    is_masked = masked and value == -math.inf
    is_logarithm = is_masked or _is_finite(value)
    if not is_logarithm or value > _ROUNDING:
        raise ValueError(
            f"an invalid log-probability: {_numbers_or_type_names([value])}"
        )
    return min(float(value), 0.0)


def probabilities(
    likeliest: Mapping[str, Any], continuations: Sequence[str]
) -> Probabilities | Failure:
    """Bounds on the probability of each continuation, from the log-probabilities of the likeliest
    first tokens.

    One that is not listed is at most as likely as the least likely listed, and as what the listed
    leave over. One listed value that is none spoils all, as the others bound what is not listed.
    """
    try:
        by_token = {
            token: math.exp(log_probability(value, masked=True))
            for token, value in likeliest.items()
        }
    except ValueError as error:
        return Failure(Status.API_ERROR, str(error))
    if not by_token:
        return Failure(Status.API_ERROR, "the response has no log-probabilities")
    if (total := math.fsum(by_token.values())) > _MOST_IN_ALL:
        return Failure(
            Status.API_ERROR,
            f"the probabilities of a token must sum to at most 1, got {total:.3g}",
        )
    leftover = max(0.0, min(1.0 - total, min(by_token.values())))
    return Probabilities(
        tuple(by_token.get(continuation, 0.0) for continuation in continuations),
        tuple(by_token.get(continuation, leftover) for continuation in continuations),
    )


def final(reply: Reply) -> TypeGuard[Answer]:
    """Return whether a reply is kept: an empty text is asked for again by the next run, unless
    its token limit cut it.
    """
    if isinstance(reply, Text):
        return bool(reply.cut or reply.text.strip())
    return isinstance(reply, (Probabilities, Measurement, ToolResult))


def _is_number(value: Any) -> bool:
    # an integer that no float can hold is a number to Python alone
    return isinstance(value, float) or (_is_integer(value) and abs(value) < 1e300)


def _is_count(value: Any) -> bool:
    return value is None or (_is_integer(value) and 0 <= value < _MOST_TOKENS)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _numbers_or_type_names(values: Sequence[Any]) -> str:
    return ", ".join(map(_number_or_type_name, values[:8]))


def _number_or_type_name(value: Any) -> str:
    return str(value) if _is_number(value) else type(value).__name__
