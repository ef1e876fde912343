"""Half of an image that holds two side by side, as ImagenHub's pairs of concepts do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from vieval_plugin.judges.protocol import Image, ToolResult
from vieval_plugin.judges.tools import Tool
from vieval_plugin.media import png
from vieval_plugin.media.png import Pixels


def half(image: Pixels, side: Literal["left", "right"]) -> Pixels:
    """The left or the right half of `image` (height, width, 3); of an odd width the middle
    column is in neither.
    """
    width = image.shape[1] // 2
    if side == "left":
        return image[:, :width]
    return image[:, image.shape[1] - width :]


def run(arguments: Mapping[str, Any]) -> ToolResult:
    """The half of `image` on its `side`."""
    pixels = half(arguments["image"], arguments["side"])
    return ToolResult(image=Image(png.encode(pixels)))


TOOL = Tool("half", run=run)
