"""Verdicts as a flat table, for spreadsheets and data frames: a row a verdict, in CSV or
parquet.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from vieval_plugin.media.files import require_suffix, write_whole
from vieval_plugin.readers.places import arrow
from vieval_plugin.records import Record
from vieval_plugin.text.escaping import csv_text

JSONL, CSV, PARQUET = ".jsonl", ".csv", ".parquet"
_BEFORE_SCORES = ("uid", "image_model", "kind", "draw", "category")
_BEHIND_SCORES = ("status", "reason", "judge", "model", "setting", "label")
_BATCH = 1000


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
    identity, source, verdict = record.id, record.provenance, record.verdict
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
