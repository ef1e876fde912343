"""Decoding of image files of unknown origin to pixels, within limits.

Benchmarks, logs and image models hand in files that nobody here has looked at. All decoding of this
package passes through `decode`, so that one place decides how large a file may be and what
transparency, palettes, 16-bit samples and camera orientation become. Half a picture is an error:
evaluation harnesses set Pillow's process-wide LOAD_TRUNCATED_IMAGES, and then half an image decodes
without an error, the rest grey, and a judge would rate the grey.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
import stat
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import PIL.ExifTags
import PIL.features
import PIL.Image
import PIL.ImageFile
import PIL.ImageOps
from numpy.typing import NDArray
from PIL.Image import Image as Picture

from vieval_plugin.judges.contests import Judged, candidates_of
from vieval_plugin.judges.protocol import Image, TableCell
from vieval_plugin.media.image_checks import ImageStream, load_strictly
from vieval_plugin.media.jpeg import remove_coded_pixels
from vieval_plugin.media.png import Pixels, encode
from vieval_plugin.media.thumbnails import Thumbnail, Thumbnails
from vieval_plugin.text.errors import VievalError, line_of
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.untrusted import isfile

MAX_BYTES = 64 * 2**20
MAX_PIXELS = 100_000_000
#: The most that a JPEG can have; one row of as many pixels as are allowed takes seconds to resize.
MAX_SIDE = 65_535
#: Pixels that all threads together decode and work on at once; up to 25 bytes are needed for each.
MAX_DECODING = 66_000_000
_REMEMBERED = 50_000  # files by digest: some 20 MB
_LONGEST_NAME = 300
_GRID = re.compile(r"grid (\d{1,2})x(\d{1,2})")
_HEAD = 64  # bytes of a file that show its format

#: First bytes of a JPEG file.
JPEG = b"\xff\xd8\xff"
# Named rather than all that Pillow knows: some of its other readers start programs (EPS) or are
# hardly ever exercised.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    JPEG: "JPEG",
    b"GIF8": "GIF",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
}
_BRANDS = {
    b"avif": "AVIF",
    b"avis": "AVIF",
    b"heic": "HEIC",
    b"heix": "HEIC",
    b"mif1": "HEIC",
}  # the first that is there
_NEEDED = {"AVIF": "Pillow 11.3 or newer", "HEIC": "pillow-heif"}

# EXIF 2.32, tag Orientation: what is not upright, and of that what lies on its side
_TURNED = range(2, 9)
_SIDEWAYS = range(5, 9)
_PNG_ORIENTATION = re.compile(rb"eXIf|Raw profile type exif|tiff:Orientation")


def format_of(head: bytes) -> str:
    """The format of a file that begins so; empty where it begins as no image that has a signature
    of its own.

    >>> format_of(b"\\x89PNG\\r\\n\\x1a\\n..."), format_of(b"uid,output")
    ('PNG', '')
    """
    if (
        head[4:8] == b"ftyp"
    ):  # a box of its size, this name, and brands of four letters each
        brands = head[8 : min(head[3], 64)]
        return next((name for brand, name in _BRANDS.items() if brand in brands), "")
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WEBP"
    if head[:2] == b"BM" and head[6:10] == bytes(4):
        return "BMP"
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")


def begins_as_image(path: Path) -> bool:
    """Return whether a path leads to a file that begins as an image does, as far as it can be
    read.
    """
    try:
        with path.open("rb") as file:
            return bool(format_of(file.read(_HEAD)))
    except (OSError, ValueError):
        return False


def files_of(samples: Iterable[Judged]) -> Iterator[Path]:
    """The files that images of samples or contests are in."""
    return (
        image.source
        for judged in samples
        for image in images_of(judged)
        if isinstance(image.source, Path)
    )


def read_bytes(image: Image) -> bytes:
    """The file of an image as it was written, at most 64 MiB.

    Raises:
        VievalError: there is no such file, it cannot be read, or it is larger than that.
    """
    data = image.source if isinstance(image.source, bytes) else _read_file(image.source)
    if len(data) > MAX_BYTES:
        raise VievalError(
            f"{name_of(image)} is larger than {MAX_BYTES >> 20} MiB; save a smaller "
            "version"
        )
    return data


def digest(image: Image) -> str:
    """The SHA-256 of an image's file in hexadecimal: the name of its content, whatever the file is
    called.

    Raises:
        VievalError: as `read_bytes`.
    """
    return hashlib.sha256(read_bytes(image)).hexdigest()


def is_there(image: Image) -> bool:
    """Return whether an image is in memory or its file exists, whatever its path looks like."""
    return isinstance(image.source, bytes) or isfile(image.source)


def is_changed(image: Image) -> bool:
    """Return whether an image is there and is not the one that was judged, as far as the SHA-256
    of that is known.
    """
    if not image.sha256 or not is_there(image):
        return False
    try:
        return digest(image) != image.sha256
    except VievalError:
        return True


def decode(image: Image) -> Picture:
    """The pixels of an image as a viewer shows them: RGB with 8 bits, upright, over white where it
    is transparent.

    Of an animation it is the first frame. 16-bit samples are scaled by 1/257, so that white stays
    white; 32-bit integers and floats are read as they are from 0 to 255, or times 255 from 0 to 1,
    unless the most is between 1 and 2. Colour profiles are not applied but handed on, everything
    else that a file says beside its pixels is dropped, and no global setting of Pillow is changed.

    Raises:
        VievalError: the file is missing, larger than 64 MiB, 100 megapixels or 65,535 pixels a side
            (known from its header, before anything is decoded), cut off, no image, or holds 32-bit
            samples of another range.
    """
    return upright(image)[0]


@dataclass(frozen=True)
class Examined:
    """The findings on a file that was looked through."""

    #: SHA-256 of its bytes.
    digest: str
    #: True where its picture is to be turned upright.
    turned: bool
    #: True where its mode is such that every reader has the colours that `decode` has.
    plain: bool = True


def upright(
    image: Image,
    data: bytes | None = None,
    most_pixels: int = MAX_PIXELS,
) -> tuple[Picture, Examined]:
    """`decode`, and the findings on the file; `data` are its bytes where they are read already."""
    data = read_bytes(image) if data is None else data
    with _reading(image, data, most_pixels) as (picture, stream):
        load_strictly(picture, stream)
        rgb = _upright_rgb(picture)
        profile = picture.info.get("icc_profile", b"")
        rgb.info = {"icc_profile": profile} if profile[16:20] == b"RGB " else {}
        return rgb, Examined(
            hashlib.sha256(data).hexdigest(),
            _orientation(picture) in _TURNED,
            _is_plain(picture),
        )


def thumbnail(image: Image, thumbnails: Thumbnails) -> Thumbnail | str:
    """Thumbnail of an image for a page, or the reason why it has none."""
    if not is_there(image):
        return "missing"
    try:
        file = None
        if isinstance(image.source, Path) and not image.origin:
            file = image.source
        return thumbnails.thumbnail(
            digest(image),
            lambda: decode(image),
            file,
        )
    except VievalError:
        return "unreadable"


_examined: OrderedDict[str, Examined] = OrderedDict()
_remembering = threading.Lock()
_turnstile = threading.Lock()
_room = threading.Condition()
_pixels_decoding = 0


@contextmanager
def decoding(pixels: int) -> Iterator[None]:
    """Reserve `pixels` of the 66-megapixel decoding budget of all threads, waiting until they are
    free.

    A larger image takes the whole budget. A thread must not reserve twice.
    """
    global _pixels_decoding
    with (
        _turnstile,
        _room,
    ):  # in turn, as small images would keep a large one waiting for ever
        _room.wait_for(
            lambda: not _pixels_decoding or _pixels_decoding + pixels <= MAX_DECODING
        )
        _pixels_decoding += pixels
    try:
        yield
    finally:
        with _room:
            _pixels_decoding -= pixels
            _room.notify_all()


def shown_picture(picture: Picture) -> Picture:
    """A picture of Pillow as a viewer shows it, as `decode` has it for a file."""
    picture.load()
    return _upright_rgb(picture)


def examine(image: Image, data: bytes | None = None) -> Examined:
    """Look through an image whole, to know that it can be decoded; the same bytes are looked
    through once a process.

    A JPEG whose segments lead to its end is decoded without its coded pixels: what can be wrong
    with those, decoders forgive. Every other image is decoded.

    Raises:
        VievalError: as `decode`, but for samples without an agreed range.
    """
    data = read_bytes(image) if data is None else data
    name = hashlib.sha256(data).hexdigest()
    with _remembering:
        if name in _examined:
            _examined.move_to_end(name)
            return _examined[name]
    headers = remove_coded_pixels(data) if data.startswith(JPEG) else None
    try:
        findings = _decodes(image, headers or data)
    except VievalError:
        if headers is None:
            raise
        findings = _decodes(image, data)
    return _remember(Examined(name, *findings))


def _decodes(image: Image, data: bytes) -> tuple[bool, bool]:
    """Decode an image, and return whether its picture is to be turned, and whether its mode is
    plain.
    """
    with _reading(image, data) as (picture, stream):
        # of a JPEG all is read at any scale, and the smallest takes half the time
        picture.draft("L", (1, 1))
        load_strictly(picture, stream)
        return _orientation(picture) in _TURNED, _is_plain(picture)


def is_known(image: Image) -> bool:
    """Return whether an image's bytes were looked through before, or encoded here; VievalError
    if they cannot be read.
    """
    name = digest(image)
    with _remembering:
        return name in _examined


def vouch(image: Image) -> Image:
    """The same image, which needs no check: its bytes were encoded here, from pixels."""
    _remember(Examined(digest(image), turned=False))
    return image


def png_image(pixels: Pixels) -> Image:
    """An image of pixels, of shape (height, width, 3), as a PNG file in memory, which
    needs no check.
    """
    return vouch(Image(encode(pixels)))


def is_jpeg(image: Image) -> bool:
    """Return whether an image's file begins as a JPEG does; VievalError if it cannot be read."""
    return read_bytes(image).startswith(JPEG)


