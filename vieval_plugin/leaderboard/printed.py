"""Compare printed numbers with numbers recomputed from the published logs by the
papers' own protocol, and explain differences.

A reason is computed: a printed row holds another image model's numbers, an average
includes such a row, or rows come from another run than the published one.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import vieval_plugin.results.published
from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.meta_evaluation.findings import ALL
from vieval_plugin.meta_evaluation.image_models import HUMAN
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.records import Run
from vieval_plugin.stats.correlation import paper_mean
from vieval_plugin.stats.options import StatisticsOptions

_STATISTICS = ("spearman", "accuracy_paper")


@dataclass(frozen=True)
class PrintedNumber:
    """A printed number and its recomputed counterpart."""

    #: Name of the judge.
    label: str
    #: Table of the paper.
    table: str
    #: Part, or `all`.
    task: str
    #: Image model; empty in an average.
    image_model: str
    #: The rated aspect.
    aspect: str
    printed: float
    #: Number of decimals that were printed.
    decimals: int = 4
    #: The recomputed number, None without available logs.
    computed: float | None = None
    #: Reason why the two differ by more than a unit of the last digit; empty if they do not.
    reason: str = ""

    def differs(self, computed: float) -> bool:
        """Return whether a number is more than a unit of the last printed digit away.

        >>> number = PrintedNumber("judge", "T1", "all", "", "O", 0.3655)
        >>> number.differs(0.36562), number.differs(0.3668)
        (False, True)
        """
        difference = round(computed, self.decimals) - self.printed
        units = difference * 10**self.decimals
        return math.isnan(computed) or abs(round(units)) > 1

    def digits(self, value: float | None) -> str:
        """Format the printed or the recomputed number with as many decimals as were
        printed; empty for None.
        """
        if value is None:
            return ""
        return f"{value:.{self.decimals}f}"


@cache
def printed_numbers(benchmark: str) -> tuple[PrintedNumber, ...]:
    """Return the printed numbers of a benchmark, with the authors' names of judges."""
    return tuple(
        PrintedNumber(
            row["judge"],
            row["table"],
            row["task"],
            row["image_model"],
            row["aspect"],
            float(row["printed"]),
            decimals=len(row["printed"].partition(".")[2]),
        )
        for row in _published_rows("printed.csv")
        if row["benchmark"] == benchmark
    )


def printed_elsewhere() -> list[dict[str, str]]:
    """Return the printed numbers of judges on benchmarks without a leaderboard, in the
    words of their sources.
    """
    return _published_rows("printed_elsewhere.csv")


def _published_rows(name: str) -> list[dict[str, str]]:
    path = Path(vieval_plugin.results.published.__file__).parent / name
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def compare_printed(
    benchmark: Benchmark,
    runs: Sequence[Run],
    labels: Mapping[str, str],
    options: StatisticsOptions,
) -> tuple[PrintedNumber, ...]:
    """Compare the printed numbers of a benchmark with recomputed ones, with the reason
    if they differ.

    Args:
        benchmark: with its statistics.
        runs: of the published judges with available logs.
        labels: names of judges in tables, by their names in the repository; numbers of other judges
            are not recomputed.
        options: with the seed; the numbers have no interval, and use the authors' records of
            failed answers.
    """
    as_printed = replace(options, policy="as_recorded", draws=2)
    cells = (
        benchmark.report.findings(
            benchmark.name,
            tuple(benchmark.parts),
            runs,
            as_printed,
        ).cells
        if runs
        else {}
    )
    parts = set(benchmark.parts)
    full = {run.label for run in runs if parts <= run.records.keys()}
    numbers = [
        _computed(n, labels.get(n.label, n.label), cells, full)
        for n in printed_numbers(benchmark.name)
    ]
    return tuple(replace(number, reason=_reason(number, numbers)) for number in numbers)


def _computed(
    number: PrintedNumber,
    label: str,
    cells: Mapping[Key, float],
    full: Collection[str],
) -> PrintedNumber:
    """Add the recomputed number and the label; an average over all parts requires the
    logs of all parts.
    """
    keys = (
        Key(number.table, number.task, number.image_model, label, name, number.aspect)
        for name in _STATISTICS
    )
    values = (cells[key] for key in keys if key in cells)
    computed = next(values, None)
    is_whole = number.task != ALL or label in full or (label == HUMAN and bool(full))
    return replace(number, label=label, computed=computed if is_whole else None)


def _reason(number: PrintedNumber, numbers: Sequence[PrintedNumber]) -> str:
    if number.computed is None or not number.differs(number.computed):
        return ""
    column = (number.label, number.aspect)
    alike = [n for n in numbers if (n.label, n.aspect) == column]
    if number.image_model:
        return _reason_of_row(number, alike)
    members = [n for n in alike if _is_part_of(n, number)]
    if members and not number.differs(paper_mean(n.printed for n in members)):
        errors = [
            n for n in members if n.computed is not None and n.differs(n.computed)
        ]
        names = ", ".join(n.image_model or n.task for n in errors)
        if errors:
            return f"It averages printed numbers, some of which are wrong: {names}."
    return _UNKNOWN


_UNKNOWN = "The published answers give a different number, for an unknown reason."


def _reason_of_row(number: PrintedNumber, alike: Sequence[PrintedNumber]) -> str:
    """Explain a number by image model: it belongs to another row, or to other answers
    than the published ones.
    """
    part_numbers = [n for n in alike if n.task == number.task]
    for n in part_numbers:
        is_another = n.image_model not in ("", number.image_model)
        if is_another and n.computed is not None and not number.differs(n.computed):
            return f"It is the value for {n.image_model}, another row of the table."
    average = next((n for n in part_numbers if not n.image_model), None)
    if (
        average
        and average.computed is not None
        and not average.differs(average.computed)
    ):
        return (
            "The published answers reproduce the paper's own average for the task, "
            f"{average.digits(average.printed)}, but not this row, which comes from "
            "different answers."
        )
    return _UNKNOWN


def _is_part_of(number: PrintedNumber, average: PrintedNumber) -> bool:
    """Return whether an average includes a number."""
    if average.task == ALL:
        return number.task != ALL and not number.image_model
    return number.task == average.task and bool(number.image_model)
