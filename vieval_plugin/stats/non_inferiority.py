"""Non-inferiority: a system is not worse than another by more than a margin, by the interval of their difference."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from scipy import special

from vieval_plugin.stats.estimate import Estimate

Decision: TypeAlias = Literal["not_worse", "worse", "undecided"]

LEAST_ITEMS = 20
"""Items of fewer than these decide nothing: a bootstrap interval of so few is too short."""
_ROUNDING = 1e-9


def non_inferiority(difference: Estimate, n: int, margin: float) -> Decision:
    """Decide by the 95% interval of a difference.

    Args:
        difference: the new system less the old one, higher being better.
        n: items that it is computed on.
        margin: how much worse the new one may be, 0 or more, in the difference's unit.

    Returns:
        `not_worse` where the whole interval lies above minus the margin, `worse` where it lies below, `undecided` where it
        holds it, without an interval or with one of no width, and with fewer than `LEAST_ITEMS` items.

    Source: the test by a two-sided interval of ICH E9 (1998), Statistical Principles for Clinical Trials, section 3.3.2.

    >>> non_inferiority(Estimate(0.0, -0.01, 0.01), 100, 0.02), non_inferiority(Estimate(-0.05, -0.06, -0.04), 100, 0.02)
    ('not_worse', 'worse')
    >>> non_inferiority(Estimate(0.0, -0.03, 0.03), 100, 0.02)
    'undecided'
    """
    if n < LEAST_ITEMS or not difference.has_interval:
        return "undecided"
    if difference.low >= -margin:
        return "not_worse"
    return "worse" if difference.high < -margin else "undecided"


def items_needed(difference: Estimate, n: int, margin: float, power: float = 0.8) -> float:
    """Number of items with which the interval would most likely decide, if the difference stays what it is.

    Args:
        difference: with the 95% interval that does not decide.
        n: items that it is computed on.
        margin: as for `non_inferiority`.
        power: the chance that so many items decide, in (0, 1).

    Returns:
        A whole number, not below `LEAST_ITEMS`; infinite where the difference is minus the margin itself, NaN without an
        interval.

    Source: Julious 2004, Sample sizes for clinical trials with Normal data (Statistics in Medicine 23): n = ((z_0.975 +
    z_power) s / d)^2, with d how far the difference lies from minus the margin, and s from the interval's half width,
    which is z_0.975 s / sqrt(n).

    >>> items_needed(Estimate(0.0, -0.03, 0.03), 100, 0.02)
    460.0
    """
    half_width, distance = (difference.high - difference.low) / 2, abs(difference.value + margin)
    if math.isnan(half_width):
        return math.nan
    if not distance:
        return math.inf
    z = special.ndtri(0.975)
    return max(float(LEAST_ITEMS), float(math.ceil(n * ((z + special.ndtri(power)) / z * half_width / distance) ** 2)))
