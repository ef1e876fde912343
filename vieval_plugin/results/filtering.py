"""Filter a data set by a condition on its verdicts, and write the matching rows with
their scores, file by file.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from vieval_plugin.media.files import unfinished_file
from vieval_plugin.readers.arrow_tables import batches_of, parquet_file, reading_table
from vieval_plugin.readers.places import Place, arrow, place_at
from vieval_plugin.readers.webdataset import ADDED, copy_samples
from vieval_plugin.records import Provenance
from vieval_plugin.results.shard_verdicts import (
    VerdictFolder,
    open_shards,
    score_columns,
    verdict_tables,
)
from vieval_plugin.run.calibration import Calibration
from vieval_plugin.run.shards.inputs import (
    InputFile,
    hidden_images,
    require_same,
    tar_members,
)
from vieval_plugin.text.errors import VievalError, install_advice, unwritable
from vieval_plugin.text.suggestions import abbreviated, did_you_mean
from vieval_plugin.text.untrusted import exists
from vieval_plugin.text.wording import plural

#: Column with the uid that a row was judged under.
UID = "verdict_uid"
_KEY = ("row", "prompt")
_MOST_BYTES, _MOST_ROWS = 64 << 20, 4096  # of a row group that is written
_NO_COLUMN = re.compile(r'Referenced (?:column|table) "(.+?)" not found')
#: A query in a condition, in DuckDB's JSON of its syntax, where quotes in texts are escaped.
_QUERY = re.compile('"class":"SUBQUERY"|"error_type":"not implemented"')
#: Options of DuckDB for conditions, which may be untrusted.
_LIMITS: Mapping[str, Any] = {
    "threads": 1,
    "memory_limit": "4GB",
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


@dataclass(frozen=True)
class FilteredRows:
    """Counts of a filtered data set."""

    verdicts: int
    #: Verdicts that match.
    passed: int
    #: Files written.
    files: int
    #: Notes on a calibrated score, and on an incomplete run.
    notes: tuple[str, ...] = ()


def filter_shards(
    path: Path,
    where: str,
    out: Path,
    prefix: str = "",
    partial: bool = False,
    calibration: Calibration | None = None,
) -> FilteredRows:
    """Write the rows of a data set whose verdicts match a condition; an interrupted run
    writes no rows.

    A parquet file becomes a parquet file with the same columns, followed by the scores,
    `status`, `verdict_uid` and, with a calibrated score, `calibration`, the hash of its
    file. A tar becomes a tar whose samples have an additional member `KEY.vieval.json`
    with the same fields. A row with several prompts is written once for each matching
    prompt.

    Args:
        path: a folder of shards.
        where: an SQL condition on the columns of verdicts and on scores by name.
        out: the output folder, which must not exist or must be empty.
        prefix: of the names of added columns, and of `vieval.json`.
        partial: filter incomplete runs too.
        calibration: of the judge; adds its score as a column.

    Raises:
        VievalError: the condition is invalid, an input has changed since it was judged, `out`
            cannot be written, or no row matches.
    """
    opened = open_shards(path, partial)
    if exists(out) and (not out.is_dir() or any(out.iterdir())):
        raise VievalError(f"{out}: already exists; choose another --out")
    _passing(
        opened,
        opened.plan.schema.arrow().empty_table(),
        where,
        calibration,
    )
    unfinished = unfinished_file(out)
    verdicts = passed = files = 0
    kinds = Counter[str]()
    columns = _columns(opened, where)
    try:
        for file in opened.plan.files:
            tables = [table for _, table in verdict_tables(opened, columns, [file])]
            if not tables:
                continue
            read = arrow().concat_tables(tables)
            passing = _passing(opened, read, where, calibration)
            if calibration:
                kinds.update(read["kind"].to_pylist())
            verdicts += read.num_rows
            passed += passing.num_rows
            if passing.num_rows:
                names = [
                    name if name in _KEY else f"{prefix}{name}"
                    for name in passing.column_names
                ]
                _write(
                    opened,
                    file,
                    passing.rename_columns(names),
                    unfinished,
                    prefix,
                )
                files += 1
        if not passed:
            raise VievalError(
                f"--where {where!r}: matches none of the {verdicts:,} verdicts, so no "
                "file was written; change the condition"
            )
        os.replace(unfinished, out)
    except OSError as error:
        raise unwritable(out, error, "choose another --out") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    source = opened.plan.provenance
    lines: list[str] = []
    if calibration:
        lines = _calibration_lines(calibration, source, kinds)
        source = replace(source, calibration=calibration.described)
    hidden = hidden_images(opened.plan.files, opened.plan.columns.values())
    notes = filter(None, (source.calibration_note, *lines, opened.note, *hidden))
    return FilteredRows(verdicts, passed, files, tuple(notes))


def _calibration_lines(
    calibration: Calibration,
    source: Provenance,
    kinds: Mapping[str, int],
) -> list[str]:
    """Return lines on the scores that a calibration replaces, and on rows without one."""
    lines = [calibration.replaced(source)]
    for kind, count in kinds.items():
        if kind in calibration.refused:
            lines.append(
                f"no {calibration.name} for {plural(count, 'row')} of task type {kind}, "
                "because ratings of that type do not show that calibration helps"
            )
    return lines


def _columns(opened: VerdictFolder, where: str) -> list[str]:
    """Columns of verdicts to read: those to write, and those in the condition."""
    identifiers = {name.lower() for name in re.findall(r"\w+", where)}
    names = {*_KEY, "uid", "status", "kind", "scores", *identifiers}
    if not opened.plan.schema.scores:
        names.remove("scores")
    return [name for name in opened.plan.schema.arrow().names if name in names]


def _duckdb() -> Any:
    """Import DuckDB; VievalError where it is not installed."""
    try:
        import duckdb
    except ImportError:
        raise VievalError(
            f"vieval filter requires DuckDB; {install_advice('filter')}"
        ) from None
    return duckdb


def _passing(
    opened: VerdictFolder,
    table: Any,
    where: str,
    calibration: Calibration | None,
) -> Any:
    """Return the matching verdicts in order, with their rows, their prompts and the
    columns to write.
    """
    duckdb = _duckdb()
    scores = opened.plan.schema.scores
    for name, column in score_columns(table, scores):
        table = table.append_column(name, column)
    if calibration:
        calibration.require(opened.plan.provenance)
        other_scores = (name for name in scores if name != calibration.name)
        scores = (*other_scores, calibration.name)
        table = _add_calibrated(table, calibration)
    with duckdb.connect(config=dict(_LIMITS)) as connection:
        try:
            _require_no_query(connection, where)
            passing = connection.from_arrow(table).filter(where).to_arrow_table()
        except duckdb.Error as error:
            names = [*scores, *opened.plan.schema.arrow().names]
            problem = _problem(str(error), names)
            raise VievalError(f"--where {where!r}: {problem}") from None
        except RuntimeError:  # how DuckDB reports Ctrl-C
            raise KeyboardInterrupt from None
    names = [*_KEY, *scores, "status"]
    added = passing.sort_by([(name, "ascending") for name in _KEY])
    added = added.select([*names, "uid"])
    added = added.rename_columns([*names, UID])
    described = opened.plan.provenance.calibration
    if calibration:
        described = calibration.described
    if described:
        hashes = arrow().repeat(described.hash, added.num_rows)
        added = added.append_column("calibration", hashes)
    return added


def _require_no_query(connection: Any, where: str) -> None:
    """Refuse a condition that contains a query. Only queries can call functions that
    read files, report settings or print logs.
    """
    [[syntax]] = connection.execute(
        "SELECT json_serialize_sql('SELECT ' || $1::VARCHAR)", [where]
    ).fetchall()
    if _QUERY.search(syntax):
        raise VievalError(
            f"--where {where!r}: a condition must compare columns and values, got a query; "
            "leave out SELECT and FROM"
        )


def _add_calibrated(table: Any, calibration: Calibration) -> Any:
    """Add the calibrated score to verdicts, replacing an existing one; VievalError for
    a task type without labels.
    """
    scores = table[calibration.aspect].to_numpy()
    kinds = table["kind"].to_numpy()
    calibration.require_kinds(kinds.tolist())
    calibrated = np.full(len(scores), np.nan)
    for kind, knots in calibration.knots.items():
        kind_scores = scores[kinds == kind]
        calibrated[kinds == kind] = np.interp(kind_scores, *knots)
    kept_names = [name for name in table.column_names if name != calibration.name]
    uncalibrated = table.select(kept_names)
    return uncalibrated.append_column(
        calibration.name, arrow().array(calibrated, from_pandas=True)
    )


def _problem(error: str, columns: Sequence[str]) -> str:
    """Turn DuckDB's message about a condition into a sentence; `columns` are the known
    columns.
    """
    missing = _NO_COLUMN.search(error)
    if missing:
        hint = did_you_mean(missing[1], columns, 0.6) or ";"
        known_names = abbreviated(columns)
        return (
            f"unknown column {missing[1]!r}{hint} known columns: {known_names}; "
            "columns of the data set are not supported, "
            "and strings require single quotes"
        )
    first_line = error.splitlines()[0]
    reason = first_line.partition(" Error: ")[2][:200]
    return (
        f"invalid condition ({reason}); use one such as \"SC > .7 and status = 'ok'\""
    )


def _write(
    opened: VerdictFolder,
    file: InputFile,
    passing: Any,
    out: Path,
    prefix: str,
) -> None:
    """Write the matching rows of a file; `passing` has their numbers and the columns to
    add.
    """
    root = place_at(opened.plan.root)
    require_same(file, root)
    target = out / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    if not file.is_tar:
        _write_parquet(
            root.below(file.path),
            target,
            file,
            passing,
        )
        return
    verdicts: dict[int, list[Any]] = {}
    for row in passing.to_pylist():
        fields = {name: row[name] for name in row if name not in _KEY}
        verdicts.setdefault(row["row"], []).append(fields)
    members = {}
    for number, row_verdicts in verdicts.items():
        document = row_verdicts if row_verdicts[1:] else row_verdicts[0]
        members[number] = json.dumps(document).encode()
    archive = Path(opened.plan.root) / file.path
    index = tar_members(
        file,
        root,
        opened.folder.indexes,
    )
    copy_samples(
        archive,
        target,
        index,
        members,
        f"{prefix}{ADDED}",
    )


def _write_parquet(
    source: Place,
    target: Path,
    file: InputFile,
    passing: Any,
) -> None:
    pyarrow = arrow()
    with reading_table(source):
        schema = parquet_file(source).schema_arrow
    added = passing.drop_columns(list(_KEY))
    schema = _extended_schema(schema, added.schema, source)
    numbers = passing["row"].to_numpy()
    group: list[Any] = []
    written = 0
    with pyarrow.parquet.ParquetWriter(target, schema, compression="zstd") as writer:
        for start, batch in _batches(source, file, numbers):
            first, last = np.searchsorted(numbers, [start, start + batch.num_rows])
            if first < last:
                offsets = numbers[first:last] - start
                rows = pyarrow.Table.from_batches([batch.take(pyarrow.array(offsets))])
                for name in added.column_names:
                    added_column = added[name].slice(first, last - first)
                    rows = rows.append_column(name, added_column)
                group.append(rows)
                written += rows.num_rows
            if _is_full(group):
                writer.write_table(pyarrow.concat_tables(group).cast(schema))
                group.clear()
        if group:
            writer.write_table(pyarrow.concat_tables(group).cast(schema))
    if written != len(numbers):
        raise VievalError(
            f"{source}: rows with verdicts are missing; list them with `vieval "
            "shards --verify`"
        )


def _extended_schema(
    schema: Any,
    added: Any,
    source: Place,
) -> Any:
    """Append the fields of new columns to a schema."""
    for field in added:
        if field.name in schema.names:
            raise VievalError(
                f"{source}: already has a column {field.name!r}; "
                "set a prefix for the new columns with --prefix"
            )
        schema = schema.append(field)
    return schema


def _is_full(tables: Sequence[Any]) -> bool:
    """Return whether tables are enough for a row group."""
    size: int = sum(table.nbytes for table in tables)
    rows: int = sum(table.num_rows for table in tables)
    return size > _MOST_BYTES or rows > _MOST_ROWS


def _batches(
    source: Place,
    file: InputFile,
    numbers: Any,
) -> Iterator[tuple[int, Any]]:
    """Yield batches of the row groups that contain rows of these numbers, each with the
    number of its first row.
    """
    with reading_table(source):
        opened = parquet_file(source)
        start = 0
        for group, rows in enumerate(file.groups):
            first, last = np.searchsorted(numbers, [start, start + rows])
            row = start
            start += rows
            if first == last:
                continue
            names = opened.schema_arrow.names
            for batch in batches_of(source, opened, names, [group]):
                yield row, batch
                row += batch.num_rows
