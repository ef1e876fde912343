"""Defects of a picture as a whole that no judge of ours was trained on.

Each defect is a function of pixels (height, width, 3) of 0 to 255 as floats, a strength in (0, 1] and a random state.
At 1 each is about as bad as the others are, and as bad as those of `vieval_demo` get.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import PIL.Image
import PIL.ImageDraw
from scipy.ndimage import map_coordinates

Pixels: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Defect: TypeAlias = Callable[[Pixels, float, np.random.RandomState], Pixels]


def zoom_blur(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    """Blur as of a lens that is turned while the picture is taken: nothing at the centre, most at the corners."""
    middle = np.array(x.shape[:2])[:, None, None] / 2
    at = np.mgrid[0 : x.shape[0], 0 : x.shape[1]] - middle
    total = np.zeros_like(x)
    for step in np.linspace(1 - 0.3 * s, 1, 16):
        total += np.stack([map_coordinates(x[..., i], at * step + middle, order=1) for i in range(3)], -1)
    return total / 16


def frosted(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    """Distort as behind frosted glass: each pixel is one of its neighbourhood."""
    far = 9 * s
    at = np.mgrid[0 : x.shape[0], 0 : x.shape[1]] + rng.uniform(-far, far, (2, *x.shape[:2]))
    return np.stack([map_coordinates(x[..., i], at, order=1, mode="reflect") for i in range(3)], -1)


def fringed(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    """Red and blue pulled apart."""
    far, turn = 12 * s, rng.uniform(0, 2 * np.pi)
    y, c = np.mgrid[0 : x.shape[0], 0 : x.shape[1]].astype(np.float32)
    channels = [
        map_coordinates(
            x[..., i], [y + way * far * np.sin(turn), c + way * far * np.cos(turn)], order=1, mode="nearest"
        )
        for i, way in ((0, 1), (1, 0), (2, -1))
    ]
    return np.stack(channels, -1)


def scratched(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    """Thin light and dark scratches in all directions."""
    picture = picture_of(x)
    pen = PIL.ImageDraw.Draw(picture)
    for _ in range(round(90 * s)):
        begin = rng.uniform(-20, 276, 2)
        turn, length = rng.uniform(0, 2 * np.pi), rng.uniform(20, 120)
        end = begin + length * np.array([np.cos(turn), np.sin(turn)])
        pen.line((*begin, *end), fill=(255, 255, 255) if rng.random_sample() < 0.6 else (15, 15, 15), width=1)
    return np.asarray(picture, dtype=np.float32)


def halftone(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    """Printed in dots of full colour, laid over the picture by the strength."""
    ranks = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]])
    tile = np.tile((ranks + 0.5) / 16 * 255, (x.shape[0] // 4 + 1, x.shape[1] // 4 + 1))
    dots = np.where(x > tile[: x.shape[0], : x.shape[1], None], 255, 0)
    return x + (dots - x) * 0.75 * s


def torn(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    """Strips of rows pushed sideways."""
    x, top = x.copy(), 0
    while top < x.shape[0]:
        high = rng.randint(3, 12)
        x[top : top + high] = np.roll(x[top : top + high], round(rng.uniform(-24, 24) * s), axis=1)
        top += high
    return x


HELD_OUT: tuple[Defect, ...] = (zoom_blur, frosted, fringed, scratched, halftone, torn)


def spoil(picture: PIL.Image.Image, defect: Defect, strength: float, rng: np.random.RandomState) -> PIL.Image.Image:
    """The picture with a defect; itself at strength 0."""
    if strength == 0:
        return picture
    return picture_of(defect(np.asarray(picture, dtype=np.float32), strength, rng))


def picture_of(x: Pixels) -> PIL.Image.Image:
    """A picture of pixels of 0 to 255, clipped and rounded."""
    return PIL.Image.fromarray(np.clip(x, 0, 255).round().astype(np.uint8))
