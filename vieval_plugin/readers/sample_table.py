"""The rows of a CSV file of samples or prompts, in the form that a line of a samples file has."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import CONDITION_ROLES
from vieval_plugin.media.files import require_plain
from vieval_plugin.readers.rows import require_once
from vieval_plugin.readers.sample_rows import BadLine
from vieval_plugin.text.suggestions import did_you_mean

NumberedRow: TypeAlias = "tuple[int, dict[str, Any] | BadLine]"
"""A row, or what is wrong with it, and the line of the file that it ends at."""

_SUBJECT = "subject"
_IMAGES = tuple(role for role in ("output", *CONDITION_ROLES) if role != _SUBJECT)
_TEXTS = ("prompt", "instruction")
_PLAIN = ("uid", "image_model", "draw", "kind", "tags", "category")
COLUMNS = (*_PLAIN, *_IMAGES, *_TEXTS, f"images.{_SUBJECT}", f"texts.{_SUBJECT}")
"""The columns that a table may have. What else a sample may have is `images.ROLE` or `texts.NAME`."""


def is_table(path: Path) -> bool:
    """Return whether a file is a table, by its name."""
    return path.suffix.lower() == ".csv"


def rows_of_table(path: Path) -> Iterator[NumberedRow]:
    """The rows of a CSV file with a header; an empty cell says nothing, several tags are separated by semicolons.

    A row without a kind has that of `kind_of`.

    Raises:
        VievalError: the file cannot be read as CSV, or has a column that no sample has.
    """
    require_plain(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise VievalError(f"{path}: not UTF-8; save the table as CSV UTF-8") from None
    except OSError as error:
        raise VievalError(f"{path}: the samples cannot be read ({error.strerror})") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _require_columns(path, header)
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, _row(header, cells)
    except csv.Error as error:
        raise VievalError(
            f"{path}: line {reader.line_num} is not readable as CSV ({error}); correct the file"
        ) from None


def kind_of(row: Mapping[str, Any]) -> str:
    """The kind that images and texts alone tell: a prompt and nothing shown is `tig`, an instruction and a source
    `tie`.

    >>> kind_of({"texts": {"prompt": "a cat"}}), kind_of({"images": {"mask": "m.png"}})
    ('tig', '')
    """
    images, texts = row.get("images", {}), row.get("texts", {})
    if not isinstance(images, Mapping) or not isinstance(texts, Mapping):
        return ""
    image_roles, text_names = set(images) - {"output"}, set(texts)
    if not image_roles and text_names == {"prompt"}:
        return "tig"
    return "tie" if image_roles == {"source"} and text_names == {"instruction"} else ""


def _require_columns(path: Path, header: list[str]) -> None:
    for name in header:
        if name in COLUMNS or name.startswith(("images.", "texts.")):
            continue
        if name == _SUBJECT:
            raise VievalError(
                f"{path}: is the column {name!r} an image or a text? call it images.{name} or texts.{name}"
            )
        hint = did_you_mean(name, COLUMNS, 0.6) or ";"
        raise VievalError(f"{path}: unknown column {name[:80]!r}{hint} the columns are {', '.join(COLUMNS)}")
    require_once(path, header, header)
    if not header:
        raise VievalError(f"{path}: no header in it; its first line names the columns: {', '.join(COLUMNS)}")


def _row(header: list[str], cells: list[str]) -> dict[str, Any] | BadLine:
    row: dict[str, Any] = {"images": {}, "texts": {}}
    for name, cell in zip(header, cells, strict=False):
        if not cell.strip():
            continue
        part, _, name_in_part = name.partition(".")
        if name in _IMAGES or part == "images":
            row["images"][name_in_part or name] = cell
        elif name in _TEXTS or part == "texts":
            row["texts"][name_in_part or name] = cell
        elif name == "tags":
            row[name] = [tag.strip() for tag in cell.split(";") if tag.strip()]
        elif name == "draw":
            plain = cell.isascii() and cell.strip().isdecimal() and len(cell) < 10
            row[name] = int(cell) if plain else cell
        else:
            row[name] = cell.strip()
    if len(cells) != len(header):
        return BadLine(f"{len(cells)} cells where the header has {len(header)}; put texts with commas in quotes", row)
    return row
