"""Two images and two texts that differ in little: text, image and group score of Winoground and EqBen."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vieval_plugin.stats.binary import resampled_mean
from vieval_plugin.stats.comparison import Bools
from vieval_plugin.stats.correlation import Floats

Missing: TypeAlias = Literal["left_out", "wrong"]


class Right(NamedTuple):
    """Masks of shape (examples,): right by text, image and group, and `complete`: with all four scores."""

    text: Bools
    image: Bools
    group: Bools
    complete: Bools


class Shares(NamedTuple):
    """Shares of the examples that are right, in [0, 1], NaN without examples; each a number or of shape (resamples,)."""

    text: Floats
    image: Floats
    group: Floats


def right(scores: ArrayLike) -> Right:
    """Examples in which a judge gets images and texts that differ in little right.

    `text`: each image scores strictly higher with its own text than with the other. `image`: each text scores strictly
    higher with its own image than with the other. `group`: both. An example with a NaN is never right and not
    `complete`.

    Args:
        scores: how well a text fits an image, shape (examples, 2 images, 2 texts), on any scale; image i belongs to
            text i, and NaN marks a score that is not there.

    Returns:
        Truth values of shape (examples,), one array a question, and which examples have all four scores.

    Raises:
        ValueError: for another shape.

    Source: Thrush et al. 2022 (Winoground), equations 1-3.

    >>> right([[[0.9, 0.2], [0.3, 0.8]], [[0.9, 0.2], [0.5, 0.5]]])[:3]
    (array([ True, False]), array([ True,  True]), array([ True, False]))
    """
    s = np.asarray(scores, dtype=float)
    if s.ndim != 3 or s.shape[1:] != (2, 2):
        raise ValueError(f"scores of shape (examples, 2 images, 2 texts) are needed, not {s.shape}")
    complete = ~np.isnan(s).any(axis=(1, 2))
    text = complete & (s[:, 0, 0] > s[:, 0, 1]) & (s[:, 1, 1] > s[:, 1, 0])
    image = complete & (s[:, 0, 0] > s[:, 1, 0]) & (s[:, 1, 1] > s[:, 0, 1])
    return Right(text, image, text & image, complete)


def shares(scores: ArrayLike, missing: Missing = "left_out") -> Shares:
    """Text, image and group score: the shares of examples that are right.

    Args:
        scores: as `right` takes them, shape (examples, 2 images, 2 texts).
        missing: an example with a NaN among its four scores is `left_out`, or counts as `wrong` in all three.

    Returns:
        Three shares, in [0, 1]; NaN where no example is left.

    Raises:
        ValueError: for another shape or another word for `missing`.

    Source: Thrush et al. 2022 (Winoground).

    >>> nan = float("nan")
    >>> some = [[[0.9, 0.2], [0.3, 0.8]], [[0.9, 0.2], [0.5, 0.5]], [[0.9, nan], [0.1, 0.7]]]
    >>> [float(share) for share in shares(some)]
    [0.5, 1.0, 0.5]
    """
    all_once = np.ones((1, len(np.asarray(scores))), dtype=np.int64)
    return Shares(*(share[0] for share in resampled_shares(scores, all_once, missing)))


def resampled_shares(scores: ArrayLike, counts: NDArray[np.int64], missing: Missing = "left_out") -> Shares:
    """`shares` in each bootstrap resample, for their intervals.

    Args:
        scores: as `right` takes them, shape (examples, 2 images, 2 texts).
        counts: number of occurrences of each example in each resample, shape (resamples, examples).
        missing: as for `shares`.

    Returns:
        Three arrays of shape (resamples,), in [0, 1]; NaN for a resample with no example left.

    Raises:
        ValueError: as `shares` does.

    >>> resampled_shares([[[0.9, 0.2], [0.3, 0.8]], [[0.9, 0.2], [0.5, 0.5]]], np.array([[1, 1], [2, 0]])).text
    array([0.5, 1. ])
    """
    if missing not in ("left_out", "wrong"):
        raise ValueError(f"missing is 'left_out' or 'wrong', not {missing!r}")
    *parts, complete = right(scores)
    is_counted = complete if missing == "left_out" else np.ones_like(complete)
    return Shares(*(resampled_mean(np.where(is_counted, part, np.nan), counts) for part in parts))
