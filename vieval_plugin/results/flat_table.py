"""Verdicts as a flat table with one row per verdict, for spreadsheets and data frames,
in CSV or parquet.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from numbers import Real
from pathlib import Path
from typing import Any

from vieval_plugin.judges.protocol import Sample, SampleId, Status, Verdict
from vieval_plugin.media.files import require_suffix, write_whole
from vieval_plugin.readers.places import arrow
from vieval_plugin.records import OWN, Provenance, Record, record_of, unjudged
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import csv_text
from vieval_plugin.text.yaml_json import JsonObject

JSONL = ".jsonl"
CSV = ".csv"
PARQUET = ".parquet"
_BEFORE_SCORES = ("uid", "image_model", "kind", "draw", "category")
_BEHIND_SCORES = ("status", "reason", "judge", "model", "setting", "label")
_BATCH = 1000
#: Columns of rows that are never scores.
_KNOWN = {*_BEFORE_SCORES, *_BEHIND_SCORES, "generator", "rationale", "findings"}
_DEFAULTS = {
    **dict.fromkeys(_KNOWN, ""),
    "kind": "tig",
    "draw": "0",
    "judge": "scores",
    "reason": "no score in the data frame",
}
_STATUSES = {str(status) for status in Status}


def is_flat(path: Path) -> bool:
    """Return whether a file name belongs to a flat table."""
    return path.suffix.lower() in (CSV, PARQUET)


def require_known_format(path: Path) -> None:
    """Raise VievalError for a name without a known format of verdicts, or with a format
    whose package is missing.
    """
    require_suffix(path, (JSONL, CSV, PARQUET))
    if path.suffix.lower() == PARQUET:
        arrow()


def write_flat(
    path: Path,
    records: Iterable[Record],
    aspects: Iterable[str],
) -> None:
    """Write a table with the columns uid, image_model, kind, draw, category, one score
    per aspect, status, reason, judge ...

    Args:
        path: a `.csv` or `.parquet`; missing scores are empty cells or null.
        records: its rows.
        aspects: of the judges; each becomes one column.

    Raises:
        VievalError: the file cannot be written.
    """
    scores = list(dict.fromkeys(aspects))
    rows = (_row(record, scores) for record in records)
    if path.suffix.lower() == CSV:
        texts = (["" if cell is None else str(cell) for cell in row] for row in rows)
        table = chain([_header(scores)], texts)
        write_whole(path, (csv_text([row]) for row in table))
    else:
        write_whole(path, _parquet(rows, scores))


def _header(scores: Sequence[str]) -> list[str]:
    return [*_BEFORE_SCORES, *scores, *_BEHIND_SCORES]


def _row(record: Record, scores: Sequence[str]) -> list[Any]:
    identity = record.id
    source = record.provenance
    verdict = record.verdict
    return [
        identity.uid,
        identity.image_model,
        record.kind,
        identity.draw,
        record.category,
        *map(verdict.scores.get, scores),
        str(verdict.status),
        " ".join((verdict.reason or verdict.rationale).split()),
        source.judge,
        source.backbone,
        source.setting,
        source.label,
    ]


def _parquet(rows: Iterator[Sequence[Any]], scores: Sequence[str]) -> Iterator[bytes]:
    """Yield the file at the end: even many rows are small once compressed."""
    pyarrow = arrow()
    types = {
        **dict.fromkeys(scores, pyarrow.float64()),
        "draw": pyarrow.int64(),
    }
    fields = dict.fromkeys(_header(scores), pyarrow.string())
    schema = pyarrow.schema({**fields, **types})
    content = io.BytesIO()
    with pyarrow.parquet.ParquetWriter(content, schema) as writer:
        while batch := list(islice(rows, _BATCH)):
            columns = list(zip(*batch, strict=True))
            writer.write_table(pyarrow.table(columns, schema=schema))
    yield content.getvalue()


def records_of_rows(rows: Sequence[JsonObject]) -> list[Record]:
    """Read records from the rows of a data frame.

    Args:
        rows: with the columns of `write_flat`, of which `uid` is required; `generator` may
            replace `image_model`. Any other column is a score if it holds numbers, and a
            condition such as `prompt` if it holds texts. With NaN or None for a score, the
            verdict is `missing` unless `status` is set.

    Raises:
        VievalError: rows, uids or scores are missing, a status is unknown, or a score is infinite.
    """
    if not rows or "uid" not in rows[0]:
        raise VievalError(
            "a data frame of verdicts must have a column `uid` and at least one row"
        )
    if "preference" in rows[0]:
        raise VievalError(
            "a data frame of verdicts must contain scores, got preferences; pass the "
            "Verdicts instead"
        )
    columns = [name for name in rows[0] if name not in _KNOWN]
    scores = [name for name in columns if _holds_numbers(row[name] for row in rows)]
    if not scores:
        raise VievalError("a data frame of verdicts must have a column of scores")
    texts = [name for name in columns if name not in scores]
    return [_record(row, number, scores, texts) for number, row in enumerate(rows)]


def _holds_numbers(values: Iterable[Any]) -> bool:
    has_numbers = False
    for value in values:
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, Real):
            return False
        has_numbers = True
    return has_numbers


def _record(
    row: JsonObject,
    number: int,
    scores: Sequence[str],
    texts: Sequence[str],
) -> Record:
    present = {
        name: value
        for name, value in row.items()
        if not (value is None or (isinstance(value, float) and math.isnan(value)))
    }
    values = {name: float(present[name]) for name in scores if name in present}
    if any(map(math.isinf, values.values())):
        raise VievalError(f"row {number} of the data frame: scores must be finite")
    cells = {
        **_DEFAULTS,
        **{name: str(value) for name, value in present.items()},
    }
    judge = cells["judge"]
    kind = cells["kind"]
    source = Provenance(
        judge,
        tuple(filter(None, [cells["setting"]])),
        tuple(scores),
        cells["model"] or judge,
        label=cells["label"],
    )
    identity = SampleId(
        OWN,
        kind,
        cells["generator"] or cells["image_model"],
        cells["uid"],
        int(float(cells["draw"])),
    )
    conditions = {name: cells[name] for name in texts if name in cells}
    sample = Sample(identity, {}, conditions, kind=kind)
    return record_of(
        sample,
        _verdict(cells, values, number),
        source,
    )


def _verdict(
    cells: dict[str, str],
    values: dict[str, float],
    number: int,
) -> Verdict:
    status = cells["status"] or (Status.OK if values else Status.MISSING)
    if status not in _STATUSES:
        raise VievalError(f"row {number} of the data frame: unknown status {status!r}")
    verdict = Verdict(values, Status(status))
    usable = verdict.status.usable
    if usable:
        return verdict
    return unjudged(verdict.status, cells["reason"])
