"""Drift of a judge: are its answers of today other than its own repeats of an earlier day?

If nothing changed, the new answer to an item is one more repeat, and which of an item's answers is
the new one is chance. The permutation test draws that anew for each item, so a judge's own noise is
no drift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from vieval_plugin.stats.decisions import (
    CUSUM_ALLOWANCE,
    CUSUM_LIMIT,
    DRIFT_LEVEL,
    FIRST_NIGHTS,
    NOTABLE_CORRELATION,
    POWER,
)
from vieval_plugin.stats.ranking import holm

PERMUTATIONS = 10_000
_LARGEST_CORRELATION = 0.9
_AT_ONCE = 256
_ROUNDING = 1e-9


@dataclass(frozen=True)
class DriftTest:
    """Outcome of a test."""

    #: What is tested.
    name: str
    #: Its value in the new answers.
    latest: float
    repeats: float
    #: Number of items.
    n: int
    p: float
    #: P-value after Holm.
    adjusted: float
    #: Least difference that such a test, with the noise of these repeats, finds about four times of
    #: five; or NaN.
    smallest: float


def drift_tests(
    codes: ArrayLike,
    scores: ArrayLike,
    usable: ArrayLike,
    seed: int = 0,
) -> tuple[DriftTest, ...]:
    """Test new answers against repeats: the share of changed answers, the mean score, the share of
    usable answers.

    Args:
        codes: a number for each different answer, shape (items, repeats + 1), the new answers in
            the last column.
        scores: in [0, 1], NaN where an answer has none, same shape; items with a NaN are left out
            of the mean.
        usable: whether an answer could be used, same shape.
        seed: of the permutations.

    Returns:
        `changed` (the share of pairs of answers to an item that differ), `mean score` and `usable
        answers`, with p adjusted by Holm over those that have items: drift at 5% is an adjusted p
        of at most .05 in any.

    Raises:
        ValueError: fewer than two columns.

    Source: permutation within blocks (Good 2005, Permutation, Parametric and Bootstrap Tests of
    Hypotheses, chapter 7); p with the observed value counted (Phipson and Smyth 2010).

    >>> same = [[1, 1, 1, 1]] * 30
    >>> [test.adjusted for test in drift_tests(same, same, same)]
    [1.0, 1.0, 1.0]
    """
    codes = np.asarray(codes)
    scores = np.asarray(scores, dtype=float)
    usable = np.asarray(usable, dtype=float)
    if codes.shape[1] < 2:
        raise ValueError("answers must include at least one repeat and the new ones")
    complete = scores[~np.isnan(scores).any(axis=1)]
    differing = (codes[:, :, None] != codes[:, None, :]).sum(axis=2) / (
        codes.shape[1] - 1
    )
    repeats = codes[:, :-1]
    pairs = repeats.shape[1] * (repeats.shape[1] - 1)
    differing_pairs = (repeats[:, :, None] != repeats[:, None, :]).sum()
    if pairs and len(codes):
        in_repeats = float(differing_pairs / (len(codes) * pairs))
    else:
        in_repeats = math.nan
    item = (codes.shape[1] - 2) / codes.shape[
        1
    ]  # the new answer's 1 less the mean of the item's column values
    tested = [("changed", differing, _mean(differing[:, -1]), in_repeats, False, item)]
    for name, answers, change in (
        ("mean score", complete, 0.0),
        ("usable answers", usable, 1.0),
    ):
        latest = _mean(answers[:, -1])
        earlier = _mean(answers[:, :-1])
        tested.append((name, _less_others(answers), latest, earlier, True, change))
    p_values = []
    for number, (_, values, _, _, two_sided, _) in enumerate(tested):
        rng = np.random.default_rng([seed, number])
        p_values.append(_p(values, two_sided, rng))
    adjusted = holm(p_values)
    family = sum(not math.isnan(p) for p in p_values)
    tests = []
    for quantity, p, p_holm in zip(tested, p_values, adjusted, strict=True):
        name, values, latest, earlier, two_sided, item = quantity
        tests.append(
            DriftTest(
                name,
                latest,
                earlier,
                len(values),
                p,
                float(p_holm),
                _smallest(values, family, two_sided, item),
            )
        )
    return tuple(tests)


def _less_others(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each answer less the mean of the item's others."""
    sums = values.sum(axis=1, keepdims=True)
    mean_of_others = (sums - values) / (values.shape[1] - 1)
    result: NDArray[np.float64] = values - mean_of_others
    return result


