"""PNG written fast: one filter for all rows and no search for repetitions.

Pillow tries five filters a row, which takes three times as long and makes photographs a tenth
smaller, and keeps all other threads waiting meanwhile.
"""

from __future__ import annotations

import struct
import zlib
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Array of shape (height, width, channels), with the channels red, green and blue by default.
Pixels: TypeAlias = NDArray[np.uint8]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# filter type 1 of the PNG specification: each sample less the one of the pixel on its left
_SUB_FILTER = 1
_EIGHT_BITS = 8
_COLOURS = {1: 0, 3: 2}


def encode(pixels: Pixels) -> bytes:
    """A PNG file with exactly these pixels.

    Args:
        pixels: of shape (height, width, 3), or (height, width, 1) for grey.

    >>> import io, PIL.Image
    >>> pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    >>> np.array_equal(PIL.Image.open(io.BytesIO(encode(pixels))), pixels)
    True
    """
    height, width, channels = pixels.shape
    flat = pixels.reshape(height, width * channels)
    rows = np.empty((height, 1 + width * channels), np.uint8)
    rows[:, 0] = _SUB_FILTER
    rows[:, 1 : 1 + channels] = flat[:, :channels]
    np.subtract(
        flat[:, channels:],
        flat[:, :-channels],
        out=rows[:, 1 + channels :],
    )
    packer = zlib.compressobj(
        1, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zlib.Z_RLE
    )
    packed = packer.compress(rows.data) + packer.flush()
    header = struct.pack(
        ">IIBBBBB", width, height, _EIGHT_BITS, _COLOURS[channels], 0, 0, 0
    )
    chunks = (
        _chunk(b"IHDR", header),
        _chunk(b"IDAT", packed),
        _chunk(b"IEND", b""),
    )
    return _SIGNATURE + b"".join(chunks)


def _chunk(name: bytes, body: bytes) -> bytes:
    checksum = struct.pack(">I", zlib.crc32(body, zlib.crc32(name)))
    return b"".join([struct.pack(">I", len(body)), name, body, checksum])
