"""From image files to the arrays that tools work on, and back."""

from __future__ import annotations

import io
from typing import TypeAlias

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import Image

Pixels: TypeAlias = NDArray[np.uint8]


def pixels(image: Image) -> Pixels:
    """An image as an array (height, width, 3) of RGB; VievalError if it cannot be read."""
    return np.asarray(decode(image))


def as_png(shown: Pixels) -> Image:
    """An array (height, width, 3) of RGB as a PNG file in memory."""
    file = io.BytesIO()
    # these files live for one call: their size matters less than the time
    PIL.Image.fromarray(shown).save(file, "PNG", compress_level=1)
    return Image(file.getvalue())


def resized(shown: Pixels, like: Pixels) -> Pixels:
    """`shown` at the size of `like`; itself where they have the same."""
    if shown.shape[:2] == like.shape[:2]:
        return shown
    height, width = like.shape[:2]
    return np.asarray(PIL.Image.fromarray(shown).resize((width, height), PIL.Image.Resampling.LANCZOS))
