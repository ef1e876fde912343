"""Images and samples as people have them in Python -> those of the protocol."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sized
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from vieval_plugin import images
from vieval_plugin.backends.concurrency import DaemonPool
from vieval_plugin.images import MAX_PIXELS
from vieval_plugin.judges.arguments import described, require_several
from vieval_plugin.judges.contests import Contest, Judged
from vieval_plugin.judges.protocol import Image, Sample
from vieval_plugin.readers.sample_rows import samples_of_row
from vieval_plugin.readers.tables import BadLine
from vieval_plugin.records import OWN
from vieval_plugin.text.errors import VievalError, line_of
from vieval_plugin.text.redaction import redacted

T = TypeVar("T")
Format: TypeAlias = Literal["png", "jpeg"]
#: A path, a file's bytes, a picture of Pillow, or an array of pixels, which may be a tensor in main
#: memory.
GivenImage: TypeAlias = (
    "Image | str | os.PathLike[str] | bytes | PIL.Image.Image | NDArray[Any]"
)

_FILES = (bytes, bytearray, memoryview)
_PATHS = (str, os.PathLike)
_BATCH_AXES = 4
_END = object()
_WORTH_THREADS = 4  # to start them takes as long as to write an image
_IMAGES = (
    "a path, the bytes of a file, a PIL image, or an array (height, width, 3) of uint8 from 0 "
    "to 255 or floats from 0 to 1"
)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def image(value: Any, form: Format = "png") -> Image:
    """An image of the protocol.

    Files and bytes are taken as they are and read later. Pictures and arrays become files here:
    PNG, which loses nothing, or with `form` "jpeg" JPEG of quality 95 with all colours, which is
    quicker and a third of the size.

    Raises:
        VievalError: it is none of what can be taken, in a line that says what can.

    >>> image(np.zeros((2, 2, 3), np.uint8))
    Image(72 bytes)
    """
    _require_image(value)
    if isinstance(value, Image):
        return value
    if isinstance(value, _FILES):
        return Image(bytes(value))
    if isinstance(value, _PATHS):
        return Image(Path(os.fsdecode(value)))
    if isinstance(value, PIL.Image.Image):
        return _image_from_picture(value, form)
    return _image_from_picture(PIL.Image.fromarray(_pixels(value)), form)


def _require_image(value: Any) -> None:
    """Raise VievalError for anything but an image, as far as that is seen before
    anything is read, copied or converted.
    """
    if isinstance(value, str) and _ADDRESS.match(value) and not os.path.exists(value):
        address = redacted(value).partition("?")[0][:100]
        raise VievalError(
            f"an image must be a local file, got {address}; download it and pass its "
            "path"
        )
    if isinstance(value, PIL.Image.Image):
        _require_area(value.height, value.width)
    elif not isinstance(value, (Image, *_FILES, *_PATHS)):
        if not hasattr(value, "__array__"):
            raise VievalError(f"{described(value)} is not an image; pass {_IMAGES}")
        _require_layout(value)


def is_one_image(value: Any) -> bool:
    """Tell an image from several: a path, bytes, a picture, or an array of two or three axes.

    >>> is_one_image("x.png"), is_one_image(["x.png"]), is_one_image(np.zeros((2, 8, 8, 3)))
    (True, False, False)
    """
    if isinstance(value, (Image, PIL.Image.Image, *_FILES, *_PATHS)):
        return True
    shape = getattr(value, "shape", None)
    image_axes = (_BATCH_AXES - 2, _BATCH_AXES - 1)
    return isinstance(shape, tuple) and len(shape) in image_axes


def _require_there(value: Any) -> None:
    """Raise VievalError for the path of a file that does not exist: its score would be
    NaN, and nobody would see why.
    """
    path = value.source if isinstance(value, Image) else value
    if isinstance(path, _PATHS):
        name = os.fsdecode(path)
        if not images.is_there(Image(Path(name))):
            raise VievalError(f"no such file: {name}")


def _require_layout(array: Any, is_batch: bool = False) -> None:
    """Raise VievalError for an array whose shape or type is not that of an image; one that tells
    neither is looked at later.
    """
    shape = getattr(array, "shape", None)
    if isinstance(shape, tuple):
        shape = tuple(shape[1:] if is_batch else shape)
        is_grey = len(shape) == 2
        has_channels = len(shape) == 3 and shape[-1] in (1, 3, 4)
        if not (is_grey or has_channels):
            turned = ""
            if shape[:1] in ((3,), (1,)):
                turned = "; reorder it with transpose(1, 2, 0) (for a tensor: permute)"
            raise VievalError(
                f"an array of shape {shape} is not an image; pass (height, width, "
                f"3){turned}"
            )
        _require_area(*shape[:2])
    dtype = getattr(array, "dtype", None)  # of a tensor it is none of numpy's
    if isinstance(dtype, np.dtype) and dtype != np.uint8 and dtype.kind not in "bf":
        raise VievalError(
            f"an array of {dtype} is not an image; pass uint8 from 0 to 255 or floats "
            "from 0 to 1"
        )


def _require_area(height: int, width: int) -> None:
    if height * width > MAX_PIXELS:
        raise VievalError(
            f"an image may have at most 100 megapixels, got {width}x{height} pixels"
        )
    if not height or not width:
        raise VievalError("an image must have at least one pixel")


def _image_from_picture(picture: PIL.Image.Image, form: Format) -> Image:
    try:
        rgb = images.shown_picture(picture)
    except VievalError:
        raise
    except Exception as error:  # a picture of a file is only read now
        raise VievalError(f"cannot read the PIL image: {line_of(error)}") from None
    pixels = np.asarray(rgb)
    if form == "png":
        return images.png_image(pixels)
    from vieval_plugin.backends.image_tools.tools import encode_jpeg

    return images.vouch(encode_jpeg(pixels))


def _pixels(value: Any) -> NDArray[np.uint8]:
    """Pixels of any array as (height, width, 3 or 4), or (height, width) for grey, of 8 bits."""
    try:
        array = np.asarray(value)
    except Exception:
        raise VievalError(
            f"{described(value)} cannot be converted to an array; for a tensor, pass "
            ".detach().cpu()"
        ) from None
    _require_layout(array)
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise VievalError(
            "an image array must not have masked pixels; fill them with filled(...)"
        )
    if array.ndim == 3 and array.shape[-1] == 1:
        array = array[..., 0]
    if array.dtype == np.uint8:
        return array
    if array.dtype == bool:
        return array.astype(np.uint8) * 255
    if not (array.min() >= 0 and array.max() <= 1):
        raise VievalError(
            "float pixels must be between 0 and 1; pass (images / 2 + 0.5).clip(0, "
            "1) for values from -1 to 1, or uint8 for values from 0 to 255"
        )
    return (array * 255).round().astype(np.uint8)


def columns(
    by_name: Mapping[str, Any], prompts: Any, form: Format = "png"
) -> tuple[list[list[Image]], list[str]]:
    """Images and their prompts, as many of each.

    They are read in step, so that one without an end is read no further than the shortest, and all
    are looked at before the first is converted.

    Args:
        by_name: by the name that messages call them, sequences of images or batches (number,
            height, width, 3).
        prompts: as many texts, or one text for all.
        form: as for `image`.

    Raises:
        VievalError: they are not as many, or one is no image or no text.
    """
    for name, values in by_name.items():
        _require_batch(values, name)
    sequences = dict(by_name)
    if not isinstance(prompts, str):
        require_several(prompts, "prompts", "a list of strings, or one string for all")
        sequences["prompts"] = prompts
    values_by_name = dict(zip(sequences, zip_equal(sequences), strict=True))
    texts = values_by_name.pop("prompts", None)
    if texts is None:
        texts = [prompts] * len(next(iter(values_by_name.values())))
    for text in texts:
        if not isinstance(text, str):
            raise VievalError(f"prompts must be strings, got {described(text)}")
    for name, values in values_by_name.items():
        for number, value in enumerate(values):
            call_numbered(name, number, _require_image, value)
            call_numbered(name, number, _require_there, value)
    return [
        _converted(name, values, form) for name, values in values_by_name.items()
    ], texts


def _require_batch(values: Any, name: str) -> None:
    """Raise VievalError for what is not several images: for a batch, by its shape and type."""
    if isinstance(values, (os.PathLike, PIL.Image.Image, Image)):
        raise VievalError(f"{name} must be a list of images, got {described(values)}")
    shape = getattr(values, "shape", None)
    if isinstance(shape, tuple):
        if len(shape) != _BATCH_AXES:
            raise VievalError(
                f"{name} must be a list of images, or an array of shape (number, height, "
                f"width, 3), got an array of shape {tuple(shape)}"
            )
        _require_layout(values, is_batch=True)
    require_several(values, name, "a list of images")


def zip_equal(sequences: Mapping[str, Any]) -> list[list[Any]]:
    """The values of iterables of equal length; VievalError where one ends before another."""
    rows: list[tuple[Any, ...]] = []
    for row in zip_longest(*sequences.values(), fillvalue=_END):
        if any(value is _END for value in row):
            counts = []
            for (name, values), value in zip(sequences.items(), row, strict=True):
                count = len(rows) if value is _END else None
                counts.append(_count(name, values, count))
            names = " and ".join(sequences)
            lengths = " and ".join(counts)
            raise VievalError(
                f"{names} must have the same length, got {lengths}; or pass one string for "
                "all prompts"
            )
        rows.append(row)
    if not rows:
        return [[] for _ in sequences]
    return [list(column) for column in zip(*rows, strict=True)]


def _count(name: str, values: Any, read: int | None) -> str:
    if read is None and isinstance(values, Sized):
        read = len(values)
    noun = name.removesuffix("s") if read == 1 else name
    return f"{'more' if read is None else read} {noun}"


def _converted(name: str, values: list[Any], form: Format) -> list[Image]:
    def convert(number: int) -> Image:
        value = values[number]
        return call_numbered(name, number, image, value, form)

    # one image may have many prompts, and Pillow cannot read one in several threads
    positions: dict[int, int] = {}
    for number, value in enumerate(values):
        positions.setdefault(id(value), number)
    distinct = list(positions.values())
    if len(distinct) < _WORTH_THREADS:
        converted = list(map(convert, distinct))
    else:
        converted = convert_in_threads(
            lambda index: convert(distinct[index]), len(distinct)
        )
    images = dict(zip(positions, converted, strict=True))
    return [images[id(value)] for value in values]


def convert_in_threads(convert: Callable[[int], T], count: int) -> list[T]:
    """The results of a function of 0, 1, ...: PNG takes its time, and threads do it side by
    side.
    """
    with DaemonPool(name="write") as pool:
        return list(pool.map(convert, range(count)))


def call_numbered(name: str, number: int, call: Callable[..., T], *arguments: Any) -> T:
    """The result of a call about one of several; a VievalError says about which."""
    try:
        return call(*arguments)
    except VievalError as error:
        raise VievalError(f"{name}[{number}]: {error}") from None


def samples(values: Any, kind: str | None = None, form: Format = "png") -> list[Judged]:
    """Samples and contests as they are, and samples from mappings with the keys of a samples file.

    Args:
        values: `Sample`, `Contest`, or mappings such as `{"images": {"output": ...}, "texts":
            {"prompt": ...}}`.
        kind: that of mappings which name none.

    Raises:
        VievalError: names the first that is none of these, by its number from 0.
    """
    require_several(values, "samples", "a list of samples")
    return [
        sample
        for number, value in enumerate(values)
        for sample in _samples(number, value, kind, form)
    ]


def _samples(
    number: int,
    value: Any,
    kind: str | None,
    form: Format,
) -> Iterator[Judged]:
    if isinstance(value, (Sample, Contest)):
        yield value
        return
    if not isinstance(value, Mapping):
        raise VievalError(
            f'sample {number}: {described(value)} is not a sample; pass {{"kind": '
            '"tig", "images": {"output": ...}, "texts": {"prompt": '
            "...}} or a vieval_plugin.Sample"
        )
    by_role = value.get("images", {})
    if not isinstance(by_role, Mapping):
        raise VievalError(
            f'sample {number}: images must map roles to images, such as {{"output": '
            "...}"
        )
    try:
        images = {
            str(role): image(image_value, form) for role, image_value in by_role.items()
        }
        for sample, _ in samples_of_row(
            Path(),
            number,
            {**value, "images": images},
            kind,
            OWN,
        ):
            yield sample
    except (BadLine, VievalError) as error:
        raise VievalError(f"sample {number}: {error}") from None
