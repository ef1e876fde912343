"""Small pictures of a page: WebP of at most 192 pixels a side, each once, however many cards show it."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PIL.Image import Image

SIDE = 192
MOST_BYTES = 5_400_000
"""Bytes of all pictures of a page together, before base64 makes 4 bytes of 3: so that the page stays below 8 MB."""

_QUALITY = 72


def encoded(picture: Image, side: int, format: str, **options: Any) -> bytes:
    """The file of a picture that is shrunk, in place, to at most `side` pixels a side; options are Pillow's."""
    picture.thumbnail((side, side))
    file = io.BytesIO()
    picture.save(file, format, **options)
    return file.getvalue()


@dataclass(frozen=True)
class Thumbnail:
    """Picture of a page."""

    #: Number on the page.
    number: int
    #: Width in pixels.
    width: int
    #: Height in pixels.
    height: int
    #: Data address that holds the file.
    address: str


class Thumbnails:
    """The pictures made so far, by the digest of the image's file."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._bytes_left = most_bytes
        self._thumbnails: dict[str, Thumbnail | str] = {}

    @property
    def rendered(self) -> list[Thumbnail]:
        """Thumbnails rendered so far, in the order of their numbers."""
        return [thumbnail for thumbnail in self._thumbnails.values() if isinstance(thumbnail, Thumbnail)]

    def thumbnail(self, digest: str, decode: Callable[[], Image]) -> Thumbnail | str:
        """The picture of the image with this digest, decoded where it is new; in words, why there is none."""
        if digest not in self._thumbnails:
            self._thumbnails[digest] = self._make(decode) if self._bytes_left > 0 else "left out, for the page's size"
        return self._thumbnails[digest]

    def _make(self, decode: Callable[[], Image]) -> Thumbnail:
        small = decode()
        file = encoded(small, SIDE, "WEBP", quality=_QUALITY, method=4, icc_profile=b"", exif=b"")
        self._bytes_left -= len(file)
        return Thumbnail(len(self.rendered), *small.size, f"data:image/webp;base64,{base64.b64encode(file).decode()}")
