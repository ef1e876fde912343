"""Metadata removal: image files less where and when a picture was taken, by whom, and what was said of it.

Nothing is decoded: parts of a file are copied or left out. What decides colours stays (profile, gamma, transparency),
as does all that is needed to read the pixels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_JPEG, _PNG = b"\xff\xd8", b"\x89PNG\r\n\x1a\n"
_END_OF_IMAGE = b"\xff\xd9"
_SCAN, _END = 0xDA, 0xD9
_APP0, _APP2, _APP14, _APP15, _COMMENT = 0xE0, 0xE2, 0xEE, 0xEF, 0xFE
_ALONE = (0x01, *range(0xD0, 0xD8))  # markers that no length follows
# what ends the coded pixels: a marker that is neither a stuffed byte nor a restart
_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
# pHYs is the pixels' shape, the others decide colours; critical chunks begin with a capital and stay anyhow
_COLOURS = (b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"cICP", b"mDCV", b"cLLI", b"sBIT", b"bKGD")
_KEPT_CHUNKS = frozenset((*_COLOURS, b"pHYs"))
_OF_ANY_PIXELS = (b"gAMA", b"cHRM", b"sRGB", b"cICP")


def without_metadata(data: bytes) -> bytes | None:
    """The same JPEG or PNG file without EXIF, XMP, comments, texts, times, previews and what follows the picture's end.

    Returns:
        None for a file of another format, or one whose parts cannot be told apart.

    >>> without_metadata(b"GIF89a") is None
    True
    """
    parts = _jpeg if data.startswith(_JPEG) else _png if data.startswith(_PNG) else None
    try:
        return b"".join(parts(data)) if parts else None
    except (IndexError, ValueError):
        return None


def colour_chunks(data: bytes) -> bytes:
    """The chunks of a PNG file on its colours that hold for any pixels in them, empty for other files."""
    try:
        parts = list(_png(data)) if data.startswith(_PNG) else []
    except ValueError:
        return b""
    return b"".join(part for part in parts if part[4:8] in _OF_ANY_PIXELS)


def _jpeg(data: bytes) -> Iterator[bytes]:
    """ITU T.81, annex B: segments with a marker and a length, after a scan's header its coded pixels."""
    yield _JPEG
    at = len(_JPEG)
    while True:
        if data[at] != 0xFF:
            raise ValueError("no marker where one must be")
        while data[at + 1] == 0xFF:
            at += 1
        marker = data[at + 1]
        if marker == _END:
            yield _END_OF_IMAGE
            return
        if marker in _ALONE:
            yield data[at : at + 2]
            at += 2
            continue
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if not at + 4 <= end <= len(data):
            raise ValueError("a segment that ends elsewhere")
        yield _segment(marker, data[at:end])
        at = end
        if marker == _SCAN:
            next_marker = _MARKER.search(data, at)
            yield data[at : next_marker.start() if next_marker else len(data)]
            if next_marker is None:
                yield _END_OF_IMAGE
                return
            at = next_marker.start()


def _segment(marker: int, segment: bytes) -> bytes:
    """A segment as it is kept, empty for one that is not."""
    body = segment[4:]
    if marker == _APP0 and body.startswith(b"JFIF\0") and len(body) >= 14:
        return segment[:2] + b"\x00\x10" + body[:12] + b"\0\0"  # without its preview
    if marker == _APP2 and body.startswith(b"ICC_PROFILE\0"):
        return segment
    if marker == _APP14 and body.startswith(b"Adobe"):  # which colours the components are
        return segment
    return b"" if _APP0 <= marker <= _APP15 or marker == _COMMENT else segment


def _png(data: bytes) -> Iterator[bytes]:
    """PNG, third edition: chunks of a length, a name, a body and a checksum, up to IEND."""
    yield _PNG
    at, name = len(_PNG), b""
    while name != b"IEND":
        name = data[at + 4 : at + 8]
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        if end > len(data) or len(name) < 4:
            raise ValueError("a chunk that ends elsewhere")
        if name in _KEPT_CHUNKS or name[:1].isupper():
            yield data[at:end]
        at = end
