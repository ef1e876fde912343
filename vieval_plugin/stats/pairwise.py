"""Pairwise accuracy with tie calibration: how many pairs of items a metric orders, or ties, as
humans do.

A metric with many decimals never ties two items, humans on a scale of five levels often do. So two
values of the metric are called tied where they are no more than an epsilon apart, and epsilon is
the one that suits these items best. Trying every difference as epsilon means looking at all n (n -
1) / 2 of them: 200 million for 20,000 items, too many to keep in memory and sort. Most of this
module finds the best one without keeping them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vieval_plugin.stats.bootstrap import Ints
from vieval_plugin.stats.correlation import Floats, paired_vectors, weighted_pairs

# how many pairs one chunk has: small enough for a processor's cache, large enough that Python's
# loop costs little
_PAIRS_AT_ONCE = 250_000
# so many pairs that can still matter are looked at together (128 MB)
_PAIRS_HELD = 16_000_000
# at most 2^16 bins are counted, so that their counters stay in a processor's cache too
_BIN_BITS = 16


class Calibrated(NamedTuple):
    """The highest pairwise accuracy, in [0, 1], and the smallest epsilon that gives it."""

    accuracy: float
    epsilon: float


def calibrated(metric: ArrayLike, human: ArrayLike) -> Calibrated:
    """Pairwise accuracy with tie calibration: the highest that any epsilon gives, and that epsilon.

    Over all pairs of items, (pairs in the same order + pairs tied in both) / pairs, where metric
    values no more than epsilon apart are tied. Epsilon is 0 or one of the differences of the metric
    as computed in floating point: the one that gives the highest accuracy on these items, the
    smallest of several.

    Exact in O(n^2) time and bounded memory: 20,000 items take seconds. Raising epsilon past a pair
    gains 1 if humans tie it and loses 1 if both order it alike. These are counted in bins of the
    difference, and only pairs of bins in which the total may still be highest are looked at one by
    one.

    Args:
        metric: the metric's value of each item, shape (items,), on any scale.
        human: the human score of each item, shape (items,). Tied only where equal, so round means
            of several annotators first, as `agreement.annotator_mean` does.

    Returns:
        The accuracy, in [0, 1], and epsilon, >= 0 in the metric's unit; both NaN for fewer than two
        items.

    Raises:
        ValueError: for a value that is not finite, or vectors of different lengths.

    Source: Deutsch, Foster and Freitag 2023, "Ties Matter" (pairwise accuracy, tie calibration),
    without grouping: pairs of items of different prompts count too.

    >>> calibrated([0.1, 0.2, 0.7, 0.9], [1, 1, 3, 2])
    Calibrated(accuracy=0.8333333333333334, epsilon=0.1)
    """
    human_and_metric = np.stack(_finite(metric, human)[::-1])
    (h, m), counts = np.unique(human_and_metric, axis=1, return_counts=True)
    cells = _Cells(
        m,
        np.searchsorted(h, h, side="right"),
        counts,
    )
    n = int(cells.counts.sum())
    if n < 2:
        return Calibrated(math.nan, math.nan)
    tied_pairs = cells.counts * (cells.counts - 1) // 2
    tied_in_both = int(tied_pairs.sum())
    gain, epsilon, alike = _best_gain(cells)
    right_pairs = tied_in_both + alike + gain
    return Calibrated(right_pairs / math.comb(n, 2), epsilon)


def resampled_accuracy(
    metric: ArrayLike,
    human: ArrayLike,
    epsilon: float,
    counts: NDArray[np.int64],
) -> Floats:
    """Pairwise accuracy at an epsilon in each bootstrap resample, for the interval of `calibrated`.

    Equal to repeating the items: an item drawn k times makes k (k - 1) / 2 pairs with itself, tied
    in both. Epsilon stays the same in all resamples, so the interval leaves out what calibrating it
    on the same items adds.

    Args:
        metric: as for `calibrated`, shape (items,).
        human: as for `calibrated`, shape (items,).
        epsilon: metric values no more than this apart are tied; >= 0, in the metric's unit.
        counts: number of occurrences of each item in each resample, shape (resamples, items).

    Returns:
        Shape (resamples,), in [0, 1]; NaN for a resample of fewer than two items.

    Raises:
        ValueError: as `calibrated` does, for an epsilon that is not >= 0, and for counts of another
            shape.

    >>> resampled_accuracy([0.1, 0.2, 0.7], [1, 1, 3], 0.0, np.array([[1, 1, 1], [2, 0, 1]])).round(3)
    array([0.667, 1.   ])
    """
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be at least 0, got {epsilon}")
    m, h = _finite(metric, human)
    if counts.shape[1:] != m.shape:
        raise ValueError(
            f"counts must have shape (resamples, {len(m)}), got {counts.shape}"
        )

    def right(rows: slice, columns: slice) -> NDArray[np.bool_]:
        dm = m[rows, None] - m[columns]
        dh = h[rows, None] - h[columns]
        return np.where(
            dh == 0,
            np.abs(dm) <= epsilon,
            np.sign(dh) * dm > epsilon,
        )

    total = counts.sum(axis=1)
    with_itself = (counts * (counts - 1) // 2).sum(axis=1)
    pairs = total * (total - 1) // 2
    with np.errstate(invalid="ignore", divide="ignore"):
        right_pairs = weighted_pairs(counts, right) + with_itself
        return np.asarray(right_pairs / pairs)


def _finite(metric: ArrayLike, human: ArrayLike) -> tuple[Floats, Floats]:
    m, h = paired_vectors(metric, human)
    if not (np.isfinite(m).all() and np.isfinite(h).all()):
        raise ValueError("all scores must be finite; leave out items without one")
    return m, h


class _Cells(NamedTuple):
    """Items that are alike in metric and human score, once, sorted by human score and then by the
    metric.

    So m[j] - m[i] for j > i is above 0 where metric and humans order the two alike, or where humans
    tie them: no sign has to be looked at again, and a pair that the metric orders the wrong way
    (below 0) is right at no epsilon.
    """

    #: The metric.
    m: Floats
    #: Place where the human score of each ends.
    ends: Ints
    #: Number of items.
    counts: Ints


def _pairs(
    cells: _Cells,
    lowest: int,
    highest: int,
) -> Iterator[tuple[Ints, Ints]]:
    """Generate the pairs with keys from `lowest` to `highest`, which are above 0, in chunks, each
    with what it gains.

    A pair that is tied gains 1 where humans tie it, and loses 1 where humans and metric order it
    alike. A key is the bits of the difference read as an integer, which keeps the order of floats
    above 0. Bins of keys are thus narrow where differences are small and wide where they are large,
    and divide evenly whatever the metric's scale is. Differences of 0 have no key: they are tied at
    every epsilon. Nor have those below 0, see `_Cells`.
    """
    low, high = np.array([lowest, highest]).view(np.float64)
    m, ends, counts = cells
    differences = []
    gains = []
    size = 0
    for i in range(len(m)):
        differences.append(m[i + 1 :] - m[i])
        gains.append(counts[i + 1 :] * -counts[i])
        gains[-1][: ends[i] - i - 1] *= -1
        size += len(gains[-1])
        if size >= _PAIRS_AT_ONCE or i == len(m) - 1:
            chunk_differences = np.concatenate(differences)
            is_between = (chunk_differences >= low) & (chunk_differences <= high)
            yield (
                chunk_differences[is_between].view(np.int64),
                np.concatenate(gains)[is_between],
            )
            differences = []
            gains = []
            size = 0


def _best_gain(cells: _Cells) -> tuple[int, float, int]:
    """The highest gain of an epsilon over 0, the smallest such epsilon, and the number of pairs
    ordered alike.

    Pairs are first counted in bins of keys. At the end of a bin the gain is known, and inside it is
    at most what it would be if all of the bin's ties came first; so only the pairs of bins that may
    hold the best epsilon are made once more, and looked at one by one.
    """
    gaps = np.diff(np.unique(cells.m))
    if len(gaps) == 0:  # all values are equal: every epsilon is as good as 0
        return 0, 0.0, 0
    # rounding keeps order, so no difference is smaller than one of neighbours
    lowest, highest = np.array([gaps.min(), np.ptp(cells.m)]).view(np.int64).tolist()
    width = max(
        0, (highest - lowest).bit_length() - _BIN_BITS
    )  # a bin is 2^width keys wide
    net, tied, pairs = np.zeros((3, ((highest - lowest) >> width) + 1), dtype=np.int64)
    for keys, gains in _pairs(cells, lowest, highest):
        bins = (keys - lowest) >> width
        for total, weights in (
            (net, gains),
            (tied, np.maximum(gains, 0)),
            (pairs, None),
        ):
            total += np.bincount(bins, weights, len(total)).astype(np.int64)
    at_start = np.cumsum(net) - net
    # an epsilon must gain at least 1 over 0, the smallest of all
    may_win = np.flatnonzero(
        (tied > 0) & (at_start + tied >= max((at_start + net).max(), 1))
    )
    best = 0
    epsilon = 0.0
    at_once = np.cumsum(pairs[may_win]) // _PAIRS_HELD
    for bins in (may_win[at_once == number] for number in np.unique(at_once)):
        first = lowest + (int(bins[0]) << width)
        last = lowest + ((int(bins[-1]) + 1) << width) - 1
        open_bins = []
        for keys, gains in _pairs(cells, first, min(last, highest)):
            is_open = np.isin((keys - lowest) >> width, bins)
            open_bins.append((keys[is_open], gains[is_open]))
        all_keys, all_gains = map(np.concatenate, zip(*open_bins, strict=True))
        keys, number = np.unique(all_keys, return_inverse=True)
        gains = np.bincount(number, all_gains).astype(np.int64)
        # what lies before the bin of a key is known, closed bins included
        bin_of_key = (keys - lowest) >> width
        totals = np.cumsum(gains)
        totals += (
            at_start[bin_of_key]
            - (totals - gains)[np.searchsorted(bin_of_key, bin_of_key)]
        )
        highest_gain = int(totals.max())
        if highest_gain > best:
            best = highest_gain
            epsilon = float(keys[[totals.argmax()]].view(np.float64)[0])
    return best, epsilon, int((tied - net).sum())