def _remember(examined: Examined) -> Examined:
    with _remembering:
        _examined[examined.digest] = examined
        while len(_examined) > _REMEMBERED:
            _examined.popitem(last=False)
    return examined


def pixels(image: Image) -> NDArray[np.uint8]:
    """The pixels of an image as an array (height, width, 3), which `examine` then need not
    decode; VievalError as `decode`.
    """
    data = read_bytes(image)
    with decoding(math.prod(size(image, data))):
        picture, examined = upright(image, data)
        _remember(examined)
        return np.asarray(picture)


def size(
    image: Image,
    data: bytes | None = None,
    most_pixels: int = MAX_PIXELS,
) -> tuple[int, int]:
    """Width and height in pixels as the file's header says, before any turning; nothing is decoded.

    Raises:
        VievalError: as `decode`, as far as the header shows it.
    """
    return _open(image, data, most_pixels)[1].size


def upright_size(image: Image) -> tuple[int, int]:
    """Width and height in pixels as a viewer shows an image; a PNG is decoded only if its file may
    have an orientation.

    Raises:
        VievalError: as `size`.
    """
    data = read_bytes(image)
    picture = _open(image, data, MAX_PIXELS)[1]
    width, height = picture.size
    may_be_turned = picture.format != "PNG" or _PNG_ORIENTATION.search(data)
    is_sideways = may_be_turned and _orientation(picture) in _SIDEWAYS
    return (height, width) if is_sideways else (width, height)


