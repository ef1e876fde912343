"""Tables for a terminal: no wider than its window, and at most 100 columns."""

from __future__ import annotations

import re
import shutil
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from vieval_plugin.text.escaping import MOST_COLUMNS, console

#: Cell of which a column is left out where no row has another.
UNKNOWN = "not known"
_FEWEST_COLUMNS = 20
_LONGEST_CELL = 300
#: Columns that are left to a column of words whose words are narrowest_width.
_NARROWEST = 12
_GAP = "  "
_LONGEST_NUMBER = 40
_NUMBER = r"(?:< )?[-+]?\.?[0-9][0-9.,:/e%-]*(?: \[[^\]]*\])?"
_UNBROKEN = re.compile(rf"{_NUMBER}(?!\S)|\S+")
_IS_NUMBER = re.compile(rf"{_NUMBER}|-|undefined|nan")


def equation(name: str, value: str) -> str:
    """Return the value that a name is equal to, or less than.

    >>> equation("n", "9"), equation("p", "< .001")
    ('n = 9', 'p < .001')
    """
    if value.startswith("< "):
        return f"{name} {value}"
    return f"{name} = {value}"


@dataclass(frozen=True)
class _Column:
    #: Name in the header.
    name: str
    #: Cells below the header.
    cells: tuple[str, ...]
    #: Width at which nothing is wrapped.
    width: int
    #: Width at which no word is cut.
    unbroken_width: int
    #: Least width: no number is cut, and words keep a dozen columns.
    narrowest_width: int
    #: True where cells are set to the right.
    is_numeric: bool
    #: Number of rows, from the first, that decide whether all say the same.
    compared: int

    @property
    def is_uniform(self) -> bool:
        """True where two rows or more are the same, or where all are `UNKNOWN`."""
        compared = {*self.cells[: self.compared]}
        if compared == {UNKNOWN}:
            return True
        is_same = self.compared > 1 and len(compared) == 1
        return is_same and {*self.cells[self.compared :]} <= {"", *compared}

    @property
    def is_empty(self) -> bool:
        """True where all rows are the same and have nothing to show."""
        return self.is_uniform and self.cells[0] in ("", UNKNOWN)


def text_table(
    rows: Iterable[Sequence[str]],
    elsewhere: str = "",
    references: int = 0,
    fixed_columns: Collection[str] = (),
) -> list[str]:
    """Rows of equal length in columns that fit the window; numbers are set to the right and never
    cut.

    A column that is the same in all rows is a line above them, unless one column alone would be
    left. Columns of words are wrapped where there is no room, and where that is not enough the last
    columns are left out, with a line that names them.

    Args:
        rows: the header first.
        elsewhere: where columns that are left out can be read, such as `see report.md`.
        references: number of rows at the end that others stand beside, and that may be empty where
            those are all the same.
        fixed_columns: names of columns that stay in their place whatever is in them.

    >>> text_table([("judge", "n", "aspect"), ("metric", "48", "SC"), ("other", "9", "SC")])
    ['in all rows: aspect = SC', 'judge    n', 'metric  48', 'other    9']
    """
    table = [[_short(console(cell)) for cell in row] for row in rows]
    compared = len(table) - 1 - references
    columns = [_column(*texts, compared=compared) for texts in zip(*table, strict=True)]
    window_width = shutil.get_terminal_size((MOST_COLUMNS, 24)).columns
    room = max(_FEWEST_COLUMNS, min(MOST_COLUMNS, window_width))
    informative = [column for column in columns if not column.is_empty]
    differing = _differing(informative, fixed_columns) or columns[:1]
    shared = [
        equation(column.name, column.cells[0])
        for column in informative
        if column not in differing
    ]
    lines = []
    if shared:
        lines = _wrapped(f"in all rows: {', '.join(shared)}", room)
    fitting = _fitting(differing, room)
    widths = _widths(fitting, room - _gaps_width(fitting))
    column_texts = [(column.name, *column.cells) for column in fitting]
    for row in zip(*column_texts, strict=True):
        lines += _row_lines(row, fitting, widths)
    left_out = differing[len(fitting) :]
    if left_out:
        lines += _wrapped(_omission(left_out, elsewhere, room), room)
    return lines


