"""CSV and similar files, with encoding, delimiter and quoting detected from their
content.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from vieval_plugin.readers.tables import (
    BadLine,
    InputTable,
    NumberedRow,
    encoding_of,
    readable,
    require_once,
)
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import plural

if TYPE_CHECKING:
    from _csv import Reader

_SIGNS = (
    "\t",
    "|",
    ";",
    ",",
)  # the rarest in prose first, which decides where several fit alike
_ABSENT_SIGN = "\x1f"  # of a file of one column, whose commas are its texts'
_FIRST_LINE = re.compile(
    r'"?sep=(.)"?', re.IGNORECASE
)  # by which spreadsheets name the sign
_FIRST = 200  # lines by which the sign is found
_LONGEST_LINE = 1 << 20  # characters of a line that are looked at for the sign
_LONGEST_CELL = 128 << 20  # characters: a base64 image of the size that is read
_HEADER_ADVICE = "its first line must contain the column names, such as output,prompt"
_NUMBER = re.compile(r"[+-]?[\d.,]*")


@dataclass(frozen=True)
class _Dialect:
    """Form of a file of cells."""

    #: Encoding of its text.
    encoding: str
    #: Sign between cells.
    delimiter: str
    #: Lines before the header.
    skipped: int
    #: True where a quotation mark quotes, False where it is a letter.
    quotes: bool = True
    #: True where spaces before a cell are none of it.
    skips_spaces: bool = False
    #: Line with a quotation mark behind spaces that quotes no cell; 0 where there is none.
    unquoted_line: int = 0


def _dialect_of(path: Path) -> _Dialect:
    """The form of a file of cells.

    The sign is the one that most rows have as often as the header. Between tabs, and in a file of
    one column, a quotation mark is a letter unless the file quotes as writers do.
    """
    with path.open("rb") as stream:
        encoding = encoding_of(stream.read(4))
    with path.open(encoding=encoding, newline="") as file:
        lines = [file.readline(_LONGEST_LINE) for _ in range(_FIRST)]
        declaration = _FIRST_LINE.fullmatch(lines[0].strip())
        if declaration:
            delimiter = declaration[1]
        else:
            delimiter = _delimiter(list(filter(str.strip, lines)))
        file.seek(0)
        dialect = _Dialect(
            encoding,
            delimiter,
            skipped=int(bool(declaration)),
        )
        if delimiter in ("\t", _ABSENT_SIGN):
            return replace(dialect, quotes=_is_quoted(file.read(), delimiter))
        return _read_spaces(file, dialect)


def _read_spaces(file: TextIO, dialect: _Dialect) -> _Dialect:
    """The form of a file with what spaces before quotation marks are: none of the cells where each
    such mark quotes a cell.
    """
    spaced_mark = re.compile(rf'(?:\A|{re.escape(dialect.delimiter)}) +"')
    if not any(map(spaced_mark.search, file)):
        return dialect
    file.seek(0)
    skipping = replace(dialect, skips_spaces=True)
    reader = _reader(file, skipping)
    end = 0
    try:
        for _ in reader:
            end = reader.line_num
    except csv.Error:
        return replace(dialect, unquoted_line=end + 1)
    return skipping


def _delimiter(lines: Sequence[str]) -> str:
    """The sign of which most lines have as many as the header."""

    def share(sign: str) -> float:
        rows = csv.reader(
            lines,
            delimiter=sign,
            quoting=csv.QUOTE_NONE if sign == "\t" else csv.QUOTE_MINIMAL,
        )
        widths = [len(cells) for cells in rows]
        if not widths or widths[0] < 2:
            return 0.0
        return widths.count(widths[0]) / len(widths)

    best = max(_SIGNS, key=share)  # the first of those that are alike
    return best if share(best) else _ABSENT_SIGN


def _is_quoted(text: str, delimiter: str) -> bool:
    """Return whether marks quote: each cell that begins with one ends with one, doubles those
    inside, and needs them.

    A cell needs marks where it holds a sign, a line break or a mark. One that does not is quoted
    only where all are. A mark that is never closed would run on to that of another row: its lines
    are whole rows without it.
    """
    ends = rf"[{re.escape(delimiter)}\r\n]"
    opening = re.compile(rf'(?:\A|(?<={ends}))"')
    quoted = re.compile(rf'"((?:[^"]|"")*+)"(?={ends}|\Z)')
    header_signs = text.partition("\n")[0].count(delimiter)
    position = 0
    needless = False
    while quote := opening.search(text, position):
        cell = quoted.match(text, quote.start())
        if not cell:
            return False
        position = cell.end()
        start = text.rfind("\n", 0, cell.start()) + 1
        end = text.find("\n", position)
        lines = text[start : end if end >= 0 else len(text)].split("\n")
        if len(lines) > 1 and all(
            line.count(delimiter) == header_signs for line in lines
        ):
            return False
        needless = needless or not re.search(rf'{ends}|"', cell[1])
    if not needless:
        return position > 0
    quoted_cell = rf"(?:\A|(?<={ends})){quoted.pattern}"
    bare_cells = re.split(ends, re.sub(quoted_cell, "", text))
    return all(_NUMBER.fullmatch(cell) for cell in bare_cells)


def csv_table(path: Path, header_advice: str = _HEADER_ADVICE) -> InputTable:
    """A file of cells with a header; an empty cell is none at all, and a column without a name is
    `Unnamed: N`.

    Args:
        path: the file.
        header_advice: what the error for a file without a header says to do.

    Raises:
        VievalError: here and while rows are read: it cannot be read as CSV, or has two columns of
            one name.
    """
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    with readable(path):
        dialect = _dialect_of(path)
        with path.open(encoding=dialect.encoding, newline="") as file:
            names = _header(_reader(islice(file, dialect.skipped, None), dialect))
        if not any(name.strip() for name in names):
            raise VievalError(f"{path}: no header; {header_advice}")
        header = [
            name.strip() or f"Unnamed: {number}" for number, name in enumerate(names)
        ]
        require_once(path, header)
        notes = _joined_lines(path, dialect, len(header)) if dialect.quotes else []
        if dialect.unquoted_line:
            notes.append(
                f"line {dialect.unquoted_line}: a quotation mark after a space is "
                "read as text; remove the space to quote the cell"
            )
    return InputTable(
        str(path),
        tuple(header),
        lambda columns: _rows(path, dialect, header),
        path.parent,
        (path,),
        notes=tuple(notes),
    )


def _reader(lines: Iterable[str], dialect: _Dialect) -> Reader:
    return csv.reader(
        lines,
        delimiter=dialect.delimiter,
        quoting=csv.QUOTE_MINIMAL if dialect.quotes else csv.QUOTE_NONE,
        strict=True,
        skipinitialspace=dialect.skips_spaces,
    )


def _header(reader: Reader) -> list[str]:
    """The first row that is not empty; an empty one without such a row."""
    return next((cells for cells in reader if any(cells)), [])


def _rows(
    path: Path,
    dialect: _Dialect,
    header: Sequence[str],
) -> Iterator[NumberedRow]:
    """The rows under the header; VievalError where a quotation mark opens a cell and does not
    close it.
    """
    with readable(path), path.open(encoding=dialect.encoding, newline="") as file:
        reader = _reader(islice(file, dialect.skipped, None), dialect)
        end = dialect.skipped
        try:
            _header(reader)
            for cells in reader:
                end = reader.line_num + dialect.skipped
                row = {
                    name: cell
                    for name, cell in zip(header, cells, strict=False)
                    if cell.strip()
                }
                if len(cells) != len(header) and row:
                    reason = (
                        f"{plural(len(cells), 'cell')}, "
                        f"but the header has {len(header)}; "
                        "quote cells that contain commas"
                    )
                    yield end, BadLine(reason, row)
                elif row:
                    yield end, row
        except csv.Error as error:
            reason = str(error)
            if "end of data" in reason:
                reason = "a quotation mark is never closed"
            line = max(end, 1 + dialect.skipped) + 1
            raise VievalError(
                f"{path}: line {line}: invalid CSV ({reason}); correct the file"
            ) from None


def _joined_lines(
    path: Path,
    dialect: _Dialect,
    width: int,
) -> list[str]:
    """The line for the user on rows of several lines, each of which would be a row without its
    quotation mark.
    """
    joined = []
    lines: list[str] = []

    def kept(file: Iterable[str]) -> Iterator[str]:
        for line in file:
            lines.append(line)
            yield line

    with path.open(encoding=dialect.encoding, newline="") as file:
        reader = _reader(kept(islice(file, dialect.skipped, None)), dialect)
        with suppress(csv.Error):
            for _ in reader:
                cells = csv.reader(
                    lines,
                    delimiter=dialect.delimiter,
                    quoting=csv.QUOTE_NONE,
                )
                if len(lines) > 1 and all(len(row) == width for row in cells):
                    end = reader.line_num + dialect.skipped
                    joined.append((end - len(lines) + 1, end))
                lines.clear()
    if not joined:
        return []
    start, end = joined[0]
    rows = ""
    if joined[1:]:
        rows = f" ({plural(len(joined), 'such row')})"
    return [
        f"lines {start} to {end} are read as one row, because a quotation mark "
        f"opens a cell in line {start}{rows}"
    ]
