"""Streams of samples, read one row at a time and repeatable."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from vieval_plugin.judges.contests import Contest, Judged, candidates_of
from vieval_plugin.judges.protocol import Sample, SampleId, Status, Verdict
from vieval_plugin.readers.absent_images import absence
from vieval_plugin.readers.columns import fields_of, leftover_notes, rows_of
from vieval_plugin.readers.open_table import open_table
from vieval_plugin.readers.sample_rows import (
    Files,
    address_among,
    addresses_among,
    draw_of,
    samples_of_row,
)
from vieval_plugin.readers.tables import BadLine, Cells, Columns, NumberedRow, readable
from vieval_plugin.records import OWN, Totals, unjudged
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import overlong


@dataclass(frozen=True)
class SampleRow:
    """A sample or contest of a stream, and where it stands."""

    #: The sample or contest.
    sample: Judged
    #: Name of its row, such as `line 3`.
    place: str
    #: Verdict where nobody is to be asked: the row is bad, or its image is lacking.
    verdict: Verdict | None = None
    #: Findings on its image from when that was made.
    findings: tuple[str, ...] = ()
    #: Images, by role, that are addresses and no files.
    addresses: Files = field(default_factory=dict)


@dataclass(frozen=True)
class SampleSource:
    """Repeatable stream of samples; each iteration starts from the first row."""

    #: Its name in messages.
    name: str
    #: Function that reads the rows.
    read: Callable[[], Iterator[SampleRow]]
    #: Digest of the inputs: a run that was interrupted goes on only where it is the same.
    fingerprint: str
    #: Lines for the user on what was left out or guessed.
    notes: tuple[str, ...] = ()
    #: Number of rows, where that is known.
    total: int | None = None
    #: True where some images are addresses.
    addresses: bool = False
    #: Advice where samples have no text at all.
    no_text: str = ""
    #: Totals of the benchmark whose layout the images have; None for other samples.
    totals: Totals | None = None

    def __iter__(self) -> Iterator[SampleRow]:
        return self.read()


def read_samples(
    location: str | Path,
    kind: str | None = None,
    columns: Columns | None = None,
    prefix: str = "",
) -> SampleSource:
    """Samples from any table: see `open_table`.

    A row maps columns to values, which `fields_of` reads:

    - In a JSONL file, `images` may map roles to paths, and `texts` may have the conditions.
    - A list of prompts stands for as many samples (`<uid>#0`, ...).
    - `kind` (or `task`) is one of the seven codes, unless it is given for all.
    - `draw` numbers the images that one image model made under the same conditions.
    - `tags` and a `category` are free.
    - A row without a uid is called by the file of its output, else by its number.
    - A bad row, or one whose image file is missing, is a sample with a decided verdict; it is called
      `line N` where it has no readable uid.

    Args:
        location: a file, a folder, or a data set of the hub.
        kind: that of rows which name none (default: what their images and texts tell).
        columns: what columns are, by `parse_columns`.
        prefix: begins the uid of a row that is called by its number, which counts from 0 then.

    Raises:
        VievalError: the table cannot be read, holds no samples or none that can be read, or two of
            one uid, image model, draw and kind.
    """
    table = open_table(location)
    fields = fields_of(table, columns or {})

    def read() -> Iterator[SampleRow]:
        rows = rows_of(table, fields, file_uids=True, prefix=prefix)
        return samples_in_rows(rows, table.folder, kind, table.unit)

    names = (f"{key}={name}" for key, name in fields.columns.items())
    fingerprint = fingerprint_of(
        table.files,
        kind or "",
        *names,
    )
    notes = (*fields.notes, *leftover_notes(table.name, fields.leftover))
    return read_through(
        SampleSource(
            table.name,
            read,
            fingerprint,
            notes,
            no_text=fields.no_text,
        )
    )


def read_through(source: SampleSource) -> SampleSource:
    """The source after one full pass: its total is known, and no identity occurs twice.

    Its fingerprint covers its image files, so it differs once one of them has changed.

    Raises:
        VievalError: it holds no samples, none that can be read, or two of one uid, image model,
            draw and kind.
    """
    # hashes, not ids: the ids of millions of samples would not fit in memory
    hashes: set[int] = set()
    hashed = hashlib.sha256(source.fingerprint.encode())
    total = 0
    unreadable = 0
    first = None
    addresses = False
    for total, row in enumerate(source, start=1):
        identity = row.sample.id
        first = first or row
        addresses = addresses or bool(row.addresses)
        unreadable += (
            row.verdict is not None and row.verdict.status is Status.PARSE_FAILURE
        )
        if hash(identity) in hashes:
            _require_first(source, total, identity)
        hashes.add(hash(identity))
        hashed.update(image_stamps(row.sample).encode(errors="replace"))
    if first is None:
        raise VievalError(
            f"{source.name}: contains no samples; each row must have an image and "
            "its prompt or instruction"
        )
    if unreadable == total > 1 and first.verdict:
        raise VievalError(
            f"{source.name}: none of its {total} rows can be read; {first.place}: "
            f"{first.verdict.reason}"
        )
    return replace(
        source,
        total=total,
        addresses=addresses,
        fingerprint=hashed.hexdigest()[:16],
    )


def image_stamps(judged: Judged) -> str:
    """The image files of a sample or a contest, each with its size and when it was changed, as
    one text.
    """
    stamps = [str(judged.id)]
    for sample in candidates_of(judged):
        for role, image in sample.images.items():
            path = image.source
            if isinstance(path, Path):
                # one that is not there is its row's status
                with contextlib.suppress(OSError, ValueError):
                    state = path.stat()
                    stamps.append(
                        f"{role} {path.absolute()} {state.st_size} {state.st_mtime_ns}"
                    )
    return "\0".join(stamps)


def _require_first(
    source: SampleSource,
    number: int,
    identity: SampleId,
) -> None:
    """Raise VievalError if the n-th sample of a source is called as one before it is."""
    row_places = dict.fromkeys(
        row.place for row in islice(source, number) if row.sample.id == identity
    )
    if len(row_places) < 2:
        return
    first, *_, last = row_places
    generator = f" of {identity.image_model}"
    advice = ""
    if not identity.image_model:
        generator = ""
        advice = ", or use --columns image_model=COLUMN for the column of the generator"
    kind = f" ({identity.part})" if identity.part else ""
    raise VievalError(
        f"{source.name}: {first} and {last} both have uid "
        f"{identity.uid!r}{generator}{kind}; "
        "use a different uid for each, "
        f"or a draw for images of the same prompt{advice}"
    )


def chained(sources: Sequence[SampleSource]) -> SampleSource:
    """Several sources as one; VievalError as `read_through`."""
    if len(sources) == 1:
        return sources[0]

    def rows() -> Iterator[SampleRow]:
        for source in sources:
            for row in source:
                yield replace(row, place=f"{source.name}: {row.place}")

    name = ", ".join(source.name for source in sources)
    fingerprint = fingerprint_of([], *(source.fingerprint for source in sources))
    notes = tuple(note for source in sources for note in source.notes)
    no_text = next(filter(None, (source.no_text for source in sources)), "")
    totals = sources[0].totals
    return read_through(
        SampleSource(
            name,
            rows,
            fingerprint,
            notes,
            no_text=no_text,
            totals=totals,
        )
    )


def limited(source: SampleSource, limit: int | None) -> SampleSource:
    """The first so many rows of a source; all where there is no limit."""
    if limit is None:
        return source
    total = None if source.total is None else min(source.total, limit)
    fingerprint = fingerprint_of([], source.fingerprint, str(limit))
    return replace(
        source,
        read=lambda: islice(source, limit),
        total=total,
        fingerprint=fingerprint,
    )


def fingerprint_of(files: Iterable[Path], *texts: str) -> str:
    """A short name for the content of some files and for texts beside them; VievalError for a
    file that cannot be read.
    """
    hashed = hashlib.sha256("\0".join(texts).encode(errors="replace"))
    for path in files:
        with readable(path), path.open("rb") as file:
            hashed.update(hashlib.file_digest(file, "sha256").digest())
    return hashed.hexdigest()[:16]


def samples_in_rows(
    rows: Iterable[NumberedRow],
    folder: Path,
    kind: str | None,
    unit: str = "line",
) -> Iterator[SampleRow]:
    """The samples of rows; a bad row is a sample whose verdict is decided.

    Args:
        rows: as lines of a samples file have them, or what is wrong with them; the number of a row
            is the uid of one that has none.
        folder: where relative paths of images begin.
        kind: that of rows which name none (default: what their images and texts tell).
        unit: what a row is called: `line`, `row`, ...
    """
    for number, row in rows:
        row_name = f"{unit} {number}"
        try:
            if isinstance(row, BadLine):
                raise row
            images = row.get("images")
            if isinstance(images, Mapping) and isinstance(images.get("output"), list):
                contest = _contest_of_row(folder, number, row, kind)
                yield SampleRow(contest, row_name, absence(contest))
                continue
            row_samples = samples_of_row(
                folder,
                number,
                row,
                kind,
                OWN,
            )
            for sample, files in row_samples:
                yield _sample_row(sample, files, row_name)
        except BadLine as bad:
            cells = row.row if isinstance(row, BadLine) else row
            sample = _sample_of_bad_row(cells, row_name, kind)
            verdict = unjudged(Status.PARSE_FAILURE, str(bad))
            yield SampleRow(sample, row_name, verdict)


def _sample_row(
    sample: Sample,
    files: Files,
    row_name: str,
) -> SampleRow:
    """A sample of a stream, its verdict decided where an image is lacking or is an address."""
    addresses = addresses_among(files)
    images = {
        role: replace(image, origin=addresses.get(role, image.origin))
        for role, image in sample.images.items()
    }
    reason = address_among(files)
    verdict = unjudged(Status.TOOL_ERROR, reason) if reason else absence(sample)
    return SampleRow(
        replace(sample, images=images),
        row_name,
        verdict,
        addresses=addresses,
    )


def _contest_of_row(
    folder: Path,
    number: int,
    row: Cells,
    kind: str | None,
) -> Contest:
    """The contest of a row whose outputs are in a list, as are their image models, or they are
    numbered.
    """
    outputs = row["images"]["output"]
    models = row.get("image_model", "")
    if isinstance(models, list) and len(models) != len(outputs):
        raise BadLine(
            "outputs and image models must have the same length, got "
            f"{len(outputs)} and {len(models)}"
        )
    candidates = []
    for index, output in enumerate(outputs):
        candidate = {
            **row,
            "images": {**row["images"], "output": output},
        }
        if isinstance(models, list):
            candidate["image_model"] = models[index]
        else:
            candidate["draw"] = index
        row_samples = samples_of_row(
            folder,
            number,
            candidate,
            kind,
            OWN,
        )
        for sample, files in row_samples:
            if addresses_among(files):
                raise BadLine(
                    "images of a contest are not downloaded; save them as bytes "
                    "or files"
                )
            candidates.append(sample)
    if len(candidates) < 2:
        raise BadLine(f"a contest must have at least 2 outputs, got {len(candidates)}")
    first = candidates[0].id
    return Contest(
        SampleId(OWN, first.part, "", first.uid),
        tuple(candidates),
        tags=candidates[0].tags,
    )


def _sample_of_bad_row(
    row: Cells,
    row_name: str,
    kind: str | None,
) -> Sample:
    """The sample that a bad row stands for, as far as it can be told."""
    row_kind = row.get("kind", row.get("task", kind))
    names = (row.get("uid"), row.get("image_model"), row_kind)
    uid, model, code = (
        name if isinstance(name, str) and not overlong(name) else "" for name in names
    )
    draw = 0
    with contextlib.suppress(BadLine):
        draw = draw_of(row.get("draw", 0))
    return Sample(
        SampleId(
            OWN,
            code,
            model,
            uid or row_name,
            draw,
        ),
        {},
    )
