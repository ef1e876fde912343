"""Defects of a picture as a whole: bent, recoloured, noisy, blurred, stamped with a watermark.

Each defect takes a strength in [0, 1]; 0 leaves the picture as it is and 1 is as bad as the
synthetic benchmark gets.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFilter
import PIL.ImageFont
from scipy.ndimage import map_coordinates

from vieval_plugin.benchmarks.vieval_demo.drawing import Picture


def spoil(picture: Picture, defect: str, strength: float, seed: int) -> Picture:
    """The picture with one of `QUALITY_DEFECTS`: noise up to 60 grey levels (standard deviation),
    blur up to 5 pixels (likewise), or a watermark up to 85% opaque. `seed` is the noise's.
    """
    if strength == 0:
        return picture
    if defect == "noise":
        return _noisy(picture, 60 * strength, seed)
    if defect == "blur":
        return picture.filter(PIL.ImageFilter.GaussianBlur(5 * strength))
    return _stamped(picture, 0.85 * strength)


def overdo_edit(picture: Picture, strength: float) -> Picture:
    """The picture after an edit that did not leave it alone: colours turned, and that share of
    its width bent.
    """
    if strength == 0:  # a trip through HSV alone changes some pixels
        return picture
    hue, saturation, value = picture.convert("HSV").split()
    turned = hue.point(lambda h: (h + round(90 * strength)) % 256)
    turned_picture = PIL.Image.merge("HSV", (turned, saturation, value))
    return bend(turned_picture.convert("RGB"), strength)


def bend(picture: Picture, share: float) -> Picture:
    """The picture with that share of its width, from the right, pushed into waves of 12 pixels."""
    if share == 0:
        return picture
    pixels = np.asarray(picture)
    height, width = pixels.shape[:2]
    y, x = np.mgrid[0:height, 0:width].astype(float)
    # over 12 pixels, so that no seam tells where it begins
    push = 12 * np.clip(
        (x - (1 - share) * width) / 12,
        0,
        1,
    )
    where = np.stack(
        [
            y + push * np.sin(2 * np.pi * x / 110 + 1),
            x + push * np.sin(2 * np.pi * y / 130),
        ]
    )
    channels = [
        map_coordinates(
            pixels[..., c],
            where,
            order=1,
            mode="reflect",
        )
        for c in range(3)
    ]
    return PIL.Image.fromarray(np.stack(channels, axis=-1))


def line_drawing(picture: Picture) -> Picture:
    """The picture's outlines in white on black: what a control image of edges looks like."""
    smooth = picture.convert("L").filter(PIL.ImageFilter.GaussianBlur(1.2))
    slope = np.hypot(*np.gradient(np.asarray(smooth, dtype=float)))
    edges = np.where(slope > 9, 255, 0)
    lines = PIL.Image.fromarray(edges.astype(np.uint8))
    return lines.convert("RGB")


def _noisy(picture: Picture, deviation: float, seed: int) -> Picture:
    pixels = np.asarray(picture)
    # RandomState's stream is frozen by NumPy for good, a Generator's is not
    noise = np.random.RandomState(seed).standard_normal(pixels.shape) * deviation
    noisy = np.clip(pixels + noise, 0, 255).round()
    return PIL.Image.fromarray(noisy.astype(np.uint8))


def _stamped(picture: Picture, opacity: float) -> Picture:
    stamp = _stamp(picture.size)
    stamped = picture.copy()
    mask = stamp.getchannel("A").point(lambda alpha: alpha * opacity)
    stamped.paste(
        stamp.convert("RGB"),
        (0, 0),
        mask,
    )
    return stamped


@lru_cache(maxsize=1)
def _stamp(size: tuple[int, int]) -> Picture:
    """Rows of slanting text over the whole of a picture of that size."""
    width, height = size
    layer = PIL.Image.new("RGBA", (width * 2, height * 2))
    pen = PIL.ImageDraw.Draw(layer)
    font = PIL.ImageFont.load_default(size=30)
    for row, y in enumerate(range(0, layer.height, 56)):
        for x in range(
            -100 * (row % 2),
            layer.width,
            240,
        ):
            pen.text(
                (x, y),
                "STOCK DEMO",
                font=font,
                fill="white",
                stroke_width=1,
                stroke_fill=(60, 60, 60),
            )
    turned = layer.rotate(30, PIL.Image.Resampling.BICUBIC)
    return turned.crop(
        (
            width // 2,
            height // 2,
            width // 2 + width,
            height // 2 + height,
        )
    )
