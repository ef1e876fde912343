"""Readers of row files, with errors that include file and row."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from vieval_plugin.judges.protocol import Image
from vieval_plugin.readers.delimited import csv_table
from vieval_plugin.readers.tables import (
    BadLine,
    Cells,
    are_objects,
    are_texts,
    row_of_value,
    values_of_lines,
)
from vieval_plugin.text import yaml_json
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.suggestions import abbreviated
from vieval_plugin.text.untrusted import exists, isfile
from vieval_plugin.text.yaml_json import JsonObject

#: What ratings of how well an image fits its text are ratings of.
ASPECT = "SC"
#: The kind of a sample that was made from a text alone, or is looked at as if it were: images,
#: videos and 3D objects.
KIND = "tig"
#: The statistics of a benchmark with ratings on a scale.
GRADED = ("pearson", "kendall", "pairwise_accuracy")
#: The image model of a benchmark that does not say who made which image.
UNNAMED = "unnamed"

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SUFFIXES = (
    ".png",
    ".jpg",
    ".jpeg",
    ".webp",
    ".bmp",
    ".gif",
    ".npy",
)


@dataclass(frozen=True)
class Row:
    """A row of a file."""

    #: File and row as an error names them.
    where: str
    #: Its values by column.
    cells: Cells

    def error(self, problem: str) -> VievalError:
        """The error for a row that its file must not have."""
        return VievalError(f"{self.where}: {problem}; correct the file")

    def text(self, column: str) -> str:
        """A text that is not blank."""
        value = self._cell(column)
        if not isinstance(value, str) or not value.strip():
            raise _unlike(
                f"{self.where}: {column}",
                value,
                "a non-empty string",
            )
        return value

    def uid(self, column: str) -> str:
        """Identifier of a row: a whole number or a text, without the `#` that some uids have
        before a number.
        """
        value = self._cell(column)
        is_name = type(value) in (int, str)  # and no bool
        if not (is_name and re.fullmatch(r"[^#\n]{1,1000}", str(value))):
            raise _unlike(f"{self.where}: {column}", value, "a name without #")
        return str(value)

    def file(self, column: str) -> str:
        """The name of a file below the benchmark's folder, with / between its parts."""
        name = self.text(column)
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\0" in name:
            raise _unlike(
                f"{self.where}: {column}",
                name,
                "a file inside the folder",
            )
        return name

    def rating(
        self,
        column: str,
        low: float,
        high: float,
    ) -> float:
        """A number of a rating scale."""
        return rating(
            self._cell(column),
            low,
            high,
            f"{self.where}: {column}",
        )

    def number(
        self,
        column: str,
        low: float,
        high: float,
    ) -> float:
        """A number of a rating scale where cells are texts, as in a table."""
        text = self.text(column).strip()
        value = decimal(text)
        return rating(
            value if math.isfinite(value) else text,
            low,
            high,
            f"{self.where}: {column}",
        )

    def _cell(self, column: str) -> Any:
        if column not in self.cells:
            columns = abbreviated(list(self.cells)) or "none"
            raise self.error(f"missing {column} (found: {columns})")
        return self.cells[column]


