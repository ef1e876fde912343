"""Changes of surroundings and outlines that vieval_small is trained on: what an edit should have left alone.

Each takes a picture, a strength in (0, 1], another picture and a random state.
"""

from __future__ import annotations

import numpy as np
import PIL.Image
from scipy.ndimage import map_coordinates

from bench.vieval_small.synthetic.quality import picture_of
from vieval_plugin.benchmarks.vieval_demo.drawing import Picture
from vieval_plugin.benchmarks.vieval_demo.spoiling import over_edit


def turned_and_bent(picture: Picture, s: float, other: Picture, rng: np.random.RandomState) -> Picture:
    return over_edit(picture, s)


def recoloured(picture: Picture, s: float, other: Picture, rng: np.random.RandomState) -> Picture:
    hue, saturation, value = picture.convert("HSV").split()
    way = 90 if rng.random_sample() < 0.5 else -90
    merged = PIL.Image.merge("HSV", (hue.point(lambda h: (h + round(way * s)) % 256), saturation, value))
    pixels, tint = np.asarray(merged.convert("RGB"), float), rng.randint(0, 256, 3)
    return picture_of(pixels + (tint - pixels) * 0.4 * s)


def replaced(picture: Picture, s: float, other: Picture, rng: np.random.RandomState) -> Picture:
    return PIL.Image.blend(picture, other, s)


def replaced_from_a_side(picture: Picture, s: float, other: Picture, rng: np.random.RandomState) -> Picture:
    mask = _from_a_side(picture.size, s, rng)
    return PIL.Image.composite(other, picture, mask)


def replaced_in_pieces(picture: Picture, s: float, other: Picture, rng: np.random.RandomState) -> Picture:
    coarse = PIL.Image.fromarray((rng.random_sample((8, 8)) < s).astype(np.uint8) * 255)
    return PIL.Image.composite(other, picture, coarse.resize(picture.size, PIL.Image.Resampling.NEAREST))


def bent(picture: Picture, s: float, other: Picture, rng: np.random.RandomState) -> Picture:
    """From a random side, over that share, in waves of random length."""
    sides = int(rng.randint(4))
    x = np.rot90(np.asarray(picture, np.float32), sides)
    height, width = x.shape[:2]
    y, c = np.mgrid[0:height, 0:width].astype(np.float32)
    push = rng.uniform(10, 14) * np.clip((c - (1 - s) * width) / 12, 0, 1)
    one, two, begin = rng.uniform(80, 160), rng.uniform(80, 160), rng.uniform(0, 6.3, 2)
    at = [y + push * np.sin(2 * np.pi * c / one + begin[0]), c + push * np.sin(2 * np.pi * y / two + begin[1])]
    moved = np.stack([map_coordinates(x[..., i], at, order=1, mode="reflect") for i in range(3)], -1)
    return picture_of(np.rot90(moved, -sides))


def lightened(picture: Picture, s: float, other: Picture, rng: np.random.RandomState) -> Picture:
    pixels, level = np.asarray(picture, float), rng.choice([0, 128, 255])
    return picture_of(pixels + (level - pixels) * 0.8 * s)


def _from_a_side(size: tuple[int, int], s: float, rng: np.random.RandomState) -> Picture:
    ramp = np.repeat(np.linspace(0, 1, size[0], endpoint=False)[None], size[1], axis=0)
    mask = PIL.Image.fromarray((ramp < s).astype(np.uint8) * 255)
    return mask.rotate(90 * int(rng.randint(4)))
