"""Drift of a judge: are its answers of today other than its own repeats of an earlier day?

If nothing changed, the new answer to an item is one more repeat, and which of an item's answers is
the new one is chance. The permutation test draws that anew for each item, so a judge's own noise is
no drift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from vieval_plugin.stats.correlation import Floats
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
        raise ValueError(
            "`codes` must have a column for each repeat and one for the new answers, "
            f"got shape {codes.shape}"
        )
    complete = scores[~np.isnan(scores).any(axis=1)]
    quantities = (
        _changed_answers(codes),
        _mean_answer("mean score", complete, 0.0),
        _mean_answer("usable answers", usable, 1.0),
    )
    p_values = []
    for number, quantity in enumerate(quantities):
        rng = np.random.default_rng([seed, number])
        p_values.append(_p(quantity.values, quantity.two_sided, rng))
    adjusted = holm(p_values).tolist()
    family = sum(not math.isnan(p) for p in p_values)
    tests = []
    for quantity, p, p_holm in zip(quantities, p_values, adjusted, strict=True):
        values = quantity.values
        smallest = _smallest(values, family, quantity.two_sided, quantity.item)
        test = DriftTest(
            name=quantity.name,
            latest=quantity.latest,
            repeats=quantity.repeats,
            n=len(values),
            p=p,
            adjusted=p_holm,
            smallest=smallest,
        )
        tests.append(test)
    return tuple(tests)


class _Quantity(NamedTuple):
    """A quantity that is tested, with its values of answers, the new ones in the last column."""

    name: str
    values: Floats
    #: Its value in the new answers.
    latest: float
    #: Its value in the repeats.
    repeats: float
    two_sided: bool
    #: As for `_smallest`.
    item: float


def _changed_answers(codes: NDArray[Any]) -> _Quantity:
    """The share of the item's other answers that differ from an answer."""
    items, columns = codes.shape
    differing = _differ(codes).sum(axis=2) / (columns - 1)
    pairs = (columns - 1) * (columns - 2)
    in_repeats = math.nan
    if pairs and items:
        differing_pairs = _differ(codes[:, :-1]).sum()
        in_repeats = float(differing_pairs / (items * pairs))
    # the new answer's 1 less the mean of the item's column values
    item = (columns - 2) / columns
    latest = _mean(differing[:, -1])
    return _Quantity(
        name="changed",
        values=differing,
        latest=latest,
        repeats=in_repeats,
        two_sided=False,
        item=item,
    )


def _differ(codes: NDArray[Any]) -> NDArray[np.bool_]:
    """True for each two answers to an item that differ, shape (items, columns, columns)."""
    return np.asarray(codes[:, :, None] != codes[:, None, :])


def _mean_answer(
    name: str,
    answers: Floats,
    item: float,
) -> _Quantity:
    """The mean of answers, each less the mean of the item's others."""
    latest = _mean(answers[:, -1])
    earlier = _mean(answers[:, :-1])
    return _Quantity(
        name=name,
        values=_less_others(answers),
        latest=latest,
        repeats=earlier,
        two_sided=True,
        item=item,
    )


def _less_others(values: Floats) -> Floats:
    """Each answer less the mean of the item's others."""
    sums = values.sum(axis=1, keepdims=True)
    mean_of_others = (sums - values) / (values.shape[1] - 1)
    result: Floats = values - mean_of_others
    return result


def _p(
    values: Floats,
    two_sided: bool,
    rng: np.random.Generator,
) -> float:
    """The p-value of the last column's sum, if any column of an item could have been the last."""
    if not len(values):
        return math.nan
    side = np.abs if two_sided else np.asarray
    observed = side(values[:, -1].sum())
    items, column_count = values.shape
    rows = np.arange(items)
    exceeding = 0
    for start in range(0, PERMUTATIONS, _AT_ONCE):
        size = min(_AT_ONCE, PERMUTATIONS - start)
        columns = rng.integers(column_count, size=(size, items))
        sums = side(values[rows, columns].sum(axis=1))
        exceeds = sums >= observed - _ROUNDING
        exceeding += int(exceeds.sum())
    return (exceeding + 1) / (PERMUTATIONS + 1)


def _smallest(
    values: Floats,
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
    sides = 2
    if not two_sided:
        sides = 1
    z = scipy.stats.norm.ppf(1 - level / sides)
    step = item * columns / (columns - 1)
    power_quantile = scipy.stats.norm.ppf(POWER)
    item_variance = values.var(axis=1).mean()
    share = 0.0
    for _ in range(100):
        noise = (1 - share) * item_variance
        null_variance = noise + share * item**2 / (columns - 1)
        spread = z * math.sqrt(null_variance)
        changed_variance = noise + share * (1 - share) * item**2
        spread += power_quantile * math.sqrt(changed_variance)
        reach = math.sqrt(n) * spread + step / 2
        share = min(1.0, reach / (n * (item or 1)))
    fewest_items = math.ceil(math.log(level) / -math.log(columns))
    return float(max(share, fewest_items / n))


def _mean(values: Floats) -> float:
    if values.size:
        return float(values.mean())
    return math.nan


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
        previous = 0.0
        if sums:
            previous = sums[-1]
        sums.append(max(0.0, previous + fall - CUSUM_ALLOWANCE))
    later_nights = enumerate(sums, start=FIRST_NIGHTS)
    alarms = (night for night, total in later_nights if total > CUSUM_LIMIT)
    return Cusum(
        mean=mean,
        deviation=deviation,
        sums=tuple(sums),
        alarm=next(alarms, None),
    )


def _widening(centred: Floats) -> float:
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
