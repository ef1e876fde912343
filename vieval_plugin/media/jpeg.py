"""Segments of a JPEG file, without decoding (ITU T.81, annex B)."""

from __future__ import annotations

import re
from collections.abc import Iterator

SIGNATURE = b"\xff\xd8"
END_OF_IMAGE = b"\xff\xd9"
#: Stands for a marker where a scan's coded pixels follow its header.
CODED_PIXELS = 0
_SCAN = 0xDA
_END = 0xD9
_WITHOUT_LENGTH = (0x01, *range(0xD0, 0xD8))
# what ends the coded pixels: a marker that is neither a stuffed byte nor a restart
_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")


def segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Marker and bytes of each segment between the signature and the end of the image.

    Raises:
        ValueError: the parts cannot be told apart, or the file ends before the image does.

    >>> [marker for marker, _ in segments(SIGNATURE + bytes.fromhex("ffda0002abcd") + END_OF_IMAGE)]
    [218, 0]
    """
    at = len(SIGNATURE)
    while (marker := _marker_at(data, at)) != _END:
        if marker == 0xFF:  # a fill byte
            at += 1
            continue
        length = 0
        if marker not in _WITHOUT_LENGTH:
            length = int.from_bytes(data[at + 2 : at + 4], "big")
        end = at + 2 + length
        if end > len(data) or (length < 2 and marker not in _WITHOUT_LENGTH):
            raise ValueError("a segment extends past the end of the file")
        yield marker, data[at:end]
        at = end
        if marker == _SCAN:
            next_marker = _MARKER.search(data, at)
            end = next_marker.start() if next_marker else len(data)
            yield CODED_PIXELS, data[at:end]
            if next_marker is None:
                raise ValueError("the file ends before the image does")
            at = end


def remove_coded_pixels(data: bytes) -> bytes | None:
    """A JPEG file less its coded pixels, which a decoder takes for a picture of one colour; None
    where it is not whole.

    >>> remove_coded_pixels(SIGNATURE + bytes.fromhex("ffda0002abcd") + END_OF_IMAGE).hex()
    'ffd8ffda0002ffd9'
    """
    try:
        headers = [
            segment for marker, segment in segments(data) if marker != CODED_PIXELS
        ]
    except ValueError:
        return None
    return b"".join([SIGNATURE, *headers, END_OF_IMAGE])


def _marker_at(data: bytes, at: int) -> int:
    if at + 2 > len(data) or data[at] != 0xFF:
        raise ValueError("a marker is missing")
    return data[at + 1]
