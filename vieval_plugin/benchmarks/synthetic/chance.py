"""Choices by chance that drawings are made with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def pick(among: Sequence[T], rng: np.random.RandomState) -> T:
    """Draw one of several, each as likely."""
    return among[rng.randint(len(among))]