@contextmanager
def _reading(
    image: Image,
    data: bytes | None,
    most_pixels: int = MAX_PIXELS,
) -> Iterator[tuple[PIL.ImageFile.ImageFile, ImageStream]]:
    """An image while it is decoded: whatever goes wrong is a VievalError."""
    stream, picture = _open(image, data, most_pixels)
    try:
        yield picture, stream
    except (
        Exception
    ) as error:  # Pillow's readers raise nearly any type on a file made to break them
        raise VievalError(
            f"{name_of(image)} cannot be decoded: {line_of(error)}"
        ) from error
    if stream.ran_out or stream.unfinished:
        raise VievalError(
            f"{name_of(image)} is cut off: the file ends before the image does"
        )


def _open(
    image: Image, data: bytes | None, most_pixels: int
) -> tuple[ImageStream, PIL.ImageFile.ImageFile]:
    data = read_bytes(image) if data is None else data
    stream = ImageStream(data)
    format = format_of(data)
    try:
        picture = _open_as(format, stream)
    except PIL.UnidentifiedImageError:
        formats = ", ".join((*FORMATS, *_NEEDED))
        raise VievalError(
            f"{name_of(image)} is not an image in a supported format ({formats})"
        ) from None
    except ImportError:
        raise VievalError(
            f"{name_of(image)} is {format}; install {_NEEDED[format]}, or save it as PNG"
        ) from None
    except Exception as error:
        raise VievalError(
            f"{name_of(image)} cannot be opened as an image: {line_of(error)}"
        ) from error
    width, height = picture.size
    limit = ""
    if max(width, height) > MAX_SIDE:
        limit = f"{MAX_SIDE} per side"
    elif width * height > most_pixels:
        limit = f"{most_pixels // 1_000_000} megapixels"
    if limit:
        pixels = f"{name_of(image)} has {width}x{height} pixels"
        raise VievalError(f"{pixels}, more than {limit}; save a smaller version")
    return stream, picture


