"""Winoground's scores: two images and two texts that go together in one way only."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from vieval_plugin.stats.correlation import Floats


def right(scores: ArrayLike) -> Floats:
    """Which examples are right, shape (3, examples), 1 or 0: by text, by image, and by both (group).

    `scores` has shape (examples, 2 images, 2 texts); image i goes with text i. Text score: each image prefers its own
    text; image score: each text prefers its own image; strictly, so that equal scores are wrong. Source: Thrush et al.,
    Winoground (2022), equations 1-3.

    >>> right([[[0.9, 0.2], [0.8, 0.3]]]).tolist()
    [[0.0], [1.0], [0.0]]
    """
    s = np.asarray(scores, dtype=float).reshape(-1, 2, 2)
    text = (s[:, 0, 0] > s[:, 0, 1]) & (s[:, 1, 1] > s[:, 1, 0])
    image = (s[:, 0, 0] > s[:, 1, 0]) & (s[:, 1, 1] > s[:, 0, 1])
    return np.array([text, image, text & image], dtype=float)
