"""Verdicts as a flat table, for spreadsheets and data frames: a row a verdict, in CSV or
parquet.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

JSONL, CSV, PARQUET = ".jsonl", ".csv", ".parquet"
_BEFORE_SCORES = ("uid", "image_model", "kind", "draw", "category")
_BEHIND_SCORES = ("status", "reason", "judge", "model", "setting", "label")
_BATCH = 1000
#: Columns of rows that are no scores, whatever they hold.
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
    """Return whether a file is to be a flat table, by its name."""
    return path.suffix.lower() in (CSV, PARQUET)


def require_known_format(path: Path) -> None:
    """VievalError for a name that is of no format of verdicts, or of one whose package is
    absent.
    """
    require_suffix(path, (JSONL, CSV, PARQUET))
    if path.suffix.lower() == PARQUET:
        arrow()


def write_flat(path: Path, records: Iterable[Record], aspects: Iterable[str]) -> None:
    """Write a table with the columns uid, image_model, kind, draw, category, a score each aspect,
    status, reason, judge ...

    Args:
        path: a `.csv` or `.parquet`; a score that there is not is an empty cell, or null.
        records: its rows.
        aspects: of the judges; each is a column once.

    Raises:
        VievalError: it cannot be written there.
    """
    scores = list(dict.fromkeys(aspects))
    rows = (_row(record, scores) for record in records)
    if path.suffix.lower() == CSV:
        texts = (["" if cell is None else str(cell) for cell in row] for row in rows)
        header = [*_BEFORE_SCORES, *scores, *_BEHIND_SCORES]
        write_whole(path, (csv_text([row]) for row in chain([header], texts)))
    else:
        write_whole(path, _parquet(rows, scores))


def _row(record: Record, scores: Sequence[str]) -> list[Any]:
    identity = record.id
    source = record.provenance
    verdict = record.verdict
    reason = " ".join((verdict.reason or verdict.rationale).split())
    return [
        *(
            identity.uid,
            identity.image_model,
            record.kind,
            identity.draw,
            record.category,
        ),
        *map(verdict.scores.get, scores),
        *(
            str(verdict.status),
            reason,
            source.judge,
            source.backbone,
            source.setting,
            source.label,
        ),
    ]


def _parquet(rows: Iterator[Sequence[Any]], scores: Sequence[str]) -> Iterator[bytes]:
    """The file, which is written at the end: compressed, even many rows are small."""
    pyarrow = arrow()
    types = {**dict.fromkeys(scores, pyarrow.float64()), "draw": pyarrow.int64()}
    names = [*_BEFORE_SCORES, *scores, *_BEHIND_SCORES]
    schema = pyarrow.schema(
        [(name, types.get(name, pyarrow.string())) for name in names]
    )
    content = io.BytesIO()
    with pyarrow.parquet.ParquetWriter(content, schema) as writer:
        while batch := list(islice(rows, _BATCH)):
            writer.write_table(
                pyarrow.table(list(zip(*batch, strict=True)), schema=schema)
            )
    yield content.getvalue()


def records_of_rows(rows: Sequence[Mapping[str, Any]]) -> list[Record]:
    """The records of rows as data frames have them.

    Args:
        rows: with the columns of `write_flat`, of which `uid` must be there; `generator` may stand
            for `image_model`. Each further column of numbers is a score, of texts a condition such
            as `prompt`. NaN and None are no score: its verdict is `missing`, unless `status` says
            why.

    Raises:
        VievalError: there is no row, no uid, no score, an unknown status, or an infinite score.
    """
    if not rows or "uid" not in rows[0]:
        raise VievalError("a data frame of verdicts must have rows and the column uid")
    if "preference" in rows[0]:
        raise VievalError(
            "a data frame holds scores, not preferences; pass the Verdicts"
        )
    columns = [name for name in rows[0] if name not in _KNOWN]
    scores = [name for name in columns if _holds_numbers(row[name] for row in rows)]
    if not scores:
        raise VievalError("a data frame of verdicts must have a column of scores")
    texts = [name for name in columns if name not in scores]
    return [_record(row, number, scores, texts) for number, row in enumerate(rows)]


def _holds_numbers(values: Iterable[Any]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(value, Real) and not isinstance(value, bool) for value in present
    )


def _record(
    row: Mapping[str, Any], number: int, scores: Sequence[str], texts: Sequence[str]
) -> Record:
    """The record of a row."""
    present = {name: value for name, value in row.items() if not _is_missing(value)}
    values = {name: float(present[name]) for name in scores if name in present}
    if any(map(math.isinf, values.values())):
        raise VievalError(f"row {number} of the data frame: a score must be finite")
    cells = {**_DEFAULTS, **{name: str(value) for name, value in present.items()}}
    judge = cells["judge"]
    generator = cells["generator"] or cells["image_model"]
    source = Provenance(
        judge,
        tuple(filter(None, [cells["setting"]])),
        tuple(scores),
        cells["model"] or judge,
        label=cells["label"],
    )
    kind = cells["kind"]
    draw = int(float(cells["draw"]))
    identity = SampleId(OWN, kind, generator, cells["uid"], draw)
    conditions = {name: cells[name] for name in texts if name in cells}
    sample = Sample(identity, {}, conditions, kind=kind)
    verdict = _verdict(cells, values, number)
    return record_of(sample, verdict, source)


def _verdict(cells: dict[str, str], values: dict[str, float], number: int) -> Verdict:
    status = cells["status"] or (Status.OK if values else Status.MISSING)
    if status not in _STATUSES:
        raise VievalError(f"row {number} of the data frame: unknown status {status!r}")
    verdict = Verdict(values, Status(status))
    if not verdict.status.usable:
        verdict = unjudged(verdict.status, cells["reason"])
    return verdict


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