def rating(
    value: Any,
    low: float,
    high: float,
    where: str,
) -> float:
    """A number of a rating scale from `low` to `high`; VievalError if it is invalid."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not low <= value <= high
    ):
        expected = f"a rating from {low:g} to {high:g}"
        raise _unlike(where, value, expected)
    return value + 0.0  # which takes the sign off a zero


def decimal(text: str) -> float:
    """The number that plain digits spell, NaN for any other text: `float` reads `0_1`, other
    scripts' digits and `inf`.

    >>> decimal("0.5"), decimal("0_5")
    (0.5, nan)
    """
    if _DECIMAL.fullmatch(text.strip()):
        return float(text)
    return math.nan


def read_object(path: Path, advice: str) -> JsonObject:
    """A JSON file that holds an object; `advice` says what to do where the file is missing."""
    value = read_json(path, advice)
    if not isinstance(value, dict):
        raise VievalError(f"{path}: must contain a JSON object; {advice}")
    return value


def read_json(path: Path, advice: str) -> Any:
    """Document of a JSON file."""
    try:
        return yaml_json.read_json(_read(path, advice))
    except ValueError as error:
        raise VievalError(f"{path}: invalid JSON ({error}); {advice}") from None


def read_objects(path: Path, advice: str) -> list[Row]:
    """The rows of a JSON file that is a list of objects."""
    document = read_json(path, advice)
    if not are_objects(document):
        raise VievalError(f"{path}: must contain a list of objects; {advice}")
    return [
        Row(f"{path}: row {number}", cells) for number, cells in enumerate(document)
    ]


def read_lines(path: Path, advice: str) -> list[Row]:
    """The rows of a JSONL file; blank lines are passed over."""
    _require_there(path, advice)
    return [
        _row_of_line(path, number, row_of_value(value))
        for number, value in values_of_lines(path)
    ]


def _row_of_line(
    path: Path,
    number: int,
    cells: Cells | BadLine,
) -> Row:
    where = f"{path}: line {number}"
    if isinstance(cells, BadLine):
        raise VievalError(f"{where}: {cells}; correct the line")
    return Row(where, cells)


def rows_by_uid(rows: Iterable[Row]) -> dict[str, Row]:
    """Rows by their `id`; VievalError where two have the same."""
    by_uid: dict[str, Row] = {}
    for row in rows:
        uid = row.uid("id")
        if by_uid.setdefault(uid, row) is not row:
            raise row.error(f"duplicate id {uid}")
    return by_uid


def read_table(
    path: Path,
    columns: Sequence[str],
    advice: str,
) -> list[Row]:
    """The rows of a CSV file that has these columns."""
    _require_there(path, advice)
    table = csv_table(
        path,
        f"its first line must contain the column names {abbreviated(columns)}; {advice}",
    )
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise VievalError(
            f"{path}: column {missing[0]!r} is missing (found: "
            f"{abbreviated(table.columns) or 'none'}); {advice}"
        )
    rows = [_row_of_line(path, number, cells) for number, cells in table.read(columns)]
    empty = dict.fromkeys(table.columns, "")
    return [replace(row, cells={**empty, **row.cells}) for row in rows]


def read_count(path: Path, default: int) -> int:
    """Number of images that stand for one sample: `count` of a small JSON file, `default`
    without that file.
    """
    if not exists(path):
        return default
    count = read_object(path, "remove it to use the default").get("count")
    if type(count) is not int or count < 1:
        raise _unlike(f"{path}: count", count, "a positive integer")
    return count


def tag_list(value: Any, where: str) -> tuple[str, ...]:
    """A JSON list of tags."""
    if not are_texts(value) or not all(map(str.strip, value)):
        raise _unlike(where, value, "a list of tags")
    return tuple(dict.fromkeys(value))


def numbered(
    folder: Path,
    count: int,
    suffixes: Sequence[str],
) -> list[Path]:
    """The files `0`, `1`, ... of a folder, with the first suffix that its `0` has, else the
    first of all.
    """
    present = (suffix for suffix in suffixes if isfile(folder / f"0{suffix}"))
    suffix = next(present, suffixes[0])
    return [folder / f"{number}{suffix}" for number in range(count)]


def image_file(folder: Path, name: str) -> Image:
    """An image by its name in a file; names without a suffix are PNG, as the hub's loader has
    it.
    """
    has_suffix = PurePosixPath(name).suffix.lower() in _SUFFIXES
    return Image(folder / (name if has_suffix else f"{name}.png"))


def absent_file(path: Path, advice: str) -> VievalError:
    """The error for a file of a benchmark that is not in the data folder."""
    return VievalError(
        f"{path}: no such file; {advice}, or set VIEVAL_DATA to the folder that "
        "contains it"
    )


def _require_there(path: Path, advice: str) -> None:
    if not exists(path):
        raise absent_file(path, advice)


def _read(path: Path, advice: str) -> str:
    _require_there(path, advice)
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise VievalError(f"cannot read {path}: {error}; {advice}") from None


def _unlike(
    where: str,
    value: Any,
    expected: str,
) -> VievalError:
    """The error for a value that is not what a file must have there."""
    text = json.dumps(value, ensure_ascii=True)
    excerpt = text if len(text) <= 60 else f"{text[:57]}..."
    return VievalError(f"{where} must be {expected}, got {excerpt}; correct the file")
