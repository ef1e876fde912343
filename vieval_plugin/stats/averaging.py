"""Two ways to average correlations: what the published code does, and Fisher's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from vieval_plugin.stats.correlation import Floats

# The last value below 1 that four decimals can show. Nearer to 1, one resample in which two raters happen to agree
# on everything would outweigh all other image models in the average.
_NEARLY_ONE = 0.9999


def paper_mean(correlations: Iterable[float], *, rounded: bool = True) -> float:
    """`tanh` of the mean of correlations, in (-tanh 1, tanh 1); NaN for none or if one is NaN.

    Correlations are rounded to four decimals first when averaged over image models or tasks; over raters they are not
    (`rounded=False`): that, and only that, gives all 261 cells of Table 7 to the last digit.

    This is what the VIEScore, CIGEval and ADIEE code computes and the papers call Fisher Z; the arctanh is missing, so
    values are pulled toward 0. Source: the released code, checked against Tables 1-3 of VIEScore (Ku et al., ACL 2024).

    >>> round(paper_mean([0.5, 0.7]), 4)
    0.537
    """
    values = [round(float(r), 4) if rounded else float(r) for r in correlations]
    return math.tanh(sum(values) / len(values)) if values else math.nan


def fisher_mean(correlations: ArrayLike) -> float:
    """`tanh` of the mean of `arctanh` of correlations (Fisher 1921), in [-1, 1]; NaN entries are left out.

    |r| is clipped to 0.9999. NaN when no entry is defined.

    >>> round(fisher_mean([0.5, 0.7]), 4)
    0.6096
    """
    values = np.asarray(correlations, dtype=float).reshape(-1)
    return float(fisher_mean_over(values[:, None])[0])


def fisher_mean_over(correlations: Sequence[Floats] | Floats) -> Floats:
    """`fisher_mean` along the first axis of an array of correlations (parts, draws); NaN where no part is defined."""
    values = np.asarray(correlations, dtype=float)
    defined = ~np.isnan(values)
    z = np.arctanh(np.clip(np.where(defined, values, 0.0), -_NEARLY_ONE, _NEARLY_ONE))
    n = defined.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(n > 0, np.tanh(np.where(defined, z, 0.0).sum(axis=0) / n), np.nan))
