"""Boxes of an image made to stand out: all else is darkened. Serves the tools that find boxes (see
backends/image_tools/tools.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vieval_plugin.judges.protocol import Asking, Box, Image, Trace
from vieval_plugin.judges.tools import Request, Tool, use_tools
from vieval_plugin.media.png import Pixels

NAME = "highlight"


def highlight(image: Pixels, boxes: Sequence[Box]) -> Pixels:
    """`image` (height, width, 3) with every pixel outside the boxes at a quarter of its values,
    rounded down.

    Boxes are cut to the image. Without boxes, or with one around all of it, it is the image itself.

    Source: Wang et al., A Unified Agentic Framework for Evaluating Conditional Image Generation
    (2025).
    """
    height, width = image.shape[:2]
    if not boxes:
        return image
    for box in boxes:
        covers_width = box.left <= 0 and box.right >= width
        if covers_width and box.top <= 0 and box.bottom >= height:
            return image
    darkened = np.empty_like(image)
    np.right_shift(image, 2, out=darkened)
    for box in boxes:
        rows = slice(max(box.top, 0), max(box.bottom, 0))
        columns = slice(max(box.left, 0), max(box.right, 0))
        darkened[rows, columns] = image[rows, columns]
    return darkened


def highlighted(
    request: Request,
    boxes: Mapping[str, Sequence[Box]],
    like: Image | None = None,
) -> Asking[tuple[dict[str, Image], Trace]]:
    """The request's images that have boxes, highlighted, by role; `like` is the image whose size
    the boxes are for, if one is.
    """
    roles = [role for role in request.images if boxes.get(role)]
    resize = {"like": like} if like else {}
    asks = [
        request.ask(NAME, role, boxes=tuple(boxes[role]), **resize) for role in roles
    ]
    results, steps = yield from use_tools(asks)
    images = {
        role: result.image
        for role, result in zip(roles, results, strict=True)
        if result.image
    }
    return images, steps


TOOL = Tool(NAME)
