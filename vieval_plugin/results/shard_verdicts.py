"""Read the verdicts of a folder of shards one shard at a time, in input order, so that
memory use stays constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from vieval_plugin.judges.contests import Judged, Votes
from vieval_plugin.judges.protocol import (
    Choice,
    Sample,
    SampleId,
    Status,
    Step,
    Verdict,
)
from vieval_plugin.readers.places import arrow, place_at
from vieval_plugin.records import OWN, InputRow, Record
from vieval_plugin.results.documents import MALFORMED, plain
from vieval_plugin.run.shards.folder import ShardFolder, open_folder
from vieval_plugin.run.shards.inputs import InputFile, require_same
from vieval_plugin.run.shards.plan import Plan, Shard
from vieval_plugin.run.shards.rows import ShardRow, rows_of_shards
from vieval_plugin.text.errors import VievalError, line_of
from vieval_plugin.text.untrusted import isfile
from vieval_plugin.text.yaml_json import JsonObject

_STEPS = TypeAdapter(tuple[Step, ...])
_MOST_EXAMPLES = 5


@dataclass(frozen=True)
class VerdictFolder:
    """An open folder of shards."""

    folder: ShardFolder
    plan: Plan
    #: File of each finished shard, and its number there.
    entries: Mapping[str, tuple[str, int]]

    @property
    def note(self) -> str:
        """Note on an incomplete run; empty if each row has its verdict."""
        rows = sum(
            shard.rows for shard in self.plan.shards() if shard.name in self.entries
        )
        if rows == self.plan.rows:
            return ""
        return (
            f"{self.folder.name} is from an incomplete run, with verdicts on {rows:,} of "
            f"{self.plan.rows:,} rows"
        )


def open_shards(path: Path, partial: bool = False) -> VerdictFolder:
    """Open a folder of shards for reading.

    Args:
        path: the folder.
        partial: read incomplete runs too.

    Raises:
        VievalError: it is not a folder of shards, holds no verdicts, or belongs to an incomplete
            run without `partial`.
    """
    if isfile(path):
        raise VievalError(
            f"{path}: expected a folder of shards, got a file; judge the data set "
            "with --out FOLDER"
        )
    folder = open_folder(path)
    opened = VerdictFolder(
        folder,
        _plan_of(folder),
        folder.entries(),
    )
    note = opened.note
    if note and not partial:
        raise VievalError(
            f"{note}; run the same command again to resume, or pass --partial to "
            "read it as it is"
        )
    if not opened.entries:
        raise VievalError(f"{folder.name}: contains no verdicts; run the judge again")
    return opened


def _plan_of(folder: ShardFolder) -> Plan:
    plan = folder.plan()
    if plan is None:
        raise VievalError(
            f"{folder.name}: not a folder of shards; pass the folder that vieval "
            "score wrote (its --out)"
        )
    return plan


def verdict_tables(
    opened: VerdictFolder,
    columns: Sequence[str] | None = None,
    files: Iterable[InputFile] | None = None,
) -> Iterator[tuple[Shard, Any]]:
    """Yield the table of each finished shard in input order, for all input files or
    some.

    Raises:
        VievalError: a file cannot be read.
    """
    read = opened.folder.reader()
    for shard in opened.plan.shards(files):
        if shard.name in opened.entries:
            file, number = opened.entries[shard.name]
            table = read(file, number, columns)
            opened.folder.require_own(file, table)
            yield shard, table


def score_columns(table: Any, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The column of each score in a table of verdicts; no file holds a struct without fields."""
    columns = table["scores"].combine_chunks().flatten() if names else []
    return zip(names, columns, strict=True)


def verdict_batches(
    folder: Path | str,
    columns: Sequence[str] | None = None,
    *,
    partial: bool = False,
) -> Iterator[Any]:
    """Yield the verdicts of a folder of shards as Arrow record batches of at most one
    shard, in input order.

    Args:
        folder: the `--out` folder of `vieval score`.
        columns: to read, such as `["file", "row", "status", "scores"]` (default: all).
        partial: read incomplete runs too.

    Raises:
        VievalError: the folder cannot be read, or belongs to an incomplete run without
            `partial`.
    """
    for _, table in verdict_tables(open_shards(Path(folder), partial), columns):
        yield from table.to_batches()


def record_of_row(row: JsonObject, opened: VerdictFolder) -> Record:
    """Build the record of a verdict from a table row; VievalError if it cannot be read."""
    plan = opened.plan
    bounds = row.get("bounds") or {}
    try:
        choice = _choice(row["choice"])
        verdict = Verdict(
            scores=_numbers(row.get("scores")),
            status=Status(row["status"]),
            rationale=row["rationale"],
            trace=_trace(row, plan.schema.trace),
            bounds={name: (ends[0], ends[1]) for name, ends in bounds.items() if ends},
            findings=tuple(row["findings"]),
            choice=choice,
        )
        record = Record(
            SampleId(
                OWN,
                row["kind"],
                row["image_model"],
                row["uid"],
                row["draw"],
            ),
            verdict,
            plan.provenance,
            {},
            kind=row["kind"],
            group=row["uid"],
            category=row["category"],
            votes=Votes() if choice else None,
            tokens=sum(row["tokens"].values()),
            row=InputRow(
                folder=opened.folder.location,
                file=row["file"],
                row=row["row"],
                prompt=row["prompt"],
                digest=(row["digest"] or b"").hex(),
                traced=plan.schema.trace,
                group=row["group"],
            ),
        )
    except MALFORMED as error:
        raise VievalError(
            f"{opened.folder.name}: the verdict on {row.get('file')}:{row.get('row')} "
            "cannot be read "
            f"({line_of(error)})"
        ) from None
    return plain(record)


