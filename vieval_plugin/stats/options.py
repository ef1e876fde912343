"""Options of statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Policy: TypeAlias = Literal["drop", "random", "worst", "as_recorded"]
MissingRatings: TypeAlias = Literal["drop", "impute_mean"]


@dataclass(frozen=True)
class StatisticsOptions:
    """Treatment of failed verdicts and of ratings that are missing, and the bootstrap of
    intervals.
    """

    #: What `apply_failure_policy` does with failed verdicts.
    policy: Policy = "drop"
    #: Number of bootstrap resamples.
    draws: int = 1000
    #: Seed of the bootstrap and of permutations.
    seed: int = 0
    #: Whether a rating that was not given is left out or taken to be the mean of the item's other
    #: annotators.
    missing_ratings: MissingRatings = "drop"
