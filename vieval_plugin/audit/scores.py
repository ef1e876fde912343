"""Verdicts as the numbers that an audit compares: scores by aspect, or how a contest's first candidate fares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from vieval_plugin.judges.contests import FIRST, FORWARD, REVERSE, SECOND
from vieval_plugin.judges.protocol import Verdict

PREFERENCE = "preference"
"""What stands for an aspect where contests are judged: how far the first candidate is preferred, in [0, 1]."""


def of_aspect(verdicts: Sequence[Verdict], aspect: str) -> list[float]:
    """The score of each verdict on an aspect, NaN where there is none; `PREFERENCE` is the mean over both orders."""
    if aspect == PREFERENCE:
        return [_mean(list(preferences(verdict).values())) for verdict in verdicts]
    return [verdict.scores.get(aspect, math.nan) for verdict in verdicts]


def of_order(verdicts: Sequence[Verdict], order: str) -> list[float]:
    """Preference for the first candidate in an order; NaN where it, or the other order, has no answer."""
    by_order = [preferences(verdict) for verdict in verdicts]
    return [preference[order] if {FORWARD, REVERSE} <= preference.keys() else math.nan for preference in by_order]


def preferences(verdict: Verdict) -> Mapping[str, float]:
    """Preference for the first candidate over the second, by order: 1 for a vote for it, 1/2 for neither, 0."""
    if verdict.choice is None or not verdict.status.usable:
        return {}
    points = {FIRST: 1.0, SECOND: 0.0}
    voted = {order: points.get(vote, 0.5) for order, vote in verdict.choice.votes.items()}
    return voted or {order: (value + 1) / 2 for order, value in verdict.choice.preferences.items()}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
