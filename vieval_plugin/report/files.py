"""The files of findings: `numbers.csv` and `pairs.csv` with all numbers, `findings.json` with the answers as well.

Where pyarrow is installed, the two tables are parquet files too.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace

from vieval_plugin.meta_evaluation.comparison import LEVEL
from vieval_plugin.meta_evaluation.findings import Leaderboard, Number, numbers_table, pairs_table
from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.report.answer import Answer
from vieval_plugin.report.rendering import csv_text
from vieval_plugin.stats.options import StatisticsOptions

NUMBERS_CSV, PAIRS_CSV, FINDINGS_JSON = "numbers.csv", "pairs.csv", "findings.json"
FINDING_FILES = (NUMBERS_CSV, PAIRS_CSV, FINDINGS_JSON)


def numbers_of(boards: Iterable[Leaderboard]) -> list[tuple[str, Number]]:
    """The numbers of leaderboards, each with its benchmark; without pairs all lack a rank for one reason."""
    return [
        (board.benchmark, n if n.ranks or n.reason else replace(n, unranked=board.comparison.reason))
        for board in boards
        for n in board.numbers
    ]


def finding_texts(
    numbers: Iterable[tuple[str, Number]],
    boards: Sequence[Leaderboard],
    answers: Sequence[Answer],
    options: StatisticsOptions,
    notes: Sequence[str] = (),
    further: Sequence[Table] = (),
) -> dict[str, str | bytes]:
    """What `FINDING_FILES` hold, and parquet files where pyarrow is installed, by their names.

    Args:
        numbers: all of them, each with its benchmark.
        boards: the leaderboards whose pairs were tested.
        answers: what is said of them.
        options: those of the statistics.
        notes: lines to be read beside them.
        further: tables that `findings.json` has beside the two.
    """
    tables = numbers_table(numbers), pairs_table(boards)
    document = {
        "failures": options.policy,
        "missing_ratings": options.missing_ratings,
        "draws": options.draws,
        "seed": options.seed,
        "level": LEVEL,
        "answers": [asdict(of_board) for of_board in answers],
        "notes": list(notes),
    }
    rows = {table.name: _by_name(table) for table in tables}
    rows_of_further = {table.name: _by_name(table) for table in further}
    return {
        NUMBERS_CSV: csv_text(tables[0]),
        PAIRS_CSV: csv_text(tables[1]),
        FINDINGS_JSON: json.dumps({**document, **rows, **rows_of_further}, indent=1, allow_nan=False),
        **{f"{name}.parquet": body for name, of_table in rows.items() if (body := _parquet(of_table)) is not None},
    }


def _parquet(rows: Sequence[Mapping[str, object]]) -> bytes | None:
    """Rows as a parquet file; None where pyarrow is not installed, or there are no rows whose types it could have."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return None
    if not rows:
        return None
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([dict(row) for row in rows]), buffer)
    return buffer.getvalue()


_TEXT = ("benchmark", "part", "aspect", "statistic", "system", "role", "judge", "breakdown_value", "better", "worse")


def _by_name(table: Table) -> list[dict[str, object]]:
    """The rows of a table as JSON objects; what is undefined is null."""
    return [
        {name: cell if name in _TEXT else _value(cell) for name, cell in zip(table.header, row, strict=True)}
        for row in table.rows
    ]


def _value(cell: str) -> object:
    if cell in ("yes", "no"):
        return cell == "yes"
    try:
        number = float(cell)
    except ValueError:
        return cell or None
    return number if math.isfinite(number) else None
