"""The highlight from file to file, for the tool of the same name: what it darkens, and what its images are sent as."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import PIL.Image

from vieval_plugin.backends.image_tools.image_memory import Decode
from vieval_plugin.errors import VievalError
from vieval_plugin.images import is_jpeg, vouch
from vieval_plugin.judges.protocol import Image, ToolResult
from vieval_plugin.judges.tools._pixels import Pixels, as_png, resized
from vieval_plugin.judges.tools.highlight import highlight

QUALITY = 95
"""Of the JPEG files made here, whose colours keep every pixel of theirs (4:4:4)."""
_LONGEST_SIDE = 65_500  # libjpeg's own


def run(arguments: Mapping[str, Any], pixels: Decode) -> ToolResult:
    """`image` with `boxes` highlighted; where `like` is given, resized to that image's size before.

    The result is a JPEG where the image is one and no side is too long for it, PNG otherwise, and the image's own file
    where nothing of it changes.
    """
    image, boxes = arguments["image"], tuple(arguments["boxes"])
    source = pixels(image)
    highlighted = highlight(resized(source, pixels(arguments["like"])) if "like" in arguments else source, boxes)
    if highlighted is source:
        return ToolResult(boxes, image=image)
    as_file = as_jpeg if is_jpeg(image) and max(highlighted.shape) <= _LONGEST_SIDE else as_png
    return ToolResult(boxes, image=vouch(as_file(highlighted)))


def as_jpeg(pixels: Pixels) -> Image:
    """An array (height, width, 3) of RGB as a JPEG file in memory; VievalError where a side is too long for one."""
    if max(pixels.shape) > _LONGEST_SIDE:
        raise VievalError(
            f"no JPEG file has a side of {max(pixels.shape)} pixels, at most {_LONGEST_SIDE}; pass it as png"
        )
    file = io.BytesIO()
    PIL.Image.fromarray(pixels).save(file, "JPEG", quality=QUALITY, subsampling="4:4:4")
    return Image(file.getvalue())
