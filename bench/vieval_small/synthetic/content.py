"""Defects of what a picture shows: with its surroundings, with its outlines, with a thing in it.

Each change takes a picture, a strength in [0, 1], another picture and a random state; at strength 0 it is not called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import PIL.Image
import PIL.ImageChops
import PIL.ImageFilter

from vieval_plugin.benchmarks.vieval_demo.drawing import Picture

Change: TypeAlias = Callable[[Picture, float, Picture, np.random.RandomState], Picture]


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


# ---- sprites: things on a transparent ground


def cut_off(sprite: Picture, s: float) -> Picture:
    """The lower share of a sprite gone."""
    visible = sprite.copy()
    top = round(sprite.height * (1 - s))
    visible.paste((0, 0, 0, 0), (0, top, sprite.width, sprite.height))
    return visible


def squeezed(sprite: Picture, s: float) -> Picture:
    """A sprite squeezed sideways to a quarter of its width at most."""
    thin = sprite.resize((max(2, round(sprite.width * (1 - 0.75 * s))), sprite.height), PIL.Image.Resampling.BILINEAR)
    canvas = PIL.Image.new("RGBA", sprite.size)
    canvas.paste(thin, ((sprite.width - thin.width) // 2, 0))
    return canvas


def smaller(sprite: Picture, s: float) -> Picture:
    """A sprite shrunk to nothing at strength 1."""
    side = max(2, round(sprite.width * (1 - 0.95 * s)))
    return sprite.resize((side, side), PIL.Image.Resampling.BILINEAR)
