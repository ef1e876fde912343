"""RapidOCR, for the tool of the same name; its models come inside its package."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from vieval_plugin.backends.image_tools.image_memory import Decode
from vieval_plugin.errors import install_advice
from vieval_plugin.judges.protocol import Box, ToolResult
from vieval_plugin.judges.tools import ToolMissing
from vieval_plugin.judges.tools._pixels import Pixels

_one_at_a_time = threading.Lock()


def read_lines(image: Pixels) -> list[tuple[str, Box]]:
    """The lines of text in `image` (height, width, 3) in reading order, each with the box around it."""
    with _one_at_a_time:
        output = _engine()(np.ascontiguousarray(image[:, :, ::-1]))  # it wants blue first
    if output.txts is None or output.boxes is None:
        return []
    return [(text, _around(corners)) for text, corners in zip(output.txts, output.boxes, strict=True)]


def run(arguments: Mapping[str, Any], pixels: Decode) -> ToolResult:
    """The lines of text in `image`, with their boxes."""
    lines = read_lines(pixels(arguments["image"]))
    return ToolResult(tuple(box for _, box in lines), "\n".join(text for text, _ in lines))


def _around(corners: Any) -> Box:
    left, top = np.floor(corners.min(axis=0)).astype(int)
    right, bottom = np.ceil(corners.max(axis=0)).astype(int)
    return Box(int(left), int(top), int(right), int(bottom))


@cache
def _engine() -> Any:
    try:
        from rapidocr import RapidOCR
    except ImportError:
        raise ToolMissing(f"the tool ocr needs rapidocr and onnxruntime; {install_advice('tools')}") from None
    return RapidOCR(params={"Global.log_level": "error"})