def _omission(columns: Sequence[_Column], elsewhere: str, room: int) -> str:
    names = ", ".join(column.name for column in columns)
    line = f"omitted to fit {room} columns: {names}"
    if elsewhere:
        line += f"; {elsewhere}"
    return line


def _differing(columns: list[_Column], fixed_columns: Collection[str]) -> list[_Column]:
    """Columns that are not the same in all rows, or all columns where one would be left."""
    differing = [
        column
        for column in columns
        if not column.is_uniform or column.name in fixed_columns
    ]
    if len(differing) < 2:
        return columns
    return differing


def _fitting(columns: list[_Column], room: int) -> list[_Column]:
    """The first columns that fit into the room at their least widths; one at least."""
    fitting = columns
    while len(fitting) > 1:
        least_width = sum(_widths(fitting, 0)) + _gaps_width(fitting)
        if least_width <= room:
            break
        fitting = fitting[:-1]
    return fitting


def _gaps_width(columns: Sequence[_Column]) -> int:
    return len(_GAP) * (len(columns) - 1)


def _column(name: str, *cells: str, compared: int) -> _Column:
    texts = (name, *cells)
    units = [unit for text in texts for unit in _UNBROKEN.findall(text)]
    longest = max(map(_width, units), default=0)
    short_units = [unit for unit in units if len(unit) < _LONGEST_NUMBER]
    numbers = filter(_IS_NUMBER.fullmatch, short_units)
    longest_number = max(map(len, numbers), default=0)
    filled_cells = list(filter(None, cells))
    return _Column(
        name,
        cells,
        width=max(map(_width, texts)),
        unbroken_width=longest,
        narrowest_width=max(longest_number, min(longest, _NARROWEST)),
        is_numeric=bool(filled_cells) and all(map(_IS_NUMBER.fullmatch, filled_cells)),
        compared=compared,
    )


def _widths(columns: Sequence[_Column], room: int) -> list[int]:
    """The widths at which columns fit into the room: the widest give way first, and words are
    narrowest_width last.
    """
    widths = [column.width for column in columns]
    unbroken_widths = [column.unbroken_width for column in columns]
    narrowest_widths = [column.narrowest_width for column in columns]
    for floors in (unbroken_widths, narrowest_widths):
        while sum(widths) > room:
            index = max(
                range(len(widths)),
                key=lambda index: (widths[index] > floors[index], widths[index]),
            )
            if widths[index] <= floors[index]:
                break
            widths[index] -= 1
    return widths


def _row_lines(
    row: Sequence[str],
    columns: Sequence[_Column],
    widths: Sequence[int],
) -> Iterator[str]:
    """The lines of a row, of which the first has the beginning of every cell."""
    wrapped = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
    for number in range(max(map(len, wrapped))):
        texts = [lines[number] if number < len(lines) else "" for lines in wrapped]
        aligned = map(_aligned, texts, columns, widths)
        yield _GAP.join(aligned).rstrip()


def _aligned(text: str, column: _Column, width: int) -> str:
    padding = " " * (width - _width(text))
    if column.is_numeric:
        return padding + text
    return text + padding


def _wrapped(text: str, width: int) -> list[str]:
    """The text in lines of a width, narrowest_width between words where that is possible."""
    if _width(text) <= width:
        return [text]
    lines = [""]
    for unit in _UNBROKEN.findall(text):
        joined = f"{lines[-1]} {unit}".lstrip()
        if _width(joined) <= width:
            lines[-1] = joined
        else:
            lines += _pieces(unit, width)
    return [line for line in lines if line]


def _pieces(unit: str, width: int) -> list[str]:
    """A word in pieces that fit a width."""
    pieces = [""]
    for letter in unit:
        if _width(pieces[-1] + letter) > width:
            pieces.append("")
        pieces[-1] += letter
    return pieces


def _width(text: str) -> int:
    """The number of columns that a terminal takes for a text."""
    if text.isascii():
        return len(text)
    spacing_signs = [sign for sign in text if not unicodedata.combining(sign)]
    widths = map(unicodedata.east_asian_width, spacing_signs)
    return len(spacing_signs) + sum(width in "WF" for width in widths)


def _short(cell: str) -> str:
    is_short = len(cell) <= _LONGEST_CELL
    if is_short:
        return cell
    return f"{cell[: _LONGEST_CELL - 3]}..."
