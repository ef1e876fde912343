"""Estimate of a total over a population from a simple random sample."""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import ArrayLike

from vieval_plugin.stats.estimate import Estimate


def total(values: ArrayLike, population: int, level: float = 0.95) -> Estimate:
    """The total of non-negative values over a population, from those of a random part of it.

    Args:
        values: those of the part, drawn without replacement, shape (n,), each >= 0.
        population: the number of all, at least n.
        level: the share of such intervals that hold the total, in (0, 1); right as far as means of n values are normal.

    Returns:
        The estimate and its interval by Student's t, never below the sum of the sample; exact where that is all,
        and an interval of NaN for a single value of several. NaN where a value is.

    Raises:
        ValueError: without values, or for a population smaller than they are.

    Source: Cochran 1977, Sampling Techniques, chapter 2 (simple random sampling, with its finite population
    correction).

    >>> everything = total([2, 2, 2], 100)
    >>> everything.value, everything.low, everything.high
    (200.0, 200.0, 200.0)
    >>> part = total([1.0, 3.0], 10)
    >>> part.value, part.low, round(part.high, 2)
    (20.0, 4.0, 133.65)
    """
    sample = np.asarray(values, dtype=float).reshape(-1)
    n = len(sample)
    if n == 0 or population < n:
        raise ValueError(f"{n} values of a population of {population}")
    known, estimate = float(sample.sum()), float(sample.mean()) * population
    if n == population:
        return Estimate(known, known, known)
    if n == 1:
        return Estimate(estimate)
    error = population * float(sample.std(ddof=1)) / math.sqrt(n) * math.sqrt(1 - n / population)
    reach = error * float(scipy.stats.t.ppf((1 + level) / 2, n - 1))
    return Estimate(estimate, max(known, estimate - reach), estimate + reach)
