"""Generation requests, and the answers of generators; pictures and masks as files."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import PIL.Image
import PIL.ImageOps

from vieval_plugin.images import decode, digest
from vieval_plugin.judges.protocol import Image, Sample, Status


@dataclass(frozen=True)
class ImageRequest:
    """Images to be made under the same conditions."""

    #: Sample with their conditions.
    conditions: Sample
    #: Their prompt.
    prompt: str
    #: Number of images.
    images: int = 1
    #: Number of earlier requests for the same, so that the first image is number `turn * images`.
    turn: int = 0
    #: The seed that the server is told; None for none.
    seed: int | None = None

    @property
    def numbers(self) -> range:
        """The numbers of the images wanted."""
        first = self.turn * self.images
        return range(first, first + self.images)


def answer_json(
    images: Sequence[Path],
    text: str = "",
    seconds: float | None = None,
    status: Status | None = None,
) -> str:
    """An answer in the form of a host: the files, a text where there is none, and the seconds that
    making them took.

    `status` says in which way a call failed; without it, images that are lacking were not made.

    >>> answer_json([Path("a.png")], seconds=1.5)
    '{"text": "", "images": ["a.png"], "seconds": 1.5}'
    """
    further = {"seconds": seconds, "status": status}
    known = {name: value for name, value in further.items() if value is not None}
    return json.dumps({"text": text, "images": [*map(str, images)], **known})


def file_for(
    folder: Path,
    conditions: Sample,
    prompt: str,
    number: int,
    how: Mapping[str, Any],
) -> Path:
    """The file of an image, called by all that it depends on: so what is made is not made again, by
    any run.

    Args:
        folder: where it lies.
        conditions: what it is made from; images count by their content.
        prompt: the words for it.
        number: its number.
        how: the generator and its options, as JSON values.
    """
    images = {role: digest(image) for role, image in conditions.images.items()}
    origin = json.dumps(
        [how, prompt, images, number],
        sort_keys=True,
        default=str,
    )
    name = hashlib.sha256(origin.encode()).hexdigest()[:32]
    return folder / f"{name}.png"


def transparent_where_white(mask: Image) -> bytes:
    """A mask that is white where something is to change, as a PNG that is transparent there.

    >>> white = Image(encode_png(PIL.Image.new("RGB", (2, 2), "white")))
    >>> PIL.Image.open(io.BytesIO(transparent_where_white(white))).getpixel((0, 0))[3]
    0
    """
    grey = decode(mask).convert("L")
    layer = PIL.Image.new("RGBA", grey.size, "black")
    layer.putalpha(PIL.ImageOps.invert(grey))
    return encode_png(layer)


def encode_png(picture: PIL.Image.Image) -> bytes:
    """The bytes of a picture as a PNG file, which loses nothing."""
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()
