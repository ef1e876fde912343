"""Pictures as files, and masks in the form that editors take them in."""

from __future__ import annotations

import io

import PIL.Image
import PIL.ImageOps

from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import Image


def transparent_where_white(mask: Image) -> bytes:
    """A mask that is white where something is to change, as a PNG that is transparent there.

    >>> drawn = io.BytesIO()
    >>> PIL.Image.new("RGB", (2, 2), "white").save(drawn, "PNG")
    >>> PIL.Image.open(io.BytesIO(transparent_where_white(Image(drawn.getvalue())))).getpixel((0, 0))[3]
    0
    """
    grey = decode(mask).convert("L")
    layer = PIL.Image.new("RGBA", grey.size, "black")
    layer.putalpha(PIL.ImageOps.invert(grey))
    return as_png(layer)


def as_png(picture: PIL.Image.Image) -> bytes:
    """The bytes of a picture as a PNG file, which loses nothing."""
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()
