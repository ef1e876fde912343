"""The arrays that tools work on, (height, width, 3) of RGB."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vieval_plugin.judges.protocol import Image
from vieval_plugin.media import png

Pixels: TypeAlias = NDArray[np.uint8]


def encode_png(pixels: Pixels) -> Image:
    """An array (height, width, 3) of RGB as a PNG file in memory."""
    return Image(png.encode(pixels))


def resized(pixels: Pixels, like: Pixels) -> Pixels:
    """`pixels` at the size of `like`; itself where they have the same."""
    if pixels.shape[:2] == like.shape[:2]:
        return pixels
    import PIL.Image

    height, width = like.shape[:2]
    return np.asarray(
        PIL.Image.fromarray(pixels).resize(
            (width, height), PIL.Image.Resampling.LANCZOS
        )
    )
