"""Pictures of a page: WebP of at most 560 pixels a side, each once, however many cards show it."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PIL.Image import Image

SIDE, SMALL_SIDE = 560, 192
MOST_BYTES = 8_000_000
"""Bytes of all pictures of a page together, before base64 makes 4 bytes of 3: so that the page stays below 12 MB."""

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
    """The pictures made so far, by the digest of the image's file; the last fifth of a page's bytes is for small ones."""

    def __init__(self, most_bytes: int = MOST_BYTES, side: int = SIDE) -> None:
        self._bytes_left, self._side, self._bytes_for_small = most_bytes, side, most_bytes // 5
        self._thumbnails: dict[str, Thumbnail | str] = {}

    @property
    def rendered(self) -> list[Thumbnail]:
        """Thumbnails rendered so far, in the order of their numbers."""
        return [thumbnail for thumbnail in self._thumbnails.values() if isinstance(thumbnail, Thumbnail)]

    @property
    def left_out(self) -> int:
        """Number of images without a picture, for the page's size."""
        return len(self._thumbnails) - len(self.rendered)

    def thumbnail(self, digest: str, decode: Callable[[], Image]) -> Thumbnail | str:
        """The picture of the image with this digest, decoded where it is new; in words, why there is none."""
        if digest not in self._thumbnails:
            self._thumbnails[digest] = self._make(decode) if self._bytes_left > 0 else "left out, for the page's size"
        return self._thumbnails[digest]

    def _make(self, decode: Callable[[], Image]) -> Thumbnail:
        small = decode()
        side = self._side if self._bytes_left > self._bytes_for_small else SMALL_SIDE
        file = encoded(small, side, "WEBP", quality=_QUALITY, method=4, icc_profile=b"", exif=b"")
        self._bytes_left -= len(file)
        return Thumbnail(len(self.rendered), *small.size, f"data:image/webp;base64,{base64.b64encode(file).decode()}")
