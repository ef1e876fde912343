"""Text in images, read by RapidOCR: several images at a time, and each kept in the store.

Its weights come inside its package, so what was read depends on the package alone and on those that
compute.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vieval_plugin import images
from vieval_plugin.backends.cache.store import key_of
from vieval_plugin.backends.concurrency import DaemonPool, cores
from vieval_plugin.backends.image_tools.image_memory import Decode
from vieval_plugin.backends.metrics.batcher import PreparedMeasure
from vieval_plugin.judges.protocol import (
    Box,
    Failure,
    Reply,
    Status,
    ToolResult,
    UseTool,
)
from vieval_plugin.text.versions import versions_of


class TextReader:
    """RapidOCR as an instrument, an image a processor; `read` answers an ask."""

    batch = 2 * cores()

    def __init__(self, read: Callable[[UseTool], Reply]) -> None:
        self._read = read
        self._pool = DaemonPool(cores(), "text")

    @property
    def by(self) -> str:
        return identity()

    def look(self, ask: UseTool) -> PreparedMeasure:
        return PreparedMeasure(
            key_of(
                {
                    "tool": ask.tool,
                    "by": self.by,
                    **versions_of("onnxruntime", "opencv-python-headless"),
                    "image": images.digest(ask.arguments["image"]),
                }
            ),
            ask,
        )

    def compute(self, contents: Sequence[UseTool]) -> list[Reply]:
        return list(self._pool.map(self._read, contents))

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def run(arguments: Mapping[str, Any], pixels: Decode) -> ToolResult | Failure:
    """The pieces of text in `image` in reading order, one line each, with the boxes
    around them.

    A strip that is too narrow for the OCR is a `Failure` with status `not_applicable`.
    """
    from rapidocr.utils.process_img import ResizeImgError

    image = pixels(arguments["image"])
    height, width, _ = image.shape
    try:
        output = engine()(
            np.ascontiguousarray(image[:, :, ::-1])
        )  # it wants blue first
    except ResizeImgError:
        return Failure(
            Status.NOT_APPLICABLE,
            f"an image of {width}x{height} pixels is too narrow for OCR",
        )
    if output.txts is None or output.boxes is None:
        return ToolResult((), "")
    boxes = []
    for corners in output.boxes:
        start = np.floor(corners.min(axis=0)).astype(int)
        end = np.ceil(corners.max(axis=0)).astype(int)
        boxes.append(
            Box(
                *start.tolist(),
                *end.tolist(),
            )
        )
    lines = [" ".join(text.split()) for text in output.txts]
    return ToolResult(
        tuple(boxes),
        "\n".join(lines),
    )


@cache
def identity() -> str:
    """Name of the reader in results: the version of the package, and a digest of the weights
    that came with it.
    """
    package = importlib.metadata.distribution("rapidocr")
    weights = sorted(file for file in package.files or () if file.suffix == ".onnx")
    digest = hashlib.sha256()
    for file in weights:
        digest.update(hashlib.sha256(file.read_binary()).digest())
    return f"RapidOCR {package.version}, weights {digest.hexdigest()[:12]}"


def separate_overlaps(boxes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Boxes trimmed where two overlap on one line, so that no letter is read twice.

    The detector adds a margin all around, which may reach into the next word.

    Args:
        boxes: (boxes, 4, 2), corners clockwise from the upper left.
    """
    trimmed = boxes.copy()
    left, top = boxes.min(axis=1).T
    right, bottom = boxes.max(axis=1).T
    heights = bottom - top
    for first, second in permutations(range(len(boxes)), 2):
        height = min(heights[first], heights[second])
        overlap = right[first] - left[second]
        shared_top = max(top[first], top[second])
        shared_height = min(bottom[first], bottom[second]) - shared_top
        is_before = left[first] < left[second] and right[first] < right[second]
        is_on_line = 2 * shared_height > height
        if is_on_line and is_before and 0 < overlap < height:
            trimmed[first, 1:3, 0] -= overlap / 2
            trimmed[second, 0::3, 0] += overlap / 2
    return trimmed


@cache
def engine() -> Any:
    """The RapidOCR of this process."""
    # onnxruntime writes a device's number and events about the machine for its maker otherwise
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    from rapidocr import RapidOCR

    class Engine(RapidOCR):
        def crop_text_regions(self, image: Any, boxes: Any) -> Any:
            return super().crop_text_regions(image, separate_overlaps(boxes))

    # threads read an image each, and one call is as fast on one core as on several
    return Engine(
        params={
            "Global.log_level": "error",
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
        }
    )
