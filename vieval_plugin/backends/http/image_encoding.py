"""Images and request bodies as a server takes them: a file's own pixels where it can, encoded anew
where it must.

Every image is looked through to its end before it is sent. What a file says beside its picture
(place, time, comments) never leaves this machine.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import math
import secrets
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import PIL.Image

from vieval_plugin.backends.concurrency import SharedTasks
from vieval_plugin.backends.reply_checks import Question
from vieval_plugin.images import (
    JPEG,
    MAX_PIXELS,
    decoding,
    examine,
    read_bytes,
    size,
    upright,
)
from vieval_plugin.judges.protocol import (
    Image,
    Probabilities,
    Reply,
    Text,
)
from vieval_plugin.media import jpeg
from vieval_plugin.text.yaml_json import JsonObject

#: Notes of verdicts on images whose pixels were changed before a model saw them.
TURNED = "image re-encoded: orientation"
SHRUNK = "image re-encoded: size"
#: Pixels of the largest image that is decoded where larger ones are to be made smaller; Pillow
#: refuses little more.
MOST_TO_SHRINK = 170_000_000

_PNG = b"\x89PNG\r\n\x1a\n"
_SIGNATURES = {JPEG: "image/jpeg", _PNG: "image/png"}
_DEPTH, _HEADER = (
    24,
    33,
)  # the byte of a PNG with the bits of a sample, and those up to the end of its first chunk
_MARK = secrets.token_hex(
    16
)  # stands for an image while a body is written, and in no text


@dataclass(frozen=True)
class Encoded:
    """An image ready to be sent."""

    #: Its data URL.
    url: str
    #: Digest of the bytes in it.
    digest: str
    #: Notes for the verdict.
    notes: tuple[str, ...] = ()


EncodedImages: TypeAlias = Mapping[Image, Encoded]


def asked_images(ask: Question) -> list[Image]:
    """The images of a question, in the order of its messages."""
    return [
        part
        for message in ask.messages
        for part in message.parts
        if isinstance(part, Image)
    ]


class ImageEncoder:
    """Encodes images off the main thread and keeps the most recent, up to `memory` bytes in all.

    The pixels of JPEG and PNG files pass through as they are coded. Other formats, images of more
    than `max_pixels`, those that a camera's note turns, and those that servers read otherwise (16
    bits, CMYK, transparency) are encoded as PNG of 8-bit RGB.
    """

    def __init__(self, max_pixels: int | None = None, memory: int = 48 << 20) -> None:
        self._max_pixels = max_pixels
        self._memory = memory
        self._under_way = SharedTasks()
        self._recent: OrderedDict[Image, Encoded] = OrderedDict()
        self._recent_bytes = 0

    async def encode(self, image: Image) -> Encoded:
        """The encoded image; VievalError if it cannot be read."""
        if image in self._recent:
            self._recent.move_to_end(image)
            return self._recent[image]
        return await self._under_way.result(
            image,
            self._encode_and_keep,
            image,
        )

    async def _encode_and_keep(self, image: Image) -> Encoded:
        encoded = self._recent[image] = await asyncio.to_thread(
            encode,
            image,
            self._max_pixels,
        )
        self._recent_bytes += len(encoded.url)
        while self._recent_bytes > self._memory and len(self._recent) > 1:
            self._recent_bytes -= len(self._recent.popitem(last=False)[1].url)
        return encoded


def encode(image: Image, max_pixels: int | None = None) -> Encoded:
    """Encode one image now; VievalError if it cannot be read or decoded."""
    data = read_bytes(image)  # once: what is sent must be what was decoded
    media = next(
        (kind for start, kind in _SIGNATURES.items() if data.startswith(start)), None
    )
    limit = MAX_PIXELS if max_pixels is None else MOST_TO_SHRINK
    pixels = math.prod(size(image, data, limit))
    too_large = max_pixels is not None and pixels > max_pixels
    with decoding(pixels):
        if media and not too_large and _is_plain(image, data):
            file_bytes = remove_metadata(data)
            if file_bytes is not None:
                return _encoded(file_bytes, media)
        picture, examined = upright(
            image,
            data,
            limit if too_large else MAX_PIXELS,
        )
        png = _encode_png(
            picture,
            max_pixels if too_large else None,
            colour_chunks(data),
        )
    return _encoded(
        png,
        "image/png",
        (TURNED,) * examined.turned + (SHRUNK,) * too_large,
    )


def _is_plain(image: Image, data: bytes) -> bool:
    """Return whether every server decodes a JPEG or PNG alike: upright, opaque and with
    8 bits at most.
    """
    examined = examine(image, data)
    if not examined.plain or examined.turned:
        return False
    return data.startswith(JPEG) or data[_DEPTH] <= 8


def _encoded(data: bytes, media: str | None, notes: tuple[str, ...] = ()) -> Encoded:
    return Encoded(
        f"data:{media};base64,{base64.b64encode(data).decode()}",
        hashlib.sha256(data).hexdigest(),
        notes,
    )


def noted(reply: Reply, notes: Iterable[str]) -> Reply:
    """The reply with what is to be noted of the images that were shown; after it was stored, for
    any reply has them.
    """
    once = tuple(dict.fromkeys(notes))
    if once and isinstance(reply, (Text, Probabilities)):
        return replace(reply, notes=once)
    return reply


def request_json(body: JsonObject) -> bytes:
    """A request body as JSON, in which an `Encoded` stands for its URL.

    URLs are put in as they are. Looking through each for characters to escape, of which they have
    none, would cost more than all else that is done for a call.
    """
    urls = []

    def mark(value: Any) -> str:
        if not isinstance(value, Encoded):
            raise TypeError(f"a request body cannot contain {type(value).__name__}")
        urls.append(value.url)
        return _MARK

    first, *pieces = json.dumps(body, default=mark).split(_MARK)
    return "".join(
        [first, *chain.from_iterable(zip(urls, pieces, strict=True))]
    ).encode()


def _encode_png(
    picture: PIL.Image.Image, max_pixels: int | None, colours: bytes
) -> bytes:
    if max_pixels is not None:
        scale = math.sqrt(max_pixels / (picture.width * picture.height))
        width, height = (
            max(1, min(int(side * scale), max_pixels)) for side in picture.size
        )
        picture = picture.resize((width, height))
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=3)
    png = file.getvalue()
    return png[:_HEADER] + colours + png[_HEADER:]


@dataclass(frozen=True)
class File:
    """A file of a form."""

    name: str
    #: Its bytes, or the file on disk that has them.
    content: bytes | Path
    #: Its media type.
    kind: str = "image/png"


class FormBody(JsonObject):
    """A body that is sent as `multipart/form-data`: texts, numbers, and lists of `File`."""


def encoded(body: JsonObject) -> tuple[Any, dict[str, str]]:
    """The payload of a body, rebuilt for each try, and its headers."""
    if not isinstance(body, FormBody):
        return request_json(dict(body)), {"Content-Type": "application/json"}
    import aiohttp

    form = aiohttp.FormData(quote_fields=False)
    for name, field in body.items():
        for value in field if isinstance(field, list) else [field]:
            if isinstance(value, File):
                content = value.content
                form.add_field(
                    name,
                    content.open("rb") if isinstance(content, Path) else content,
                    filename=value.name,
                    content_type=value.kind,
                )
            else:
                form.add_field(name, str(value))
    return form, {}


# Metadata removal: where and when a picture was taken, by whom, and what was said of it. Nothing is
# decoded: parts of a file are copied or left out. What decides colours stays (profile, gamma,
# transparency), as does all that is needed to read the pixels.
_APP0 = 0xE0
_APP2 = 0xE2
_APP14 = 0xEE
_APP15 = 0xEF
_COMMENT = 0xFE
# pHYs is the pixels' shape, the others decide colours; critical chunks begin with a capital and
# stay anyhow
_KEPT_CHUNKS = (
    b"tRNS",
    b"gAMA",
    b"cHRM",
    b"sRGB",
    b"iCCP",
    b"cICP",
    b"mDCV",
    b"cLLI",
    b"sBIT",
    b"bKGD",
    b"pHYs",
)
_COLOUR_CHUNKS = (b"gAMA", b"cHRM", b"sRGB", b"cICP")


def remove_metadata(data: bytes) -> bytes | None:
    """The same JPEG or PNG file without EXIF, XMP, comments, texts, times, previews and what
    follows the picture's end.

    Returns:
        None for a file of another format, or one whose parts cannot be told apart.

    >>> remove_metadata(b"GIF89a") is None
    True
    """
    try:
        if data.startswith(jpeg.SIGNATURE):
            return b"".join(_jpeg(data))
        return b"".join(_png(data)) if data.startswith(_PNG) else None
    except ValueError:
        return None


def colour_chunks(data: bytes) -> bytes:
    """The chunks of a PNG file on its colours that hold for any pixels in them, empty for other
    files.
    """
    try:
        parts = list(_png(data)) if data.startswith(_PNG) else []
    except ValueError:
        return b""
    return b"".join(part for part in parts if part[4:8] in _COLOUR_CHUNKS)


def _jpeg(data: bytes) -> Iterator[bytes]:
    yield jpeg.SIGNATURE
    for marker, segment in jpeg.segments(data):
        yield segment if marker == jpeg.CODED_PIXELS else _segment(marker, segment)
    yield jpeg.END_OF_IMAGE


def _segment(marker: int, segment: bytes) -> bytes:
    """A segment as it is kept, empty for one that is not."""
    body = segment[4:]
    if marker == _APP0 and body.startswith(b"JFIF\0") and len(body) >= 14:
        return segment[:2] + b"\x00\x10" + body[:12] + b"\0\0"  # without its preview
    if marker == _APP2 and body.startswith(b"ICC_PROFILE\0"):
        return segment
    if marker == _APP14 and body.startswith(
        b"Adobe"
    ):  # which colours the components are
        return segment
    return b"" if _APP0 <= marker <= _APP15 or marker == _COMMENT else segment


def _png(data: bytes) -> Iterator[bytes]:
    """PNG, third edition: chunks of a length, a name, a body and a checksum, up to IEND."""
    yield _PNG
    at = len(_PNG)
    name = b""
    while name != b"IEND":
        name = data[at + 4 : at + 8]
        length = int.from_bytes(data[at : at + 4], "big")
        end = at + 12 + length
        if end > len(data) or len(name) < 4:
            raise ValueError("a chunk extends past the end of the file")
        if name in _KEPT_CHUNKS or name[:1].isupper():
            yield data[at:end]
        at = end