def _numbers(scores: Mapping[str, float | None] | None) -> dict[str, float]:
    named_scores = (scores or {}).items()
    return {name: score for name, score in named_scores if score is not None}


def _choice(choice: JsonObject | None) -> Choice | None:
    if choice is None:
        return None
    votes = {vote["order"]: vote["vote"] for vote in choice["votes"]}
    preferences = {
        preference["order"]: preference["preference"]
        for preference in choice["preferences"]
    }
    scores = choice.get("scores") or ()
    return Choice(
        votes,
        preferences,
        tuple(map(_numbers, scores)),
    )


def _trace(verdict: JsonObject, is_kept: bool) -> tuple[Step, ...]:
    """Steps of a verdict; without a stored trace, only the steps with scores and the
    reason of a failure.
    """
    if is_kept:
        return _STEPS.validate_json(verdict["trace"])
    steps = [
        Step(
            tuple(row["question"].split("/")),
            Status.OK,
            tuple(row["scores"]),
        )
        for row in verdict["sub_scores"]
    ]
    reason = verdict["reason"]
    if reason:
        steps.append(
            Step(
                ("verdict",),
                Status(verdict["status"]),
                reason=reason,
            )
        )
    return tuple(steps)


def record_named(opened: VerdictFolder, name: str) -> Record:
    """Find the verdict of a name: FILE:ROW with rows counted from 0, a uid, or an id
    that ends in the name.

    Raises:
        VievalError: no verdict matches, or several do.
    """
    from pyarrow import compute

    file, _, number = name.rpartition(":")
    column = "uid"
    slashes = name.count("/")
    values: list[Any] = [name.split("/", n)[-1] for n in range(slashes + 1)]
    files = None
    if file in opened.plan.by_path and number.isdecimal():
        column = "row"
        values = [int(number)]
        files = [opened.plan.by_path[file]]
    records: list[Record] = []
    wanted = arrow().array(values)
    for shard, table in verdict_tables(opened, [column], files):
        indexes = compute.indices_nonzero(compute.is_in(table[column], wanted))
        if len(indexes):
            whole_table = opened.folder.reader()(*opened.entries[shard.name], None)
            rows = whole_table.take(indexes).to_pylist()
            records += [record_of_row(row, opened) for row in rows]
        if len(records) > _MOST_EXAMPLES:
            break
    if column == "uid":
        records = [
            record
            for record in records
            if record.id.uid == name or f"/{record.id}".endswith(f"/{name}")
        ]
    return _only_match(records, opened.folder.name, name)


def _only_match(
    records: Sequence[Record],
    folder: str,
    name: str,
) -> Record:
    """Return the one verdict of a name; VievalError if there is none, or several are."""
    if not records:
        raise VievalError(
            f"{folder}: no verdict matches {name!r}; "
            "pass a uid, or FILE:ROW with rows counted from 0"
        )
    if len(records) > 1:
        examples = []
        for record in records[:_MOST_EXAMPLES]:
            if record.row:
                place = f"{record.row.file}:{record.row.row}"
                examples.append(f"{record.id.uid} at {place}")
        raise VievalError(
            f"{folder}: {name!r} matches several verdicts; "
            f"choose one, such as {', '.join(examples)}"
        )
    return records[0]


def input_sample(row: InputRow) -> Judged:
    """Return the sample or contest of a row, with its images read; VievalError if it
    cannot be read or its file has changed.
    """
    return _input_rows(row.folder).sample(row)


class _InputRows:
    """Inputs of a folder of shards; consecutive rows are read in one pass."""

    def __init__(self, folder: str) -> None:
        self._folder = open_folder(folder)
        self._plan = _plan_of(self._folder)
        self._root = place_at(self._plan.root)
        self._rows: Iterator[ShardRow] = iter(())
        self._last = ("", -1, -1, -1)

    def sample(self, input_row: InputRow) -> Judged:
        file = self._plan.by_path[input_row.file]
        group, end = _group_of(file, input_row.row)
        key = (input_row.file, group, input_row.row, input_row.prompt)
        if key[:2] != self._last[:2] or key <= self._last:
            require_same(file, self._root)
            shard = Shard(
                "",
                input_row.file,
                group,
                input_row.row,
                end - input_row.row,
            )
            self._rows = rows_of_shards(
                self._plan,
                self._root,
                self._folder.indexes,
                [shard],
            )
        self._last = key
        for row in self._rows:
            if (row.number, row.prompt) == (input_row.row, input_row.prompt):
                return _add_digest(row.row.sample, input_row.digest)
        raise VievalError(
            f"{input_row.file}: row {input_row.row} is missing; restore the file"
        )


_input_rows = cache(_InputRows)


def _group_of(file: InputFile, row: int) -> tuple[int, int]:
    """Return the row group of a row, and the number of the first row after it."""
    end = 0
    for group, rows in enumerate(file.groups):
        end += rows
        if row < end:
            return group, end
    raise VievalError(f"{file.path}: row {row} is missing; restore the file")


def _add_digest(judged: Judged, digest: str) -> Judged:
    if not isinstance(judged, Sample) or not digest or "output" not in judged.images:
        return judged
    output = replace(judged.images["output"], sha256=digest)
    return replace(judged, images={**judged.images, "output": output})
