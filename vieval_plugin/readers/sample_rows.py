"""Samples from rows of samples files and prompts files."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, TypeAlias

from vieval_plugin.images import format_of
from vieval_plugin.judges.protocol import (
    REFERENCE,
    WANTED_OBJECTS,
    WANTED_TEXT,
    Image,
    Sample,
    SampleId,
)
from vieval_plugin.judges.spec import INPUTS
from vieval_plugin.readers.tables import BadLine, Cells, are_texts
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.untrusted import address_of, exists, overlong, path_of

#: Paths or addresses of images by role.
Files: TypeAlias = Mapping[str, str]

_KEYS = (
    "uid",
    "image_model",
    "draw",
    "kind",
    "task",
    "images",
    "texts",
    "tags",
    "category",
    "group",
)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_DATA_ADDRESS = re.compile(r"data:image/[\w.+-]+;base64,", re.IGNORECASE)
_HEAD = 64  # characters of base64 that show the format of an image
_LIKE_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[/\\]|[/\\]{2}")
_AFTER_PATH = re.compile(r"[?#]")


def is_address(file: str) -> bool:
    """Return whether a text that stands for an image is an address instead of a path."""
    return _ADDRESS.match(file) is not None


def stem_of(file: str) -> str:
    """The name without suffix of the file that a path or an address leads to; nothing of an address
    but its path.

    >>> stem_of("http://host/a/1.png?token=x"), stem_of("http:/host/1.png?token=x"), stem_of("a/what?.png")
    ('1', '1', 'what?')
    >>> stem_of("..\\\\img\\\\0.png")
    '0'
    """
    address = address_of(file) if is_address(file) else None
    plain = _AFTER_PATH.split(redacted(file))[0] if _LIKE_ADDRESS.match(file) else file
    path: PurePath = PurePosixPath(address.path) if address else PureWindowsPath(plain)
    return path.stem


def image_path(file: str, folder: Path) -> Path:
    """The path that a text names from a folder; one of Windows where that leads to a file and
    the text itself to none.
    """
    path = path_of(file, folder)
    if "\\" in file and not exists(path):
        posix = path_of(PureWindowsPath(file).as_posix(), folder)
        return posix if exists(posix) else path
    return path


def encoded_image(text: str) -> bytes | None:
    """The bytes of an image that is a base64 text or a data address; None for any other text.

    Raises:
        BadLine: a data URL does not contain base64.

    >>> encoded_image("a/1.png"), encoded_image("data:image/png;base64,iVBORw==")
    (None, b'\\x89PNG')
    """
    address = _DATA_ADDRESS.match(text)
    encoded = text[address.end() :] if address else text.strip()
    try:
        if not address and (
            len(encoded) < _HEAD
            or not format_of(base64.b64decode(encoded[:_HEAD], validate=True))
        ):
            return None
        return base64.b64decode("".join(encoded.split()), validate=True)
    except ValueError:  # of signs that are none of base64, which may be no ASCII either
        if address:
            raise BadLine(
                "data URLs must contain base64; save the image to a file and use "
                "its path"
            ) from None
        return None


def address_among(files: Files) -> str:
    """Image that is an address instead of a file, in words; empty where none is."""
    for role, address in addresses_among(files).items():
        return f"the {role} image is a URL, not a local file: {redacted(address)[:200]}"
    return ""


def addresses_among(files: Files) -> dict[str, str]:
    """Images, by role, that are addresses instead of files."""
    return {role: file for role, file in files.items() if is_address(file)}


def samples_of_row(
    folder: Path,
    number: int,
    row: Cells,
    kind: str | None,
    benchmark: str,
) -> list[tuple[Sample, Files]]:
    """The samples of a row: one, or one for each prompt of a list; each with the images that are
    paths or addresses.

    Args:
        folder: where relative paths of images begin.
        number: the row's, which is the uid of one that has none.
        row: as a line of a samples file has it; images may also be `Image`.
        kind: that of rows which name none; None for what their images and texts tell.
        benchmark: what the samples are identified with; their part is their kind.

    Raises:
        BadLine: it says something else than a row may.
    """
    unknown = sorted(map(str, set(row) - set(_KEYS)))
    if unknown:
        raise BadLine(
            f"unknown key {unknown[0][:80]!r}; known keys: {', '.join(_KEYS)}"
        )
    images = row.get("images", {})
    texts = row.get("texts", {})
    if not isinstance(images, dict) or not all(
        isinstance(image, (str, Image)) for image in images.values()
    ):
        raise BadLine("`images` must map roles (output, source, ...) to paths")
    if not isinstance(texts, dict):
        raise BadLine(
            "`texts` must map names (prompt, instruction, subject) to strings"
        )
    prompts = texts.get("prompt")
    has_list = isinstance(prompts, list)
    if has_list and not (prompts and are_texts(prompts)):
        raise BadLine(
            "a list of prompts must contain at least one prompt and only strings"
        )
    for name, text in texts.items():
        if not isinstance(text, str) and not (has_list and name == "prompt"):
            raise BadLine(
                "`texts` must map names (prompt, instruction, subject) to "
                f"strings, got {type(text).__name__} for {str(name)[:80]}"
            )
    code = row.get(
        "kind",
        row.get(
            "task",
            _kind_of({*images}, {*texts}) if kind is None else kind,
        ),
    )
    if kind is not None and isinstance(code, str) and code not in INPUTS:
        code = kind
    if not isinstance(code, str):
        raise BadLine(f"`kind` must be a string, got {str(code)[:80]}")
    model = _name("image_model", row.get("image_model"), "")
    uid = _name(
        "uid",
        row.get("uid"),
        str(number),
    )
    category = _name("category", row.get("category"), "")
    group = _name("group", row.get("group"), "")
    tags = row.get("tags", [])
    if not are_texts(tags):
        raise BadLine("`tags` must be a list of strings")
    problem = overlong(
        model,
        uid,
        code,
        category,
        group,
        *tags,
        *images,
        *texts,
    )
    if problem:
        raise BadLine(problem)
    files = {role: file for role, file in images.items() if isinstance(file, str)}
    paths = {role: Image(image_path(file, folder)) for role, file in files.items()}
    located = {**images, **paths}
    variants: list[tuple[str, Files, str, tuple[int, ...]]] = [(uid, texts, group, ())]
    if has_list:
        variants = [
            (f"{uid}#{index}", {**texts, "prompt": prompt}, group or uid, (index,))
            for index, prompt in enumerate(prompts or ())
        ]
    draw = draw_of(row.get("draw", 0))
    return [
        (
            Sample(
                SampleId(
                    benchmark,
                    code,
                    model,
                    variant_uid,
                    draw,
                ),
                located,
                variant_texts,
                tags=tuple(tags),
                group=variant_group,
                category=category,
                place=place,
            ),
            files,
        )
        for variant_uid, variant_texts, variant_group, place in variants
    ]


def _kind_of(images: set[str], texts: set[str]) -> str:
    """The kind that the names of images and texts alone tell.

    A prompt and nothing shown is `tig`, an instruction and a source `tie`.

    >>> _kind_of({"output"}, {"prompt"}), _kind_of({"mask"}, {"prompt"})
    ('tig', '')
    """
    shown_images = images - {"output", REFERENCE}
    told_texts = texts - {WANTED_TEXT, WANTED_OBJECTS}
    if not shown_images and (
        told_texts == {"prompt"} or (WANTED_TEXT in texts and not told_texts)
    ):
        return "tig"
    if shown_images == {"source"} and told_texts in (
        {"instruction"},
        {"instruction", "prompt"},
    ):
        return "tie"
    return ""


def draw_of(draw: Any) -> int:
    """Index of an image among those of its conditions; BadLine where it is not a whole
    number from 0.
    """
    if type(draw) is not int or draw < 0:
        raise BadLine("`draw` must be a non-negative integer")
    return draw


def _name(
    key: str,
    name: Any,
    default: str,
) -> str:
    """A name that is a text or a number."""
    if name is None:
        return default
    if isinstance(name, bool) or not isinstance(name, (str, int, float)):
        raise BadLine(f"`{key}` must be a string")
    return str(name)
