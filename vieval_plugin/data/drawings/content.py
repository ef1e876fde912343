"""What can be wrong with what a picture shows: with its surroundings, with its outlines, with a thing in it.

Each takes a picture, a strength in [0, 1], another picture and a random state; at strength 0 it is not called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import PIL.Image
import PIL.ImageChops
import PIL.ImageFilter
from scipy.ndimage import map_coordinates

from vieval_plugin.data.drawings.drawing import Picture
from vieval_plugin.data.drawings.spoiling import over_edit

Change: TypeAlias = Callable[[Picture, float, Picture, np.random.RandomState], Picture]


# ---- surroundings that an edit should have left alone


def turned_and_bent(picture: Picture, s: float, other: Picture, rng: np.random.RandomState) -> Picture:
    return over_edit(picture, s)


def recoloured(picture: Picture, s: float, other: Picture, rng: np.random.RandomState) -> Picture:
    hue, saturation, value = picture.convert("HSV").split()
    way = 90 if rng.random_sample() < 0.5 else -90
    merged = PIL.Image.merge("HSV", (hue.point(lambda h: (h + round(way * s)) % 256), saturation, value))
    pixels, tint = np.asarray(merged.convert("RGB"), float), rng.randint(0, 256, 3)
    return _picture(pixels + (tint - pixels) * 0.4 * s)


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
    return _picture(np.rot90(moved, -sides))


def lightened(picture: Picture, s: float, other: Picture, rng: np.random.RandomState) -> Picture:
    pixels, level = np.asarray(picture, float), rng.choice([0, 128, 255])
    return _picture(pixels + (level - pixels) * 0.8 * s)


# ---- held out


def slid(picture: Picture, s: float, other: Picture, rng: np.random.RandomState) -> Picture:
    """The whole pushed in a direction; what leaves on one side comes in on the other."""
    turn = rng.uniform(0, 2 * np.pi)
    return PIL.ImageChops.offset(picture, round(48 * s * np.cos(turn)), round(48 * s * np.sin(turn)))


def painted(picture: Picture, s: float, other: Picture, rng: np.random.RandomState) -> Picture:
    """Painted over with a broad brush: the commonest of neighbouring colours, laid on by the strength."""
    brushed = picture.quantize(10).convert("RGB").filter(PIL.ImageFilter.ModeFilter(9))
    return PIL.Image.blend(picture, brushed, s)


def rotated(picture: Picture, s: float, other: Picture, rng: np.random.RandomState) -> Picture:
    way = 16 if rng.random_sample() < 0.5 else -16
    return picture.rotate(way * s, PIL.Image.Resampling.BILINEAR, fillcolor=picture.getpixel((3, 3)))


def zoomed(picture: Picture, s: float, other: Picture, rng: np.random.RandomState) -> Picture:
    edge = 0.16 * s
    wide, high = picture.size
    box = (edge * wide, edge * high, (1 - edge) * wide, (1 - edge) * high)
    return picture.resize(picture.size, PIL.Image.Resampling.BILINEAR, box=box)


_TRAINED = (turned_and_bent, recoloured, replaced, replaced_from_a_side, replaced_in_pieces, bent, lightened)
CHANGES: dict[str, Change] = {one.__name__: one for one in (*_TRAINED, slid, painted, rotated, zoomed)}


# ---- sprites: things on a transparent ground


def cut_off(sprite: Picture, s: float) -> Picture:
    """The lower share of a sprite gone."""
    kept = sprite.copy()
    top = round(sprite.height * (1 - s))
    kept.paste((0, 0, 0, 0), (0, top, sprite.width, sprite.height))
    return kept


def squeezed(sprite: Picture, s: float) -> Picture:
    """A sprite squeezed sideways to a quarter of its width at most."""
    thin = sprite.resize((max(2, round(sprite.width * (1 - 0.75 * s))), sprite.height), PIL.Image.Resampling.BILINEAR)
    whole = PIL.Image.new("RGBA", sprite.size)
    whole.paste(thin, ((sprite.width - thin.width) // 2, 0))
    return whole


def smaller(sprite: Picture, s: float) -> Picture:
    """A sprite shrunk to nothing at strength 1."""
    side = max(2, round(sprite.width * (1 - 0.95 * s)))
    return sprite.resize((side, side), PIL.Image.Resampling.BILINEAR)


def _from_a_side(size: tuple[int, int], s: float, rng: np.random.RandomState) -> Picture:
    ramp = np.repeat(np.linspace(0, 1, size[0], endpoint=False)[None], size[1], axis=0)
    mask = PIL.Image.fromarray((ramp < s).astype(np.uint8) * 255)
    return mask.rotate(90 * int(rng.randint(4)))


def _picture(x: np.ndarray) -> Picture:
    return PIL.Image.fromarray(np.clip(x, 0, 255).round().astype(np.uint8))
