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
    (human_scores, metric_values), counts = np.unique(
        human_and_metric, axis=1, return_counts=True
    )
    ends = np.searchsorted(human_scores, human_scores, side="right")
    cells = _Cells(
        metric=metric_values,
        ends=ends,
        counts=counts,
    )
    n = int(cells.counts.sum())
    if n < 2:
        return Calibrated(
            accuracy=math.nan,
            epsilon=math.nan,
        )
    tied_pairs = cells.counts * (cells.counts - 1) // 2
    tied_in_both = int(tied_pairs.sum())
    gain, epsilon, alike = _best_gain(cells)
    right_pairs = tied_in_both + alike + gain
    return Calibrated(
        accuracy=right_pairs / math.comb(n, 2),
        epsilon=epsilon,
    )


def resampled_accuracy(
    metric: ArrayLike,
    human: ArrayLike,
    epsilon: float,
    counts: Ints,
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
    metric_values, human_scores = _finite(metric, human)
    if counts.shape[1:] != metric_values.shape:
        raise ValueError(
            f"counts must have shape (resamples, {len(metric_values)}), got {counts.shape}"
        )

    def right(rows: slice, columns: slice) -> NDArray[np.bool_]:
        metric_difference = metric_values[rows, None] - metric_values[columns]
        human_difference = human_scores[rows, None] - human_scores[columns]
        return np.where(
            human_difference == 0,
            np.abs(metric_difference) <= epsilon,
            np.sign(human_difference) * metric_difference > epsilon,
        )

    total = counts.sum(axis=1)
    with_itself = (counts * (counts - 1) // 2).sum(axis=1)
    pairs = total * (total - 1) // 2
    with np.errstate(invalid="ignore", divide="ignore"):
        right_pairs = weighted_pairs(counts, right) + with_itself
        return np.asarray(right_pairs / pairs)


def _finite(metric: ArrayLike, human: ArrayLike) -> tuple[Floats, Floats]:
    metric_values, human_scores = paired_vectors(metric, human)
    if not (np.isfinite(metric_values).all() and np.isfinite(human_scores).all()):
        raise ValueError("all scores must be finite; leave out items without one")
    return metric_values, human_scores


class _Cells(NamedTuple):
    """Items that are alike in metric and human score, once, sorted by human score and then by the
    metric.

    So m[j] - m[i] for j > i is above 0 where metric and humans order the two alike, or where humans
    tie them: no sign has to be looked at again, and a pair that the metric orders the wrong way
    (below 0) is right at no epsilon.
    """

    metric: Floats
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
    values, ends, counts = cells
    differences = []
    gains = []
    size = 0
    for row in range(len(values)):
        differences.append(values[row + 1 :] - values[row])
        gains.append(counts[row + 1 :] * -counts[row])
        gains[-1][: ends[row] - row - 1] *= -1
        size += len(gains[-1])
        if size >= _PAIRS_AT_ONCE or row == len(values) - 1:
            chunk_differences = np.concatenate(differences)
            is_between = (chunk_differences >= low) & (chunk_differences <= high)
            keys = chunk_differences[is_between].view(np.int64)
            yield keys, np.concatenate(gains)[is_between]
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
    gaps = np.diff(np.unique(cells.metric))
    if len(gaps) == 0:  # all values are equal: every epsilon is as good as 0
        return 0, 0.0, 0
    # rounding keeps order, so no difference is smaller than one of neighbours
    ends = np.array([gaps.min(), np.ptp(cells.metric)]).view(np.int64)
    lowest, highest = ends.tolist()
    width = (highest - lowest).bit_length() - _BIN_BITS
    bins = _Bins(
        lowest=lowest,
        highest=highest,
        width=max(0, width),
    )
    net, tied, pairs = _bin_totals(cells, bins)
    at_start = np.cumsum(net) - net
    # an epsilon must gain at least 1 over 0, the smallest of all
    least_gain = max((at_start + net).max(), 1)
    may_win = np.flatnonzero((tied > 0) & (at_start + tied >= least_gain))
    best = 0
    epsilon = 0.0
    at_once = np.cumsum(pairs[may_win]) // _PAIRS_HELD
    for number in np.unique(at_once):
        opened = may_win[at_once == number]
        keys, totals = _key_totals(cells, bins, opened, at_start)
        highest_gain = int(totals.max())
        if highest_gain > best:
            best = highest_gain
            best_key = keys[[totals.argmax()]]
            epsilon = float(best_key.view(np.float64)[0])
    return best, epsilon, int((tied - net).sum())


class _Bins(NamedTuple):
    """Bins of keys from a lowest to a highest one, each 2^width keys wide."""

    lowest: int
    highest: int
    width: int

    def indices(self, keys: Ints) -> Ints:
        """The bin of each key."""
        return np.asarray((keys - self.lowest) >> self.width, dtype=np.int64)

    def start(self, index: int) -> int:
        """The first key of a bin."""
        return self.lowest + (index << self.width)


def _bin_totals(cells: _Cells, bins: _Bins) -> Ints:
    """Gains, ties of humans and pairs in each bin, shape (3, bins)."""
    number = ((bins.highest - bins.lowest) >> bins.width) + 1
    totals = np.zeros((3, number), dtype=np.int64)
    net, tied, pairs = totals
    for keys, gains in _pairs(cells, bins.lowest, bins.highest):
        indices = bins.indices(keys)
        net += np.bincount(indices, gains, number).astype(np.int64)
        ties = np.maximum(gains, 0)
        tied += np.bincount(indices, ties, number).astype(np.int64)
        pairs += np.bincount(indices, minlength=number)
    return totals


def _key_totals(
    cells: _Cells,
    bins: _Bins,
    opened: Ints,
    at_start: Ints,
) -> tuple[Ints, Ints]:
    """The keys in some bins, and the gain up to each as epsilon."""
    first = bins.start(int(opened[0]))
    last = bins.start(int(opened[-1]) + 1) - 1
    open_keys = []
    open_gains = []
    for keys, gains in _pairs(cells, first, min(last, bins.highest)):
        is_open = np.isin(bins.indices(keys), opened)
        open_keys.append(keys[is_open])
        open_gains.append(gains[is_open])
    keys, number = np.unique(np.concatenate(open_keys), return_inverse=True)
    all_gains = np.concatenate(open_gains)
    gains = np.bincount(number, all_gains).astype(np.int64)
    bin_of_key = bins.indices(keys)
    bin_starts = np.searchsorted(bin_of_key, bin_of_key)
    totals = np.cumsum(gains)
    before_bin = (totals - gains)[bin_starts]
    # what lies before the bin of a key is known, closed bins included
    totals += at_start[bin_of_key] - before_bin
    return keys, totals
