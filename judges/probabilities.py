"""Probabilities as a trace keeps them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from vieval_plugin.judges.protocol import Probabilities


def interval_text(low: float, high: float) -> str:
    """A probability in words, by its lowest and its highest where it is not known.

    >>> interval_text(0.5, 0.5), interval_text(0.25, 0.5)
    ('0.500000', '0.250000 to 0.500000')
    """
    return f"{low:.6f}" if low == high else f"{low:.6f} to {high:.6f}"


def to_json(continuations: Sequence[str], reply: Probabilities) -> str:
    """The probability of each continuation: a number where it is known, else its lowest and
    highest.

    >>> to_json(["1", "10"], Probabilities((0.5, 0.0), (0.5, 0.25)))
    '{"1": 0.5, "10": [0.0, 0.25]}'
    """
    ends = zip(reply.low, reply.high, strict=True)
    probabilities = {
        text: low if low == high else [low, high]
        for text, (low, high) in zip(continuations, ends, strict=True)
    }
    return json.dumps(probabilities)


def from_json(text: str, continuations: Sequence[str]) -> Probabilities:
    """The inverse of `to_json`; ValueError for what it does not write of these continuations."""
    document = json.loads(text)
    if not isinstance(document, dict) or list(document) != list(continuations):
        raise ValueError("no probabilities of what was asked for")
    ends = [
        tuple(probability)
        if isinstance(probability, list)
        else (probability, probability)
        for probability in document.values()
    ]
    return Probabilities(*zip(*ends, strict=True))
