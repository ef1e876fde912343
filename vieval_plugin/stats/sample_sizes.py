"""Numbers of prompts: how many a decision needs, and which difference so many would show."""

from __future__ import annotations

import math

from vieval_plugin.stats.decisions import ADVISED_MARGIN, INTERVAL_REACH, POWER_REACH
from vieval_plugin.stats.non_inferiority import MeanOfDifferences


def prompts_for_margin(spread: float, margin: float = ADVISED_MARGIN) -> float:
    """Number of prompts with which four of five pairs of equal generators pass a gate, to two
    digits; infinite if none.

    Args:
        spread: standard deviation of the differences of prompts.
        margin: of the gate, above 0.

    >>> prompts_for_margin(0.3), prompts_for_margin(0.2)
    (330.0, 180.0)
    """
    one_prompt = MeanOfDifferences(0.0, spread, 1)
    needed = one_prompt.items_needed(margin)
    if math.isinf(needed):
        return needed
    return round(needed, 1 - math.floor(math.log10(needed)))


def smallest_difference(spread: float, prompts: int) -> float:
    """The smallest difference of means that so many prompts show four times in five.

    >>> round(smallest_difference(0.3, 200), 3)
    0.059
    """
    return (INTERVAL_REACH + POWER_REACH) * spread / math.sqrt(prompts)