def _open_as(format: str, stream: ImageStream) -> PIL.ImageFile.ImageFile:
    """A picture of a format; ImportError for one that this installation does not read."""
    if format == "AVIF" and not PIL.features.check("avif"):
        raise ImportError
    if format != "HEIC":
        formats = ("AVIF",) if format == "AVIF" else FORMATS
        return PIL.Image.open(stream, formats=formats)
    from pillow_heif import (
        HeifImageFile,
    )  # without registering it, which would change what others' Pillow reads

    picture: PIL.ImageFile.ImageFile = HeifImageFile(stream)
    return picture


def _read_file(path: Path) -> bytes:
    name = name_of(Image(path))
    try:
        status = path.stat()
        # reading a pipe, a device or a file of /proc, which says that it is empty, might never end
        if not stat.S_ISREG(status.st_mode):
            raise VievalError(f"{name} is not a file")
        if not status.st_size:
            raise VievalError(f"{name} is empty")
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise VievalError(f"{name} does not exist") from None
    except (OSError, ValueError) as error:  # the last for a zero byte
        raise VievalError(
            f"{name} cannot be read: {getattr(error, 'strerror', error)}"
        ) from error


def _is_plain(picture: Picture) -> bool:
    """Return whether a loaded picture's pixels are the same to every reader, whatever it makes
    of transparency and range.
    """
    if picture.mode in ("RGBA", "LA"):
        return picture.getchannel("A").getextrema()[0] == 255
    return picture.mode in ("1", "L", "P", "RGB") and not picture.has_transparency_data


def _upright_rgb(picture: Picture) -> Picture:
    rgb = _rgb(picture)
    orientation = _orientation(picture)
    if orientation not in _TURNED:
        return rgb
    rgb.info = {}  # Pillow would write anew what a stranger noted there
    rgb.getexif()[PIL.ExifTags.Base.Orientation] = orientation
    return PIL.ImageOps.exif_transpose(rgb)


def _rgb(picture: Picture) -> Picture:
    """RGB with 8 bits from whatever mode a loaded picture has."""
    if picture.mode.startswith(("I", "F")):
        return _narrow_samples(picture)
    if picture.has_transparency_data:
        layer = picture.convert("RGBA")
        white = PIL.Image.new("RGBA", layer.size, "white")
        return PIL.Image.alpha_composite(white, layer).convert("RGB")
    return picture.convert("RGB")


