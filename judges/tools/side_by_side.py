"""Two images as one, for models that take one image only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vieval_plugin.judges.protocol import ToolResult
from vieval_plugin.judges.tools import Tool
from vieval_plugin.judges.tools._pixels import Pixels, encode_png

NAME = "side_by_side"


def side_by_side(left: Pixels, right: Pixels) -> Pixels:
    """Both images (height, width, 3) in one, as high as the higher of them, each in its own
    proportions.
    """
    height = max(left.shape[0], right.shape[0])
    return np.concatenate(
        [_scale_to_height(left, height), _scale_to_height(right, height)], axis=1
    )


def _scale_to_height(image: Pixels, height: int) -> Pixels:
    if image.shape[0] == height:
        return image
    import PIL.Image

    width = max(1, round(image.shape[1] * height / image.shape[0]))
    return np.asarray(
        PIL.Image.fromarray(image).resize((width, height), PIL.Image.Resampling.LANCZOS)
    )


def run(arguments: Mapping[str, Any]) -> ToolResult:
    """The images `left` and `right` as one."""
    return ToolResult(
        image=encode_png(side_by_side(arguments["left"], arguments["right"]))
    )


TOOL = Tool(NAME, run=run)
