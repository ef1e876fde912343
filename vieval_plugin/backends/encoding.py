"""Images as a server takes them: the file's own bytes where it can, encoded once where it must, in bounded memory."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import math
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import PIL.Image

from vieval_plugin.images import decode, read_bytes, size
from vieval_plugin.judges.protocol import Image

_SIGNATURES = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png"}
_MARK = secrets.token_hex(16)  # stands for an image while a body is written, and in no text


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
        self._under_way: dict[Image, asyncio.Task[Encoded]] = {}
        self._kept: OrderedDict[Image, Encoded] = OrderedDict()
        self._held = 0

    async def encode(self, image: Image) -> Encoded:
        """The encoded image; VievalError if it cannot be read."""
        if image in self._kept:
            self._kept.move_to_end(image)
            return self._kept[image]
        task = self._under_way.get(image)
        if task is None:
            task = asyncio.ensure_future(asyncio.to_thread(encode, image, self._max_pixels))
            self._under_way[image] = task
            task.add_done_callback(lambda done: self._ended(image, done))
        return await asyncio.shield(task)

    def _ended(self, image: Image, done: asyncio.Task[Encoded]) -> None:
        del self._under_way[image]
        if done.cancelled() or done.exception():
            return
        self._kept[image] = done.result()
        self._held += len(done.result().url)
        while self._held > self._memory and len(self._kept) > 1:
            self._held -= len(self._kept.popitem(last=False)[1].url)


def encode(image: Image, max_pixels: int | None = None) -> Encoded:
    """Encode one image now; VievalError if it cannot be read."""
    data = read_bytes(image)
    media = next((kind for start, kind in _SIGNATURES.items() if data.startswith(start)), None)
    width, height = size(image)
    too_large = max_pixels is not None and width * height > max_pixels
    if media is None or too_large:
        data, media = _as_png(decode(image), max_pixels if too_large else None), "image/png"
    return Encoded(f"data:{media};base64,{base64.b64encode(data).decode()}", hashlib.sha256(data).hexdigest())


def as_json(body: Mapping[str, Any]) -> bytes:
    """A request body as JSON, in which an `Encoded` stands for its URL.

    URLs are put in as they are. Looking through each for characters to escape, of which they have none, would cost more
    than all else that is done for a call.
    """
    urls: list[str] = []

    def mark(value: Any) -> str:
        if not isinstance(value, Encoded):
            raise TypeError(f"{type(value).__name__} has no place in a request body")
        urls.append(value.url)
        return _MARK

    first, *rest = json.dumps(body, default=mark).split(_MARK)
    return "".join([first, *chain.from_iterable(zip(urls, rest, strict=True))]).encode()


def _as_png(picture: PIL.Image.Image, max_pixels: int | None) -> bytes:
    if max_pixels is not None:
        scale = math.sqrt(max_pixels / (picture.width * picture.height))
        width, height = (max(1, min(int(side * scale), max_pixels)) for side in picture.size)
        picture = picture.resize((width, height))
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=3)
    return file.getvalue()