def _narrow_samples(picture: Picture) -> Picture:
    samples = np.asarray(picture)
    low = samples.min()
    high = samples.max()
    # of these formats Pillow calls 16 bits I
    is_wide = picture.mode == "I" and picture.format in ("PNG", "PPM")
    if is_wide or picture.mode.startswith("I;16"):
        scale = 1 / 257
    elif 1 < high < 2:
        raise ValueError(
            f"pixel values up to {high:.9g} are ambiguous (0 to 1, or 0 to 255?); clip "
            "them to 1, or save the image with 8 or 16 bits"
        )
    elif low >= 0 and high <= 255:  # which is false of NaN
        scale = 255 if high <= 1 else 1
    else:
        raise ValueError(
            f"pixel values from {low:g} to {high:g} have no standard range; save the image "
            "with 8 or 16 bits"
        )
    grey = np.round(samples * scale).astype(np.uint8)
    transparent = picture.info.get("transparency")
    if isinstance(transparent, int):
        grey[samples == transparent] = 255
    return PIL.Image.fromarray(grey).convert("RGB")


def _orientation(picture: Picture) -> Any:
    """The camera's note of which side of a picture is up: 1 where it is absent or damaged."""
    try:
        return picture.getexif().get(PIL.ExifTags.Base.Orientation, 1)
    except Exception:  # viewers show such a file all the same, and its pixels are sound
        return 1


def name_of(image: Image) -> str:
    """The name of an image in messages: its path, shortened where it is long, or how many bytes
    it has.
    """
    if isinstance(image.source, bytes):
        return f"an image of {len(image.source)} bytes"
    # an address that somebody misspelt is a path, which is not there
    path = str(image.source)
    if not is_there(image):
        path = redacted(path)
    if len(path) > _LONGEST_NAME:
        path = f"{path[:80]}...{path[-80:]}"
    return path if path.isprintable() else ascii(path)


def images_of(judged: Judged) -> Iterator[Image]:
    """The images of a sample, or of all candidates of a contest."""
    return (
        image for sample in candidates_of(judged) for image in sample.images.values()
    )


def images_of_grid(file: Path, grid: str) -> list[Image]:
    """The images of a grid, row by row, as PNG files in memory.

    Args:
        file: the grid.
        grid: its columns and rows, such as `2x2`.

    Raises:
        VievalError: the file cannot be decoded, or its sides are no multiples of columns and rows.
    """
    column = f"grid {grid}"
    columns, rows = _size_of(column)
    pixels = np.asarray(decode(Image(file)))
    height, width = pixels.shape[:2]
    if height % rows or width % columns:
        raise VievalError(
            f"{file}: the width of a {grid} grid must be a multiple of {columns} and "
            f"its height a multiple of {rows}, got {width}x{height}"
        )
    tall = height // rows
    wide = width // columns
    corners = itertools.product(
        range(0, height, tall),
        range(
            0,
            width,
            wide,
        ),
    )
    images = []
    for number, (y, x) in enumerate(corners):
        piece = np.ascontiguousarray(pixels[y : y + tall, x : x + wide])
        images.append(
            Image(
                encode(piece),
                TableCell(
                    file,
                    number,
                    column,
                ),
            )
        )
    return images


def is_of_grid(cell: TableCell) -> bool:
    """Return whether a cell is an image of a grid."""
    return bool(_GRID.fullmatch(cell.column))


def image_in_grid(cell: TableCell) -> bytes:
    """An image of a grid again; VievalError where the file cannot be read or is another grid."""
    columns, rows = _size_of(cell.column)
    images = images_of_grid(cell.file, f"{columns}x{rows}")
    source = images[cell.row].source if cell.row < len(images) else b""
    return source if isinstance(source, bytes) else b""


def _size_of(column: str) -> tuple[int, int]:
    match = _GRID.fullmatch(column)
    columns, rows = map(int, match.groups()) if match else (0, 0)
    if not columns or not rows:
        raise VievalError(
            f"a grid must be COLUMNSxROWS such as 2x2, got {column.removeprefix('grid ')[:20]!r}"
        )
    return columns, rows
