"""Options of statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Policy: TypeAlias = Literal["drop", "random", "worst", "as_recorded"]
MissingRatings: TypeAlias = Literal["drop", "impute_mean"]


@dataclass(frozen=True)
class StatisticsOptions:
    """Treatment of failed verdicts and of ratings that a rater did not give, and the bootstrap of intervals.

    `policy` is what `apply_failure_policy` does with failed verdicts, `draws` the number of bootstrap resamples,
    `missing_ratings` whether a rating that was not given is left out or taken to be the mean of the item's other raters.
    """

    policy: Policy = "drop"
    draws: int = 1000
    seed: int = 0
    missing_ratings: MissingRatings = "drop"
