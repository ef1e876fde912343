"""Tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def text_table(rows: Iterable[Sequence[str]], numbers: bool = False) -> list[str]:
    """Rows of equal length in columns, a line each; with `numbers` all columns but the first are set to the right.

    >>> text_table([("judge", "n"), ("metric", "48")], numbers=True)
    ['judge    n', 'metric  48']
    """
    cells = [tuple(row) for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))] if cells else []
    lines = []
    for row in cells:
        padded = [
            cell.rjust(width) if numbers and place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return lines
