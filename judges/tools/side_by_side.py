"""Two images as one, for models that take one image only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vieval_plugin.judges.protocol import ToolResult
from vieval_plugin.judges.tools import Tool
from vieval_plugin.judges.tools._pixels import Pixels, as_png

NAME = "side_by_side"


def side_by_side(left: Pixels, right: Pixels) -> Pixels:
    """Both images (height, width, 3) in one, the right one at the height of the left one and in its own proportions."""
    height, width = left.shape[0], max(1, round(right.shape[1] * left.shape[0] / right.shape[0]))
    if right.shape[:2] != (height, width):
        import PIL.Image

        right = np.asarray(PIL.Image.fromarray(right).resize((width, height), PIL.Image.Resampling.LANCZOS))
    return np.concatenate([left, right], axis=1)


def run(arguments: Mapping[str, Any]) -> ToolResult:
    """The images `left` and `right` as one."""
    return ToolResult(image=as_png(side_by_side(arguments["left"], arguments["right"])))


TOOL = Tool(NAME, run=run)
