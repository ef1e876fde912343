"""Small pictures of a page: WebP of at most 192 pixels a side, each once, however many cards show it."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

from vieval_plugin import images
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Image

SIDE = 192
MOST_BYTES = 5_400_000
"""Of all pictures of a page together, before base64 makes 4 bytes of 3: so that the page stays below 8 MB."""

_QUALITY = 72


@dataclass(frozen=True)
class Thumbnail:
    """A picture of the page: its number, its size in pixels, and the file as an address that holds it."""

    number: int
    width: int
    height: int
    address: str


class Thumbnails:
    """The pictures made so far, by the digest of the image's file."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._left = most_bytes
        self._known: dict[str, Thumbnail | str] = {}

    @property
    def rendered(self) -> list[Thumbnail]:
        """Thumbnails rendered so far, in the order of their numbers."""
        return [thumbnail for thumbnail in self._known.values() if isinstance(thumbnail, Thumbnail)]

    def of(self, image: Image) -> Thumbnail | str:
        """The picture of an image; in words, why there is none."""
        if not images.is_there(image):
            return "not there"
        try:
            digest = images.digest(image)
            if digest not in self._known:
                self._known[digest] = self._make(image)
        except VievalError:
            return "cannot be read"
        return self._known[digest]

    def _make(self, image: Image) -> Thumbnail | str:
        if self._left <= 0:
            return "left out, for the page's size"
        small = images.decode(image)
        small.thumbnail((SIDE, SIDE))
        written = io.BytesIO()
        small.save(written, "WEBP", quality=_QUALITY, method=4, icc_profile=b"", exif=b"")
        self._left -= written.tell()
        address = f"data:image/webp;base64,{base64.b64encode(written.getvalue()).decode()}"
        return Thumbnail(len(self.rendered), *small.size, address)
