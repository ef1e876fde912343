"""Drawn backgrounds in any number, of sorts that nothing is trained on.

Each sort is a function of a random state to a picture of 256 x 256 pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import PIL.Image
import PIL.ImageDraw
from scipy.spatial import KDTree

from bench.vieval_small.synthetic.quality import picture_of
from vieval_plugin.benchmarks.vieval_demo.drawing import SIZE, Picture

Ground: TypeAlias = Callable[[np.random.RandomState], Picture]


def colour(rng: np.random.RandomState) -> tuple[int, int, int]:
    """A random colour."""
    # half of them pale or greyish, as most surfaces are
    vivid, grey = rng.uniform(0.2, 1), rng.uniform(40, 230)
    red, green, blue = grey + (rng.randint(0, 256, 3) - grey) * vivid
    return int(red), int(green), int(blue)


def city(rng: np.random.RandomState) -> Picture:
    """Towers with lit windows before a sky."""
    canvas = PIL.Image.new("RGB", (SIZE, SIZE), colour(rng))
    pen = PIL.ImageDraw.Draw(canvas)
    lit = (250, 230, 150)
    left = -10
    while left < SIZE:
        wide, top = int(rng.randint(24, 60)), int(rng.randint(40, 170))
        grey = int(rng.randint(30, 150))
        pen.rectangle((left, top, left + wide, SIZE), fill=(grey, grey, grey + 15), outline=(20, 20, 25))
        for y in range(top + 6, SIZE, 14):
            for x in range(left + 5, left + wide - 6, 11):
                if rng.random_sample() < 0.5:
                    pen.rectangle((x, y, x + 5, y + 7), fill=lit)
        left += wide
    return canvas


def cells(rng: np.random.RandomState) -> Picture:
    """Cells around random points, each of one colour, as of a stained window."""
    points, colours = rng.uniform(0, SIZE, (60, 2)), rng.randint(20, 236, (60, 3)).astype(float)
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    nearest: tuple[Any, Any] = KDTree(points).query(np.stack([y, x], -1), k=2)
    distances, cell_index = nearest
    seam = (distances[..., 1] - distances[..., 0] < 3)[..., None]
    return picture_of(np.where(seam, 25, colours[cell_index[..., 0]]))


def rings(rng: np.random.RandomState) -> Picture:
    """Rings around a few centres that run into each other, as on water."""
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    wave = sum(np.sin(np.hypot(y - v, x - u) / rng.uniform(4, 12)) for v, u in rng.uniform(0, SIZE, (3, 2)))
    low, high = (np.array(colour(rng), float) for _ in range(2))
    return picture_of(low + (high - low) * ((wave + 3) / 6)[..., None])


HELD_OUT: tuple[Ground, ...] = (city, cells, rings)
