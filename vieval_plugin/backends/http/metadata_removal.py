"""Metadata removal: image files less where and when a picture was taken, by whom, and what was said of it.

Nothing is decoded: parts of a file are copied or left out. What decides colours stays (profile, gamma, transparency),
as does all that is needed to read the pixels.
"""

from __future__ import annotations

from collections.abc import Iterator

from vieval_plugin.media import jpeg

_PNG = b"\x89PNG\r\n\x1a\n"
_APP0, _APP2, _APP14, _APP15, _COMMENT = 0xE0, 0xE2, 0xEE, 0xEF, 0xFE
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
    parts = _jpeg if data.startswith(jpeg.SIGNATURE) else _png if data.startswith(_PNG) else None
    try:
        return b"".join(parts(data)) if parts else None
    except ValueError:
        return None


def colour_chunks(data: bytes) -> bytes:
    """The chunks of a PNG file on its colours that hold for any pixels in them, empty for other files."""
    try:
        parts = list(_png(data)) if data.startswith(_PNG) else []
    except ValueError:
        return b""
    return b"".join(part for part in parts if part[4:8] in _OF_ANY_PIXELS)


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
