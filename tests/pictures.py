"""Files of pictures, in memory."""

import io
import struct
import zlib

import numpy as np
import PIL.Image


def encoded(picture: PIL.Image.Image, form: str = "PNG", **options: object) -> bytes:
    """The file of a picture."""
    file = io.BytesIO()
    picture.save(file, form, **options)
    return file.getvalue()


def plain(
    colour: str | tuple[int, ...], size: tuple[int, int] = (8, 8), form: str = "PNG"
) -> bytes:
    """The file of a picture of one colour."""
    return encoded(PIL.Image.new("RGB", size, colour), form)


def noise(seed: int = 0, size: tuple[int, int] = (64, 48)) -> PIL.Image.Image:
    """A picture like that of no other seed."""
    width, height = size
    return PIL.Image.fromarray(
        np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    )


def png_chunk(name: bytes, body: bytes) -> bytes:
    return (
        struct.pack(">I", len(body))
        + name
        + body
        + struct.pack(">I", zlib.crc32(name + body))
    )


def png_of(width: int, height: int, rows: bytes = b"", bits: int = 8) -> bytes:
    """A PNG in RGB that says it has so many pixels, whatever its rows are."""
    header = png_chunk(
        b"IHDR", struct.pack(">IIBBBBB", width, height, bits, 2, 0, 0, 0)
    )
    return (
        b"\x89PNG\r\n\x1a\n"
        + header
        + png_chunk(b"IDAT", zlib.compress(rows))
        + png_chunk(b"IEND", b"")
    )
