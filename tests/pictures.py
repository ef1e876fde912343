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
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    return PIL.Image.fromarray(pixels)


def png_chunk(name: bytes, body: bytes) -> bytes:
    checksum = struct.pack(">I", zlib.crc32(name + body))
    return struct.pack(">I", len(body)) + name + body + checksum


def png_of(width: int, height: int, rows: bytes = b"", bits: int = 8) -> bytes:
    """A PNG in RGB that says it has so many pixels, whatever its rows are."""
    fields = struct.pack(">IIBBBBB", width, height, bits, 2, 0, 0, 0)
    chunks = {b"IHDR": fields, b"IDAT": zlib.compress(rows), b"IEND": b""}
    whole = b"".join(png_chunk(name, body) for name, body in chunks.items())
    return b"\x89PNG\r\n\x1a\n" + whole
