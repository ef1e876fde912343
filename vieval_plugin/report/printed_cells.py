"""Compares computed cells with a CSV of printed ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path

from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.readers.rows import decimal, read_table
from vieval_plugin.text.errors import VievalError

_COLUMNS = (
    "table",
    "task",
    "image_model",
    "judge",
    "statistic",
    "aspect",
    "printed",
    "reproducible",
    "why_not",
)
_KEY_COLUMNS = _COLUMNS[:6]
_DIGITS = {
    "rho": 2,
    "footrule": 1,
    "accuracy_paper": 2,
}


@dataclass(frozen=True)
class PrintedCell:
    """A printed cell beside the computed one, which is None where the results do not hold it."""

    key: Key
    printed: float
    computed: float | None
    why_not: str

    @property
    def units(self) -> int:
        """Distance of the rounded value in units of the last printed digit (four decimals, but
        see `_DIGITS`).
        """
        digits = _DIGITS.get(self.key.statistic, 4)
        assert self.computed is not None
        distance = 1.0
        if not math.isnan(self.computed):
            distance = round(self.computed, digits) - self.printed
        units = round(distance * 10**digits)
        return int(abs(units))

    def __str__(self) -> str:
        where = " ".join(filter(None, astuple(self.key)))
        printed = f"printed {self.printed:g}"
        return f"{where}: {printed}, computed {self.computed:.4f}"


@dataclass(frozen=True)
class PrintedComparison:
    """Printed cells, sorted by how the computed ones agree with them."""

    exact: list[PrintedCell] = field(default_factory=list)
    within_one: list[PrintedCell] = field(default_factory=list)
    mismatches: list[PrintedCell] = field(default_factory=list)
    explained: list[PrintedCell] = field(default_factory=list)
    missing: list[PrintedCell] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """True where a cell marked reproducible differs, or nothing could be compared at all."""
        if self.mismatches:
            return True
        return not (self.exact or self.within_one or self.explained)

    def kind_of(self, cell: PrintedCell, is_reproducible: bool) -> list[PrintedCell]:
        """The list that a cell belongs to."""
        if cell.computed is None:
            return self.missing
        if not is_reproducible:
            return self.explained
        by_units = (self.exact, self.within_one)
        if cell.units < len(by_units):
            return by_units[cell.units]
        return self.mismatches

    def lines(self) -> list[str]:
        """Lines to print: a count of each kind, then every difference."""
        exact = len(self.exact)
        agreeing = exact + len(self.within_one)
        total = agreeing + len(self.mismatches)
        explained = len(self.explained)
        missing = len(self.missing)
        lines = [
            f"{agreeing} of {total} cells marked reproducible agree "
            "to within one unit of the last printed digit, "
            f"{exact} of them exactly; "
            f"known not to be reproducible: {explained}; "
            f"not in these results: {missing}"
        ]
        lines += [f"DIFFERS   {cell}" for cell in self.mismatches]
        lines += [f"one unit  {cell}" for cell in self.within_one]
        lines += [f"known     {cell}: {cell.why_not}" for cell in self.explained]
        return lines


def compare_with_printed(
    expected: Path, cells: Mapping[Key, float]
) -> PrintedComparison:
    """Sort every row of a CSV of printed cells; VievalError names a malformed file's row and
    column.
    """
    comparison = PrintedComparison()
    advice = f"--expect requires a CSV of printed cells with the columns {', '.join(_COLUMNS)}"
    # of tables that are joined here, such as T10/11, a file may name the one that prints a cell
    joined = {
        f"T{number}": key.table
        for key in cells
        if "/" in key.table
        for number in key.table[1:].split("/")
    }
    for row in read_table(expected, _COLUMNS, advice):
        key = Key(*map(row.cells.__getitem__, _KEY_COLUMNS))
        text = row.cells["printed"]
        printed = decimal(text)
        if not math.isfinite(printed):
            raise VievalError(
                f"{row.where}: printed must be a number, got {text[:40]!r}; correct "
                "the file"
            )
        computed = cells.get(key)
        if computed is None and key.table in joined:
            table = joined[key.table]
            computed = cells.get(replace(key, table=table))
        why_not = row.cells["why_not"]
        cell = PrintedCell(key, printed, computed, why_not)
        is_reproducible = row.cells["reproducible"] == "yes"
        comparison.kind_of(cell, is_reproducible).append(cell)
    return comparison
