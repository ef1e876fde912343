"""Images as a server takes them: the file's own bytes where it can, encoded once where it must, in bounded memory."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import math
from collections import OrderedDict
from dataclasses import dataclass

import PIL.Image

from vieval_plugin.images import decode, read_bytes, size
from vieval_plugin.judges.protocol import Image

_SIGNATURES = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png"}


@dataclass(frozen=True)
class Encoded:
    """An image ready to be sent: a data URL, and the digest of the bytes in it."""

    url: str
    digest: str


class ImageEncoder:
    """Encodes images off the main thread and keeps the most recent, up to `memory` bytes in all.

    JPEG and PNG files pass through byte for byte; other formats, and images of more than `max_pixels`, are encoded as
    PNG, which loses nothing that a judge might look for.
    """

    def __init__(self, max_pixels: int | None = None, memory: int = 64 << 20) -> None:
        self._max_pixels, self._memory = max_pixels, memory
        self._kept: OrderedDict[Image, asyncio.Task[Encoded]] = OrderedDict()
        self._held = 0

    async def encode(self, image: Image) -> Encoded:
        """The encoded image; VievalError if it cannot be read."""
        task = self._kept.get(image)
        if task is None:
            task = asyncio.ensure_future(asyncio.to_thread(encode, image, self._max_pixels))
            self._kept[image] = task
            task.add_done_callback(lambda done: self._account(image, done))
        else:
            self._kept.move_to_end(image)
        return await asyncio.shield(task)

    def _account(self, image: Image, done: asyncio.Task[Encoded]) -> None:
        if done.cancelled() or done.exception():
            self._kept.pop(image, None)
            return
        self._held += len(done.result().url)
        while self._held > self._memory and len(self._kept) > 1:
            oldest, task = next(iter(self._kept.items()))
            if not task.done():
                break
            del self._kept[oldest]
            self._held -= len(task.result().url)


def encode(image: Image, max_pixels: int | None = None) -> Encoded:
    """Encode one image now; VievalError if it cannot be read."""
    data = read_bytes(image)
    media = next((kind for start, kind in _SIGNATURES.items() if data.startswith(start)), None)
    width, height = size(image)
    too_large = max_pixels is not None and width * height > max_pixels
    if media is None or too_large:
        data, media = _as_png(decode(image), max_pixels if too_large else None), "image/png"
    return Encoded(f"data:{media};base64,{base64.b64encode(data).decode()}", hashlib.sha256(data).hexdigest())


def _as_png(picture: PIL.Image.Image, max_pixels: int | None) -> bytes:
    if max_pixels is not None:
        scale = math.sqrt(max_pixels / (picture.width * picture.height))
        picture = picture.resize((max(1, int(picture.width * scale)), max(1, int(picture.height * scale))))
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=3)
    return file.getvalue()
