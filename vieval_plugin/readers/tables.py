"""Tables that people bring, read a row at a time: CSV, JSONL, JSON lists and lines of text."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from vieval_plugin.judges.protocol import TableCell
from vieval_plugin.media.files import require_plain
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import is_encodable
from vieval_plugin.text.yaml_json import read_json

_LONGEST_LINE = 64 << 20
_LONGEST_LIST = 256 << 20
_FIRST = 100  # rows whose keys are the columns of a file that has no header


class BadLine(Exception):
    """Fault of a row; `row` is as much of it as could be read."""

    def __init__(self, reason: str, row: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.row = row or {}


#: The cells of a row by column, or what is wrong with it, and its number from 1: of the line where it ends, or its own.
NumberedRow: TypeAlias = "tuple[int, Mapping[str, Any] | BadLine]"


@dataclass(frozen=True)
class StoredImage:
    """A cell of a table that holds an image."""

    #: Its file's name, which may be an address; empty where only bytes are there.
    name: str
    #: Its bytes; None where only a name is there.
    data: bytes | None
    #: Where it is.
    cell: TableCell


@dataclass(frozen=True)
class InputTable:
    """A table whose rows are read as often as they are asked for."""

    #: Its name in messages.
    name: str
    #: Columns that rows may have, as far as that can be said before all are read.
    columns: tuple[str, ...]
    #: Function that reads the rows, given the columns that are needed.
    read: Callable[[Sequence[str]], Iterator[NumberedRow]]
    #: Folder where relative paths begin.
    folder: Path
    #: Files that hold the rows.
    files: tuple[Path, ...]
    #: Name of a row in messages.
    unit: str = "line"
    #: Folders that images must lie in where others wrote the table; empty where paths are the user's own.
    roots: tuple[Path, ...] = ()
    #: Image model of rows which name none.
    image_model: str = ""
    #: Types of the columns whose values are nothing that a sample has.
    unreadable: Mapping[str, str] = field(default_factory=dict)
    #: True where rows may have the columns `images` and `texts`, which map roles and names to values.
    nested: bool = False
    #: Types of the columns whose values are no texts.
    not_texts: Mapping[str, str] = field(default_factory=dict)


def require_once(path: Path | str, header: Sequence[str], columns: Iterable[str]) -> None:
    """VievalError for a column that a table has twice, because nobody can say which of them is meant."""
    for column in columns:
        if header.count(column) > 1:
            raise VievalError(f"{path}: two columns are called {column!r}; remove one")


def csv_table(path: Path) -> InputTable:
    """A CSV file with a header; an empty cell is none at all.

    Raises:
        VievalError: here and while rows are read: it cannot be read as CSV, or has two columns of one name.
    """
    header = [name.strip() for _, name_row in islice(csv_rows(path), 1) for name in name_row]
    if not any(header):
        raise VievalError(f"{path}: no header in it; its first line names the columns, such as output,prompt")
    require_once(path, [name for name in header if name], header)

    def read(columns: Sequence[str]) -> Iterator[NumberedRow]:
        for number, cells in islice(csv_rows(path), 1, None):
            if not any(cell.strip() for cell in cells):
                continue
            row = {name: cell for name, cell in zip(header, cells, strict=False) if cell.strip()}
            if len(cells) == len(header):
                yield number, row
            else:
                reason = f"{len(cells)} cells where the header has {len(header)}; put texts with commas in quotes"
                yield number, BadLine(reason, row)

    return InputTable(str(path), tuple(header), read, path.parent, (path,))


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row of a CSV file, the header's first, with the line where it ends; VievalError as `csv_table`."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            # where a header has no comma, the semicolon or tab that spreadsheets write in some languages
            delimiter = next((sign for sign in ",;\t" if sign in header), ",")
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            file.seek(0)
            try:
                for cells in reader:
                    yield reader.line_num, cells
            except csv.Error as error:
                raise VievalError(
                    f"{path}: line {reader.line_num} is not readable as CSV ({error}); correct the file"
                ) from None
    except UnicodeDecodeError:
        raise VievalError(f"{path}: not UTF-8; save the table as CSV UTF-8") from None
    except OSError as error:
        raise _unreadable(path, error) from None


def jsonl_table(path: Path) -> InputTable:
    """A file with a JSON object a line; VievalError where it cannot be read."""
    return _of_objects(path, lambda: ((number, _row_of_line(line)) for number, line in lines_of_file(path)), "line")


def json_table(path: Path) -> InputTable:
    """A JSON file that is a list of objects, of at most 256 MiB; VievalError where it is none."""
    try:
        size = path.stat().st_size
        if size > _LONGEST_LIST:
            raise VievalError(f"{path}: a list of more than {_LONGEST_LIST >> 20} MiB; save an object a line (JSONL)")
        document = read_json(path.read_bytes().removeprefix(codecs.BOM_UTF8))
    except OSError as error:
        raise _unreadable(path, error) from None
    except ValueError as error:
        raise VievalError(f"{path}: not readable as JSON ({error}); give a list of objects, or one a line") from None
    if not isinstance(document, list):
        raise VievalError(f"{path}: one JSON object; give a list of objects, or one a line")
    rows = [(number, _object(value)) for number, value in enumerate(document, start=1)]
    return _of_objects(path, lambda: iter(rows), "row")


def text_table(path: Path) -> InputTable:
    """A text file with a prompt a line, in the column `prompt`; VievalError where it cannot be read."""

    def read(columns: Sequence[str]) -> Iterator[NumberedRow]:
        for number, line in lines_of_file(path):
            try:
                yield number, {"prompt": line.decode()}
            except UnicodeDecodeError:
                yield number, BadLine("not UTF-8")

    return InputTable(str(path), ("prompt",), read, path.parent, (path,))


def lines_of_file(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, with their numbers from 1; VievalError if it cannot be read."""
    require_plain(path)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), start=1):
                if len(line) == _LONGEST_LINE:
                    raise VievalError(f"{path}: line {number} is longer than {_LONGEST_LINE >> 20} MiB; shorten it")
                text = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip()
                if text:
                    yield number, text
    except OSError as error:
        raise _unreadable(path, error) from None


def _row_of_line(line: bytes) -> dict[str, Any] | BadLine:
    """The object of a line, or what is wrong with it."""
    try:
        return _object(read_json(line.decode()))
    except UnicodeDecodeError:
        return BadLine("not UTF-8")
    except ValueError as error:
        return BadLine("nested too deeply" if "deeply" in str(error) else "not a JSON object")


def _object(value: Any) -> dict[str, Any] | BadLine:
    if not isinstance(value, dict):
        return BadLine("not a JSON object")
    if not is_encodable(value):
        return BadLine("a text in it has half of a character (a lone surrogate)")
    return value


def _of_objects(path: Path, rows: Callable[[], Iterator[NumberedRow]], unit: str) -> InputTable:
    first = (row for _, row in islice(rows(), _FIRST) if not isinstance(row, BadLine))
    columns = tuple(dict.fromkeys(name for row in first for name in row))
    return InputTable(str(path), columns, lambda columns: rows(), path.parent, (path,), unit, nested=True)


def _unreadable(path: Path, error: OSError) -> VievalError:
    return VievalError(f"{path}: the samples cannot be read ({error.strerror})")
