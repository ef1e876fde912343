"""The arrays that tools work on, (height, width, 3) of RGB."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vieval_plugin.judges.protocol import Image
from vieval_plugin.media import png

Pixels: TypeAlias = NDArray[np.uint8]


def as_png(shown: Pixels) -> Image:
    """An array (height, width, 3) of RGB as a PNG file in memory."""
    return Image(png.written(shown))


def resized(shown: Pixels, like: Pixels) -> Pixels:
    """`shown` at the size of `like`; itself where they have the same."""
    if shown.shape[:2] == like.shape[:2]:
        return shown
    import PIL.Image

    height, width = like.shape[:2]
    return np.asarray(PIL.Image.fromarray(shown).resize((width, height), PIL.Image.Resampling.LANCZOS))
