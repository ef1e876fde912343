"""Pairwise accuracy with tie calibration: how many pairs of items a metric orders, or ties, as humans do.

A metric with many decimals never ties two items, humans on a scale of five levels often do. So two values of the metric
are called tied where they are no more than an epsilon apart, and epsilon is the one that suits these items best. Trying
every difference as epsilon means looking at all n (n - 1) / 2 of them: 200 million for 20,000 items, too many to keep
in memory and sort. Most of this module finds the best one without keeping them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vieval_plugin.stats.bootstrap import Ints
from vieval_plugin.stats.correlation import Floats, paired_vectors, weighted_pairs

# how many pairs one chunk has: small enough for a processor's cache, large enough that Python's loop costs little
_PAIRS_AT_ONCE = 250_000
# once no more pairs than this can still matter, they are kept (128 MB) instead of being made again in each round
_PAIRS_HELD = 16_000_000
# about 2^16 bins are counted in a round, so that their counters stay in a processor's cache too
_BIN_BITS = 16


class Calibrated(NamedTuple):
    """The highest pairwise accuracy, in [0, 1], and the smallest epsilon that gives it."""

    accuracy: float
    epsilon: float


def calibrated(metric: ArrayLike, human: ArrayLike) -> Calibrated:
    """Pairwise accuracy with tie calibration: the highest that any epsilon gives, and that epsilon.

    Over all pairs of items, (pairs in the same order + pairs tied in both) / pairs, where metric values no more than
    epsilon apart are tied. Epsilon is 0 or one of the differences of the metric as computed in floating point: the one
    that gives the highest accuracy on these items, the smallest of several.

    Exact in O(n^2) time and bounded memory: 20,000 items take seconds. Raising epsilon past a pair gains 1 if humans
    tie it and loses 1 if both order it alike. These are counted in bins of the difference, then only bins in which
    the total may still be highest are divided further, until each holds a single value.

    Args:
        metric: the metric's value of each item, shape (items,), on any scale.
        human: the human score of each item, shape (items,). Tied only where equal, so round means of several annotators
            first, as `agreement.annotator_mean` does.

    Returns:
        The accuracy, in [0, 1], and epsilon, >= 0 in the metric's unit; both NaN for fewer than two items.

    Raises:
        ValueError: for a value that is not finite, or vectors of different lengths.

    Source: Deutsch, Foster and Freitag 2023, "Ties Matter" (pairwise accuracy, tie calibration), without grouping:
    pairs of items of different prompts count too.

    >>> calibrated([0.1, 0.2, 0.7, 0.9], [1, 1, 3, 2])
    Calibrated(accuracy=0.8333333333333334, epsilon=0.1)
    """
    m, ends = _by_human(metric, human)
    n = len(m)
    if n < 2:
        return Calibrated(math.nan, math.nan)
    tied_in_both = _equal_pairs(m, ends)
    gain, epsilon, alike = _best_gain(m, ends)
    return Calibrated((tied_in_both + alike + gain) / math.comb(n, 2), epsilon)


def resampled_accuracy(metric: ArrayLike, human: ArrayLike, epsilon: float, counts: NDArray[np.int64]) -> Floats:
    """Pairwise accuracy at an epsilon in each bootstrap resample, for the interval of `calibrated`.

    Equal to repeating the items: an item drawn k times makes k (k - 1) / 2 pairs with itself, tied in both. Epsilon
    stays the same in all resamples, so the interval leaves out what calibrating it on the same items adds.

    Args:
        metric: as for `calibrated`, shape (items,).
        human: as for `calibrated`, shape (items,).
        epsilon: metric values no more than this apart are tied; >= 0, in the metric's unit.
        counts: number of occurrences of each item in each resample, shape (resamples, items).

    Returns:
        Shape (resamples,), in [0, 1]; NaN for a resample of fewer than two items.

    Raises:
        ValueError: as `calibrated` does, for an epsilon that is not >= 0, and for counts of another shape.

    >>> resampled_accuracy([0.1, 0.2, 0.7], [1, 1, 3], 0.0, np.array([[1, 1, 1], [2, 0, 1]])).round(3)
    array([0.667, 1.   ])
    """
    _check(epsilon)
    m, h = _finite(metric, human)
    if counts.shape[1:] != m.shape:
        raise ValueError(f"counts of shape (resamples, {len(m)}) are needed, not {counts.shape}")

    def right(rows: slice, columns: slice) -> NDArray[np.bool_]:
        dm, dh = m[rows, None] - m[columns], h[rows, None] - h[columns]
        return np.where(dh == 0, np.abs(dm) <= epsilon, np.sign(dh) * dm > epsilon)

    total = counts.sum(axis=1)
    with_itself = (counts * (counts - 1) // 2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((weighted_pairs(counts, right) + with_itself) / (total * (total - 1) // 2))


def _check(epsilon: float) -> None:
    if not epsilon >= 0:
        raise ValueError(f"epsilon is 0 or more, not {epsilon}")


def _finite(metric: ArrayLike, human: ArrayLike) -> tuple[Floats, Floats]:
    m, h = paired_vectors(metric, human)
    if not (np.isfinite(m).all() and np.isfinite(h).all()):
        raise ValueError("all scores must be finite; leave out the items without one")
    return m, h


def _by_human(metric: ArrayLike, human: ArrayLike) -> tuple[Floats, Ints]:
    """The metric sorted by human score, then by itself; and for each item the place where its human score ends.

    So m[j] - m[i] for j > i is 0 or more where humans tie the two, and else above 0 if they are ordered alike: no sign
    has to be looked at again, and a pair that the metric orders the wrong way (below 0) is right at no epsilon.
    """
    m, h = _finite(metric, human)
    order = np.lexsort((m, h))
    return m[order], np.searchsorted(h[order], h[order], side="right")


def _equal_pairs(m: Floats, ends: Ints) -> int:
    """The number of pairs that are equal both in the metric and in human score (`ends` stands for it): right at epsilon 0."""
    _, sizes = np.unique(np.stack([m, ends]), axis=1, return_counts=True)
    return int((sizes * (sizes - 1) // 2).sum())


class _Pairs(NamedTuple):
    """Keys of pairs of items: of those that humans tie, and of those that metric and humans order alike.

    A key is the bits of the difference read as an integer, which keeps the order of floats above 0. Bins of keys are
    thus narrow where differences are small and wide where they are large, and divide evenly whatever the metric's scale
    is.
    """

    tied: Ints
    alike: Ints


def _pairs(m: Floats, ends: Ints, lowest: int, highest: int) -> Iterator[_Pairs]:
    """Generate the pairs with keys from `lowest` to `highest`, which are above 0, in chunks.

    Differences of 0 have no key: they are tied at every epsilon, and `_equal_pairs` has counted them. Nor have those
    below 0, see `_by_human`.
    """
    low, high = np.array([lowest, highest]).view(np.float64)

    def keys(parts: list[Floats]) -> Ints:
        differences = np.concatenate(parts)
        return np.asarray(differences[(differences >= low) & (differences <= high)].view(np.int64))

    tied: list[Floats] = []
    alike: list[Floats] = []
    size = 0
    for i in range(len(m)):
        differences = m[i + 1 :] - m[i]
        tied.append(differences[: ends[i] - i - 1])
        alike.append(differences[ends[i] - i - 1 :])
        size += len(differences)
        if size >= _PAIRS_AT_ONCE or i == len(m) - 1:
            yield _Pairs(keys(tied), keys(alike))
            tied, alike, size = [], [], 0


class _Bins:
    """The bins of keys in which the best epsilon may lie, and their division into ever smaller ones.

    The gain of an epsilon is the number of pairs up to it that humans tie, less those ordered alike. What happens
    inside a bin is not known, but bounded: at its start the gain is that of all bins before; inside, at the very most,
    all of its ties come first. A bin whose bound is below a gain that some bin's end has for certain cannot hold the
    best epsilon and is closed. What is left is divided again, by another pass over the pairs, until a bin is a single
    key.
    """

    def __init__(self, lowest: int, highest: int) -> None:
        self.lowest, self.highest = lowest, highest
        self.width = (highest - lowest).bit_length()  # a bin is 2^width keys wide
        self.best = 0
        self._first = np.array([lowest])  # lowest key of each open bin
        self._start_gains = np.array([0])  # gain of an epsilon just below each
        self._origin, self._full_width = lowest, self.width
        self._steps: list[tuple[int, Ints]] = []  # width of bins, and number of each among the open ones or -1

    def inside(self, keys: Ints) -> tuple[Ints, Ints]:
        """The keys that lie in open bins, less the origin, and the number of each one's bin.

        Open bins are not next to one another, so a key finds its own by the way that the divisions took.
        """
        keys, number, width = keys - self._origin, np.zeros(1, dtype=np.int64), self._full_width
        for narrower, among_open in self._steps:
            number = among_open[_divided(keys, number, width, narrower)]
            keys, number, width = keys[number >= 0], number[number >= 0], narrower
        return keys, number

    def divide(self, chunks: Iterable[_Pairs]) -> tuple[int, int]:
        """Divide the open bins, keep those in which an epsilon may gain most.

        Returns the number of pairs left in these, and of pairs ordered alike that were counted.
        """
        # the more bins are open, the fewer parts each is divided into, at least two: about 2^_BIN_BITS counters in all
        width = max(0, self.width - max(1, _BIN_BITS - len(self._first).bit_length()))
        divisions = 1 << (self.width - width)
        tied, alike = np.zeros((2, len(self._first) * divisions), dtype=np.int64)
        for chunk in chunks:
            for keys, count in zip(chunk, (tied, alike), strict=True):
                count += np.bincount(_divided(*self.inside(keys), self.width, width), minlength=len(count))
        # gain at the end of each part and at its start, from that before the whole bin
        net = (tied - alike).reshape(-1, divisions)
        gain_at_end = (self._start_gains[:, None] + np.cumsum(net, axis=1)).reshape(-1)
        gain_at_start = gain_at_end - net.reshape(-1)
        # the end of a bin is an epsilon that can be had; inside it, at most all ties come first
        self.best = max(self.best, int(gain_at_end.max()))
        # without a tie inside, its start is no worse; and an epsilon must gain at least 1 over 0, the smallest of all
        may_win = (tied > 0) & (gain_at_start + tied >= max(self.best, 1))
        if width == 0:  # a bin is one key
            may_win &= gain_at_end >= max(self.best, 1)
        self._steps.append((width, np.where(may_win, np.cumsum(may_win) - 1, -1)))
        self._first = (self._first[:, None] + (np.arange(divisions) << width)).reshape(-1)[may_win]
        self._start_gains, self.width = gain_at_start[may_win], width
        # pairs outside the open bins need not be made again
        if may_win.any():
            self.lowest, self.highest = int(self._first[0]), min(self.highest, int(self._first[-1]) + (1 << width) - 1)
        return int((tied + alike)[may_win].sum()), int(alike.sum())


def _divided(keys: Ints, number: Ints, width: int, narrower: int) -> Ints:
    """Numbers of the keys' bins after each numbered bin of 2^width keys is divided into bins of 2^narrower.

    The low `width` bits of a key are its place in its bin, and the high bits of these the number of its part.
    """
    return (number << (width - narrower)) + ((keys & ((1 << width) - 1)) >> narrower)


def _best_gain(m: Floats, ends: Ints) -> tuple[int, float, int]:
    """The highest gain of an epsilon over 0, the smallest such epsilon, and the number of pairs ordered alike."""
    gaps = np.diff(np.unique(m))
    if len(gaps) == 0:  # all values are equal: every epsilon is as good as 0
        return 0, 0.0, 0
    # rounding keeps order, so no difference is smaller than one of neighbours
    lowest, highest = np.array([gaps.min(), m.max() - m.min()]).view(np.int64).tolist()
    bins = _Bins(lowest, highest)
    remaining_pairs, alike = bins.divide(_pairs(m, ends, bins.lowest, bins.highest))
    # the first division saw all pairs, so it alone counts those ordered alike; later ones see fewer
    cached_chunks: list[_Pairs] = []
    while bins.width and remaining_pairs:
        chunks = cached_chunks or _pairs(m, ends, bins.lowest, bins.highest)
        if remaining_pairs <= _PAIRS_HELD and not cached_chunks:
            chunks = cached_chunks = [_Pairs(*(bins.inside(keys)[0] + lowest for keys in chunk)) for chunk in chunks]
        remaining_pairs, _ = bins.divide(chunks)
    # bins of one key are left, or none where nothing gains over 0; the first is the smallest epsilon
    epsilon = float(np.array([bins.lowest]).view(np.float64)[0]) if remaining_pairs else 0.0
    return bins.best, epsilon, alike
