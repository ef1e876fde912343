"""A folder of labelled edits: `examples.jsonl` with one edit per line, and
`manifest.json` with their origins.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vieval_plugin.media.files import write_whole
from vieval_plugin.records import lines_of
from vieval_plugin.text.errors import VievalError, line_of
from vieval_plugin.text.untrusted import isfile
from vieval_plugin.text.yaml_json import read_json
from vieval_plugin.training.adiee.labels import Edits, LabelledEdit, spread

EXAMPLES = "examples.jsonl"
MANIFEST = "manifest.json"
_PATHS = ("source", "output")


@dataclass(frozen=True)
class Terms:
    """Origin and licence of edits."""

    source: str
    #: Licence of the source.
    licence: str
    #: True if the licence allows training.
    trainable: bool


def write(
    folder: Path,
    edits: Edits,
    origins: Sequence[Terms],
    seed: int,
) -> None:
    """Write edits, leaving their images in place; VievalError if writing fails or an
    origin forbids training.
    """
    require_trainable(origins)
    lines = []
    for edit in edits:
        paths = {name: str(getattr(edit, name).absolute()) for name in _PATHS}
        lines.append(f"{json.dumps(asdict(edit) | paths, ensure_ascii=False)}\n")
    write_whole(folder / EXAMPLES, lines)
    labels = spread(edits)
    uids = list(dict.fromkeys(edit.group for edit in edits))
    manifest = {
        "data": [asdict(origin) for origin in origins],
        "seed": seed,
        "examples": len(edits),
        "labels": labels,
        "uids": uids,
    }
    write_whole(
        folder / MANIFEST,
        [
            json.dumps(
                manifest,
                indent=1,
                ensure_ascii=False,
            )
        ],
    )


def require_trainable(origins: Sequence[Terms]) -> None:
    """Raise VievalError with the licence for data that may not be used for training."""
    for origin in origins:
        if not origin.trainable:
            reason = f"its licence does not allow training ({origin.licence})"
            raise VievalError(f"{origin.source}: {reason}; leave it out")


def read(folder: Path) -> tuple[list[LabelledEdit], dict[str, Any]]:
    """Read the edits of a folder and its manifest.

    Raises:
        VievalError: a file is missing, or a row is malformed, has a label outside [0, 1], lacks
            its image, or its licence does not allow training.
    """
    try:
        manifest = read_json((folder / MANIFEST).read_bytes())
        require_trainable([Terms(**origin) for origin in manifest["data"]])
        lines = lines_of((folder / EXAMPLES).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise VievalError(
            f"{error.filename} is missing; create the folder with `vieval data`"
        ) from None
    except OSError as error:
        raise VievalError(f"cannot read {error.filename}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise VievalError(
            f"{folder / MANIFEST}: not a manifest of labelled edits ({_line(error)})"
        ) from None
    edits = [
        _edit(folder / EXAMPLES, number, line)
        for number, line in enumerate(lines, start=1)
    ]
    if not edits:
        raise VievalError(f"{folder / EXAMPLES}: contains no examples")
    return edits, manifest


def _edit(file: Path, number: int, line: str) -> LabelledEdit:
    where = f"{file}: row {number}"
    try:
        row = read_json(line)
        paths = {name: file.parent / row[name] for name in _PATHS}
        edit = LabelledEdit(**{**row, **paths})
        texts = edit.uid, edit.group, edit.instruction
    except (ValueError, KeyError, TypeError) as error:
        raise VievalError(f"{where}: not a labelled edit ({_line(error)})") from None
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise VievalError(
            f"{where}: `uid`, `group` and `instruction` must be non-empty strings"
        )
    is_number = type(edit.label) in (int, float)
    if not is_number or not 0 <= edit.label <= 1:
        raise VievalError(
            f"{where}: `label` must be a number from 0 to 1, got {edit.label!r}; "
            "divide labels by the maximum of their scale"
        )
    for image in (edit.source, edit.output):
        if not isfile(image):
            raise VievalError(f"{where}: image {image} not found")
    return edit


def _line(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error.args[0]} is missing"
    return line_of(error)[:200]