def _p(
    values: NDArray[np.float64],
    two_sided: bool,
    rng: np.random.Generator,
) -> float:
    """The p-value of the last column's sum, if any column of an item could have been the last."""
    if not len(values):
        return math.nan
    side = np.abs if two_sided else np.asarray
    observed = side(values[:, -1].sum())
    rows = np.arange(len(values))
    exceeding = 0
    for start in range(0, PERMUTATIONS, _AT_ONCE):
        size = min(_AT_ONCE, PERMUTATIONS - start)
        columns = rng.integers(values.shape[1], size=(size, len(values)))
        sums = side(values[rows, columns].sum(axis=1))
        exceeding += int((sums >= observed - _ROUNDING).sum())
    return (exceeding + 1) / (PERMUTATIONS + 1)


def _smallest(
    values: NDArray[np.float64],
    family: int,
    two_sided: bool,
    item: float,
) -> float:
    """Least difference that is found with the chance `POWER`, by the normal approximation with half
    a step's correction.

    Never less than so many changed items as are needed where repeats never differ: k of them have p
    = columns^-k.

    Args:
        values: of the statistic, shape (items, columns).
        family: number of tests that p is adjusted over.
        two_sided: whether the test is.
        item: what a changed item adds to the statistic's sum, by which the number of changed items,
            a binomial one, spreads it; 0 where all items move by a little.
    """
    n, columns = values.shape
    if not n:
        return math.nan
    level = DRIFT_LEVEL / family
    sides = 2 if two_sided else 1
    z = scipy.stats.norm.ppf(1 - level / sides)
    step = item * columns / (columns - 1)
    share = 0.0
    for _ in range(100):
        noise = (1 - share) * values.var(axis=1).mean()
        null_variance = noise + share * item**2 / (columns - 1)
        spread = z * math.sqrt(null_variance)
        changed_variance = noise + share * (1 - share) * item**2
        spread += scipy.stats.norm.ppf(POWER) * math.sqrt(changed_variance)
        reach = math.sqrt(n) * spread + step / 2
        share = min(1.0, reach / (n * (item or 1)))
    fewest_items = math.ceil(math.log(level) / -math.log(columns))
    return float(max(share, fewest_items / n))


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if values.size else math.nan


@dataclass(frozen=True)
class Cusum:
    """Cumulative sum of the falls of a series of nights."""

    #: Mean of the first nights.
    mean: float
    #: Standard deviation of a night, widened where nights are correlated.
    deviation: float
    #: Sum after each later night, in standard deviations.
    sums: tuple[float, ...]
    #: Index of the night that raised the alarm, counted over the whole series; None without one.
    alarm: int | None


def cusum(nights: ArrayLike) -> Cusum | None:
    """One-sided CUSUM of nightly differences to a fixed baseline, with mean and spread of the first
    28 nights.

    Nights that share pictures are correlated, and their spread says too little: from a correlation
    of .25 of one night with the next on, the spread is widened to that of a sum of such nights
    (`bench/nights.py`).

    Args:
        nights: a difference a night, shape (nights,), in order.

    Returns:
        None for up to 28 nights, and where the first 28 do not vary.

    Source: Page 1954, Continuous inspection schemes; an alarm stays.

    >>> level = [0.0, 0.01] * 14
    >>> cusum(level) is None, cusum([*level, *[-0.01] * 9]).alarm
    (True, 31)
    """
    differences = np.asarray(nights, dtype=float)
    first = differences[:FIRST_NIGHTS]
    later = differences[FIRST_NIGHTS:]
    if not len(later) or np.ptp(first) < _ROUNDING:
        return None
    mean = float(first.mean())
    deviation = float(first.std(ddof=1)) * _widening(first - mean)
    night_deviation = deviation * math.sqrt(1 + 1 / FIRST_NIGHTS)
    falls = (mean - later) / night_deviation
    sums: list[float] = []
    for fall in falls.tolist():
        previous = sums[-1] if sums else 0.0
        sums.append(max(0.0, previous + fall - CUSUM_ALLOWANCE))
    alarm = next(
        (
            FIRST_NIGHTS + night
            for night, total in enumerate(sums)
            if total > CUSUM_LIMIT
        ),
        None,
    )
    return Cusum(mean, deviation, tuple(sums), alarm)


def _widening(centred: NDArray[np.float64]) -> float:
    """Factor of the standard deviation of nights that depend on the one before, 1 below a
    notable correlation.
    """
    bias = 1 / len(centred)  # of a correlation around the mean of the same nights
    products = centred[1:] @ centred[:-1]
    correlation = float(products / (centred @ centred)) + bias
    if correlation < NOTABLE_CORRELATION:
        return 1.0
    correlation = min(correlation, _LARGEST_CORRELATION)
    return math.sqrt((1 + correlation) / (1 - correlation))
