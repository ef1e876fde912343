"""The files of findings: `numbers.csv` and `pairs.csv` with all numbers, `findings.json` with the
answers as well.

Where pyarrow is installed, the two tables are parquet files too.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TypeAlias

from vieval_plugin.meta_evaluation.comparison import LEVEL
from vieval_plugin.meta_evaluation.corrected_ranking import CorrectedRanking
from vieval_plugin.meta_evaluation.findings import (
    ALL,
    Number,
    numbers_table,
    pairs_table,
)
from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.report.rendering import csv_text
from vieval_plugin.report.sections import Report, Section
from vieval_plugin.report.tables import TOTALS
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

NUMBERS_CSV, PAIRS_CSV, FINDINGS_JSON = "numbers.csv", "pairs.csv", "findings.json"
FINDING_FILES = (NUMBERS_CSV, PAIRS_CSV, FINDINGS_JSON)


def finding_texts(report: Report, options: StatisticsOptions) -> dict[str, str | bytes]:
    """What `FINDING_FILES` hold, and parquet files where pyarrow is installed, by their names.

    `report` and `compare` write the same rows of the same results; of a benchmark `rank` writes
    those of generators.
    """
    boards = [
        board
        for section in report.sections
        for board in (
            *section.boards,
            *(c.ranking for c in section.corrected),
            *(r.board for r in section.contests),
        )
    ]
    numbers = [
        (section.benchmark.name, number)
        for section in report.sections
        for number in _numbers(section)
    ]
    tables = numbers_table(numbers), pairs_table(boards)
    document = {
        "failures": options.policy,
        "missing_ratings": options.missing_ratings,
        "draws": options.draws,
        "seed": options.seed,
        "level": LEVEL,
        "answers": [asdict(board_answer) for board_answer in report.answers],
        "notes": list(report.notes),
    }
    rows = {table.name: json_rows(table) for table in tables}
    rows_of_totals = {
        table.name: json_rows(table) for table in report.further if table.name in TOTALS
    }
    return {
        NUMBERS_CSV: csv_text(tables[0]),
        PAIRS_CSV: csv_text(tables[1]),
        FINDINGS_JSON: json.dumps(
            {**document, **rows, **rows_of_totals}, indent=1, allow_nan=False
        ),
        **{
            f"{name}.parquet": body
            for name, table_rows in rows.items()
            if (body := _parquet(table_rows)) is not None
        },
    }


def _numbers(section: Section) -> Iterator[Number]:
    """All numbers of a section: those of its leaderboards in order, with ranks or the reason why
    there is none; then others.
    """
    ranked = {
        id(number.estimate): number
        if number.ranks or number.reason
        else replace(number, unranked=board.comparison.reason)
        for board in section.boards
        for number in board.numbers
    }
    yield from ranked.values()
    yield from (
        number
        for number in section.findings.numbers
        if id(number.estimate) not in ranked
    )
    there = {
        id(number.estimate) for number in section.findings.numbers
    }  # a ceiling may be, under another name
    references = (number for board in section.boards for number in board.references)
    yield from dict.fromkeys(
        number for number in references if id(number.estimate) not in there
    )
    for member in section.corrected:
        yield from _corrected_numbers(member)
    for ranking in section.contests:
        yield from ranking.board.numbers


def _corrected_numbers(corrected: CorrectedRanking) -> Iterator[Number]:
    """Corrected means, and what they are made of: people's labels alone and the weight of the
    judge.
    """
    board = corrected.ranking
    yield from board.numbers
    for e in corrected.estimates:
        components = {
            "mean of people's labels": replace(e.human.mean, n=e.rated),
            "weight of the judge": Estimate(e.corrected.weight),
        }
        for name, estimate in components.items():
            yield Number(
                e.generator, estimate, ALL, board.aspect, name, "generator", board.judge
            )


def _parquet(rows: Sequence[Row]) -> bytes | None:
    """Rows as a parquet file; None where pyarrow is not installed, or there are no rows whose
    types it could have.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return None
    if not rows:
        return None
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist([dict(row) for row in rows]), buffer
    )
    return buffer.getvalue()


#: A row of `numbers.csv` or `pairs.csv`, or an effect of an audit, as JSON has it: what is
#: undefined is null.
Row: TypeAlias = Mapping[str, str | int | float | bool | None]


def estimate_in(row: Row) -> Estimate:
    """The number of a row, or its difference where it has one.

    >>> estimate_in({"value": 0.5, "low": None, "high": None, "n": 3.0})
    Estimate(value=0.5, low=nan, high=nan, n=3, reasons=('',), zeros=())
    """
    value = row["difference"] if "difference" in row else row["value"]
    value, low, high = (
        math.nan if end is None else float(end)
        for end in (value, row["low"], row["high"])
    )
    return Estimate(
        value, low, high, n=int(row["n"] or 0), reasons=(str(row.get("reason") or ""),)
    )


_TEXT = (
    "benchmark",
    "part",
    "aspect",
    "statistic",
    "system",
    "role",
    "judge",
    "breakdown_value",
    "better",
    "worse",
)


def json_rows(table: Table) -> list[Row]:
    """The rows of a table as JSON objects; what is undefined is null."""
    return [
        {
            name: cell if name in _TEXT else _value(cell)
            for name, cell in zip(table.header, row, strict=True)
        }
        for row in table.rows
    ]


def _value(cell: str) -> str | float | bool | None:
    if cell in ("yes", "no"):
        return cell == "yes"
    try:
        number = float(cell)
    except ValueError:
        return cell or None
    return number if math.isfinite(number) else None
