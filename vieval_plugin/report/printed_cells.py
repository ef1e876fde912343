"""Compares computed cells with a CSV of printed ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from vieval_plugin.errors import VievalError
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.readers.rows import Row, decimal, read_table

_COLUMNS = ("table", "task", "image_model", "judge", "statistic", "aspect", "printed", "reproducible", "why_not")
_DIGITS = {"rho": 2, "footrule": 1, "accuracy_paper": 2}


@dataclass(frozen=True)
class PrintedCell:
    """A printed cell beside the computed one, which is None where the results do not hold it."""

    key: Key
    printed: float
    computed: float | None
    reproducible: bool
    why_not: str

    @property
    def units(self) -> int:
        """Distance of the rounded value in units of the last printed digit (four decimals, but see `_DIGITS`)."""
        digits = _DIGITS.get(self.key.statistic, 4)
        assert self.computed is not None
        if self.computed != self.computed:
            return int(10**digits)
        return int(abs(round((round(self.computed, digits) - self.printed) * 10**digits)))


@dataclass(frozen=True)
class PrintedComparison:
    """Printed cells, sorted by how the computed ones agree with them."""

    exact: list[PrintedCell]
    within_one: list[PrintedCell]
    mismatches: list[PrintedCell]
    explained: list[PrintedCell]
    missing: list[PrintedCell]

    @property
    def failed(self) -> bool:
        """True where a cell marked reproducible differs, or nothing could be compared at all."""
        return bool(self.mismatches) or not (self.exact or self.within_one or self.explained)

    def lines(self) -> list[str]:
        """Lines to print: a count of each kind, then every difference."""
        agreeing = len(self.exact) + len(self.within_one)
        lines = [
            f"{agreeing} of {agreeing + len(self.mismatches)} cells marked reproducible agree to within one unit of the last "
            f"printed digit, {len(self.exact)} of them exactly; {len(self.explained)} cells known not to be reproducible; "
            f"{len(self.missing)} cells not in these results"
        ]
        lines += [f"DIFFERS   {_line(c)}" for c in self.mismatches]
        lines += [f"one unit  {_line(c)}" for c in self.within_one]
        lines += [f"known     {_line(c)}: {c.why_not}" for c in self.explained]
        return lines


def compare_with_printed(expected: Path, cells: Mapping[Key, float]) -> PrintedComparison:
    """Sort every row of a CSV of printed cells; VievalError names a malformed file's row and column."""
    comparison = PrintedComparison([], [], [], [], [])
    for row in _read(expected, cells):
        if row.computed is None:
            comparison.missing.append(row)
        elif not row.reproducible:
            comparison.explained.append(row)
        elif row.units > 1:
            comparison.mismatches.append(row)
        else:
            (comparison.within_one if row.units else comparison.exact).append(row)
    return comparison


def _read(path: Path, cells: Mapping[Key, float]) -> list[PrintedCell]:
    advice = f"--expect takes a CSV of printed cells, whose columns are {', '.join(_COLUMNS)}"
    # of tables that are joined here, such as T10/11, a file may name the one that prints a cell
    joined = {f"T{number}": key.table for key in cells if "/" in key.table for number in key.table[1:].split("/")}
    return [_printed(row, cells, joined) for row in read_table(path, _COLUMNS, advice)]


def _printed(row: Row, cells: Mapping[Key, float], joined: Mapping[str, str]) -> PrintedCell:
    key = Key(*(row.cells[name] for name in ("table", "task", "image_model", "judge", "statistic", "aspect")))
    printed = decimal(row.cells["printed"])
    if not math.isfinite(printed):
        raise VievalError(f"{row.where}: printed {row.cells['printed'][:40]!r} is not a number; correct the file")
    computed = cells.get(key, cells.get(replace(key, table=joined.get(key.table, key.table))))
    return PrintedCell(key, printed, computed, row.cells["reproducible"] == "yes", row.cells["why_not"])


def _line(c: PrintedCell) -> str:
    k = c.key
    where = " ".join(part for part in (k.table, k.task, k.image_model, k.judge, k.statistic, k.aspect) if part)
    return f"{where}: printed {c.printed:g}, computed {c.computed:.4f}"
