"""Verdicts as a flat table, for spreadsheets and data frames: a row a verdict, in CSV or parquet."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from vieval_plugin.media.files import require_suffix, unfinished_file, write_whole
from vieval_plugin.records import Record
from vieval_plugin.text.errors import VievalError, install_advice
from vieval_plugin.text.escaping import csv_text

JSONL, CSV, PARQUET = ".jsonl", ".csv", ".parquet"
_TEXTS = ("uid", "image_model", "kind", "category", "status", "reason", "judge", "model", "setting", "label")
_BATCH = 1000


def is_flat(path: Path) -> bool:
    """Return whether a file is to be a flat table, by its name."""
    return path.suffix.lower() in (CSV, PARQUET)


def require_known_format(path: Path) -> None:
    """VievalError for a name that is of no format of verdicts, or of one whose package is absent."""
    require_suffix(path, (JSONL, CSV, PARQUET))
    if path.suffix.lower() == PARQUET:
        _pyarrow()


def write_flat(path: Path, records: Iterable[Record], aspects: Iterable[str]) -> None:
    """Write a table with the columns uid, image_model, kind, draw, category, a score each aspect, status, reason, judge ...

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
        header = [*_columns(scores)]
        cells = ([_cell(row[name]) for name in header] for row in rows)
        write_whole(path, (csv_text([line]) for line in chain([header], cells)))
    else:
        _write_parquet(path, rows, scores)


def _columns(scores: Sequence[str]) -> Iterator[str]:
    yield from ("uid", "image_model", "kind", "draw", "category", *scores)
    yield from ("status", "reason", "judge", "model", "setting", "label")


def _row(record: Record, scores: Sequence[str]) -> Mapping[str, Any]:
    identity, source = record.id, record.provenance
    return {
        "uid": identity.uid,
        "image_model": identity.image_model,
        "kind": record.kind,
        "draw": identity.draw,
        "category": record.category,
        **{aspect: record.verdict.scores.get(aspect) for aspect in scores},
        "status": str(record.verdict.status),
        "reason": " ".join((record.verdict.reason or record.verdict.rationale).split()),
        "judge": source.judge,
        "model": source.backbone,
        "setting": source.setting,
        "label": source.label,
    }


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise VievalError(f"a parquet file needs pyarrow; {install_advice('tables')}") from None
    return pyarrow


def _write_parquet(path: Path, rows: Iterator[Mapping[str, Any]], scores: Sequence[str]) -> None:
    pyarrow = _pyarrow()
    types = {**dict.fromkeys(_TEXTS, pyarrow.string()), "draw": pyarrow.int64()}
    schema = pyarrow.schema([(name, types.get(name, pyarrow.float64())) for name in _columns(scores)])
    unfinished = unfinished_file(path)
    try:
        with pyarrow.parquet.ParquetWriter(unfinished, schema) as writer:
            while batch := list(islice(rows, _BATCH)):
                writer.write_table(pyarrow.Table.from_pylist(batch, schema=schema))
        os.replace(unfinished, path)
    except OSError as error:
        raise VievalError(f"{path}: cannot be written ({error}); make room or choose another --out") from None
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
