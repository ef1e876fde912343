"""Two images as one, for models that take one image only; and an image at the size of another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vieval_plugin.judges.protocol import Image, ToolResult
from vieval_plugin.judges.tools import Tool
from vieval_plugin.media import png
from vieval_plugin.media.png import Pixels

NAME = "side_by_side"


def resized(pixels: Pixels, like: Pixels) -> Pixels:
    """`pixels` at the size of `like`; itself where they have the same."""
    height, width = like.shape[:2]
    if pixels.shape[:2] == (height, width):
        return pixels
    return _resize(pixels, width, height)


def _resize(pixels: Pixels, width: int, height: int) -> Pixels:
    import PIL.Image

    picture = PIL.Image.fromarray(pixels)
    return np.asarray(picture.resize((width, height), PIL.Image.Resampling.LANCZOS))


def side_by_side(left: Pixels, right: Pixels) -> Pixels:
    """Both images (height, width, 3) in one, as high as the higher of them, each in its own
    proportions.
    """
    height = max(left.shape[0], right.shape[0])
    return np.concatenate(
        [_scale_to_height(left, height), _scale_to_height(right, height)],
        axis=1,
    )


def _scale_to_height(image: Pixels, height: int) -> Pixels:
    if image.shape[0] == height:
        return image
    width = round(image.shape[1] * height / image.shape[0])
    return _resize(image, max(1, width), height)


def run(arguments: Mapping[str, Any]) -> ToolResult:
    """The images `left` and `right` as one."""
    pixels = side_by_side(arguments["left"], arguments["right"])
    return ToolResult(image=Image(png.encode(pixels)))


TOOL = Tool(NAME, run=run)
