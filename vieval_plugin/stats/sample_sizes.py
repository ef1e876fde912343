"""Numbers of prompts: how many a decision needs, and which difference so many would show."""

from __future__ import annotations

import math

from vieval_plugin.stats.non_inferiority import MeanOfDifferences

#: Standard deviation of people's differences of two generators on a prompt: the median of
#: ImagenHub's 57 pairs (O).
TYPICAL_SPREAD = 0.3
#: Margin that advice on numbers is for.
ADVISED_MARGIN = 0.05
_REACH = (
    1.96 + 0.84
)  # standard errors by which four of five samples lie beyond the end of an interval


def prompts_for_margin(spread: float, margin: float = ADVISED_MARGIN) -> float:
    """Number of prompts with which four of five pairs of equal generators pass a gate, to two
    digits; infinite if none.

    Args:
        spread: standard deviation of the differences of prompts.
        margin: of the gate, above 0.

    >>> prompts_for_margin(TYPICAL_SPREAD), prompts_for_margin(0.2)
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
    return _REACH * spread / math.sqrt(prompts)
