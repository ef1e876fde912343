"""Strict decoding by Pillow: half a picture and damaged pixels are errors, whatever a harness
told Pillow to forgive.
"""

from __future__ import annotations

import io
from typing import Any

import PIL.Image
import PIL.ImageFile

_STRICT = "vieval strict"
_STRICT_PILLOW_DECODERS = (
    "gif",
    "jpeg",
    "raw",
    "zip",
)


class ImageStream(io.BytesIO):
    """Notes whether somebody wanted to read on where the file had ended, and how many decoders
    did not come to an end.
    """

    ran_out = False
    unfinished = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        if size and size > 0 and not data:
            self.ran_out = True
        return data


def load_strictly(picture: PIL.ImageFile.ImageFile, stream: ImageStream) -> None:
    """Decode a picture's pixels. What is wrong with them shows on the stream, or is an exception
    of any type.
    """
    tiles: list[Any] = []  # older versions have plain tuples
    for name, area, offset, args in picture.tile:
        if name in _STRICT_PILLOW_DECODERS:
            tiles.append(
                (
                    _STRICT,
                    area,
                    offset,
                    (
                        name,
                        stream,
                        *_to_tuple(args),
                    ),
                )
            )
        else:
            tiles.append((name, area, offset, args))
    picture.tile = tiles
    picture.load()


def _to_tuple(args: Any) -> tuple[Any, ...]:
    return args if isinstance(args, tuple) else () if args is None else (args,)


class _Strict:
    """A decoder of Pillow's whose errors count."""

    pulls_fd = False

    def __init__(
        self,
        mode: str,
        name: str,
        stream: ImageStream,
        *args: Any,
    ) -> None:
        # Pillow's own name for its decoders, which has no public one: where it is gone, every
        # image is refused
        core: Any = PIL.Image.core  # type: ignore[attr-defined]
        self._decoder = getattr(core, f"{name}_decoder")(mode, *args)
        self._stream = stream
        self.setimage = self._decoder.setimage
        self.cleanup = self._decoder.cleanup
        stream.unfinished += 1

    def decode(self, data: bytes) -> tuple[int, int]:
        used, error = self._decoder.decode(data)
        if error < 0:
            raise OSError("its pixel data is corrupt")
        self._stream.unfinished -= used < 0
        return used, error


PIL.Image.DECODERS[_STRICT] = _Strict  # type: ignore[assignment]  # a name of our own among Pillow's
