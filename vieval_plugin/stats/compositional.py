"""Two images and two texts that differ in little: text, image and group score of Winoground and
EqBen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from vieval_plugin.stats.correlation import Floats


def right_points(scores: ArrayLike) -> Floats:
    """Points of examples in which a judge gets images and texts that differ in little right: by
    text, image and group.

    Text: each image scores strictly higher with its own text than with the other. Image: each text
    scores strictly higher with its own image than with the other. Group: both.

    Args:
        scores: how well a text fits an image, shape (examples, 2 images, 2 texts), on any scale;
            image i belongs to text i, and NaN marks a score that is not there.

    Returns:
        Shape (3, examples), each 1 or 0; NaN for an example without all four scores. The means are
        the three scores.

    Raises:
        ValueError: for another shape.

    Source: Thrush et al. 2022 (Winoground), equations 1-3.

    >>> right_points([[[0.9, 0.2], [0.3, 0.8]], [[0.9, 0.2], [0.5, 0.5]]]).tolist()
    [[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]]
    """
    s = np.asarray(scores, dtype=float)
    if s.ndim != 3 or s.shape[1:] != (2, 2):
        raise ValueError(
            f"scores of shape (examples, 2 images, 2 texts) are needed, not {s.shape}"
        )
    text = (s[:, 0, 0] > s[:, 0, 1]) & (s[:, 1, 1] > s[:, 1, 0])
    image = (s[:, 0, 0] > s[:, 1, 0]) & (s[:, 1, 1] > s[:, 0, 1])
    return np.where(np.isnan(s).any(axis=(1, 2)), np.nan, [text, image, text & image])
