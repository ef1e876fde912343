"""Pictures of a page: WebP of at most 560 pixels a side, or 1,024 where a page has no file to
enlarge, each once.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from PIL.Image import Image

LARGE_SIDE = 1024
SIDE = 560
SMALL_SIDE = 192
#: Bytes of all pictures of a page together, before base64 makes 4 bytes of 3: so that the page
#: stays below 12 MB.
MOST_BYTES = 8_000_000

_QUALITY = 72


def encoded(picture: Image, side: int, format: str, **options: Any) -> bytes:
    """The file of a picture that is shrunk, in place, to at most `side` pixels a side; options
    are Pillow's.
    """
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
    #: Address of the image's own file beside the page; empty without a file.
    original: str = ""
    #: Width and height of the image itself.
    size: tuple[int, int] = (0, 0)


class Thumbnails:
    """The pictures made so far, by the digest of the image's file; the last fifth of a page's bytes
    is for small ones.

    A page that is in a folder names the files of images to enlarge them, and has those without a
    file in twice the size while half of its bytes are left.
    """

    def __init__(
        self,
        most_bytes: int = MOST_BYTES,
        side: int = SIDE,
        folder: Path | None = None,
    ) -> None:
        self._bytes_left = most_bytes
        self._most_bytes = most_bytes
        self._side = side
        self._folder = folder
        self._thumbnails: dict[str, Thumbnail | str] = {}

    @property
    def rendered(self) -> list[Thumbnail]:
        """Thumbnails rendered so far, in the order of their numbers."""
        return [
            thumbnail
            for thumbnail in self._thumbnails.values()
            if isinstance(thumbnail, Thumbnail)
        ]

    @property
    def left_out(self) -> int:
        """Number of images without a picture, for the page's size."""
        return len(self._thumbnails) - len(self.rendered)

    def thumbnail(
        self,
        digest: str,
        decode: Callable[[], Image],
        file: Path | None = None,
    ) -> Thumbnail | str:
        """The picture of the image with this digest, decoded if it is new, or the reason why it
        has none.
        """
        if digest not in self._thumbnails:
            made: Thumbnail | str = "omitted to limit the page size"
            if self._bytes_left > 0:
                made = self._make(decode, file)
            self._thumbnails[digest] = made
        return self._thumbnails[digest]

    def _make(
        self, decode: Callable[[], Image], file_of_image: Path | None
    ) -> Thumbnail:
        small = decode()
        size = small.size
        share_left = self._bytes_left / self._most_bytes
        original = ""
        if self._folder is not None and file_of_image is not None:
            folder = self._folder.absolute()
            relative = os.path.relpath(file_of_image.absolute(), folder)
            original = quote(Path(relative).as_posix())
        is_large = self._folder is not None and not original and share_left > 1 / 2
        side = (
            LARGE_SIDE if is_large else self._side if share_left > 1 / 5 else SMALL_SIDE
        )
        file = encoded(
            small,
            side,
            "WEBP",
            quality=_QUALITY,
            method=4,
            icc_profile=b"",
            exif=b"",
        )
        self._bytes_left -= len(file)
        address = f"data:image/webp;base64,{base64.b64encode(file).decode()}"
        return Thumbnail(
            len(self.rendered),
            *small.size,
            address,
            original,
            size,
        )
