"""Streams of samples: rows read one at a time, and as often as they are needed, whatever they are read from."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.contests import Judged, candidates_of
from vieval_plugin.judges.protocol import Sample, SampleId, Status, Verdict
from vieval_plugin.readers.absent_images import absence
from vieval_plugin.readers.columns import fields_of
from vieval_plugin.readers.contest_columns import contest_of_row, has_candidates
from vieval_plugin.readers.sample_rows import address_among, addresses_among, draw_of, kind_of, samples_of_row
from vieval_plugin.readers.table_rows import open_table, rows_of
from vieval_plugin.readers.tables import BadLine
from vieval_plugin.records import OWN, unjudged
from vieval_plugin.text.untrusted import overlong


@dataclass(frozen=True)
class SampleRow:
    """A sample or contest of a stream, and where it stands, such as `line 3`.

    `verdict` is there where nobody is to be asked: the row is bad, or its image is lacking. `findings` are what was
    noted when the image was made, `addresses` its images that are addresses and no files, by role.
    """

    sample: Judged
    place: str
    verdict: Verdict | None = None
    findings: tuple[str, ...] = ()
    addresses: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SampleSource:
    """Samples that can be read again and again, a row at a time; iterating begins anew.

    `name` is what messages call it. `fingerprint` is another where the inputs are others: a run that was interrupted
    goes on only where it is the same. `notes` are lines for the user on what was left out or guessed; `total` is the
    number of rows, None where it is not known; `addresses` says that some images are addresses. `no_text` is a line on
    what to do where samples have no text at all.
    """

    name: str
    read: Callable[[], Iterator[SampleRow]]
    fingerprint: str
    notes: tuple[str, ...] = ()
    total: int | None = None
    addresses: bool = False
    no_text: str = ""

    def __iter__(self) -> Iterator[SampleRow]:
        return self.read()


def read_samples(
    named: str | Path, kind: str | None = None, columns: Mapping[str, str] | None = None, prefix: str = ""
) -> SampleSource:
    """Samples from any table: see `open_table`.

    A row maps columns to values, which `fields_of` reads; one of a JSONL file may have them in `images`, which maps
    roles to paths, and `texts`, which has the conditions. A list of prompts stands for as many samples (`<uid>#0`,
    ...); `kind` (or `task`) is one of the seven codes unless given for all; `draw` numbers the images that one image
    model made under the same conditions; `tags` and a `category` are free; a row without a uid is called by the file of
    its output, else by its number. A row that is bad is a sample whose verdict is decided, called `line N` where it has
    no readable uid; so is one that names an image file which is not there.

    Args:
        named: a file, a folder, or a data set of the hub.
        kind: that of rows which name none (default: what their images and texts tell).
        columns: what columns are, by `parse_columns`.
        prefix: begins the uid of a row that is called by its number, which counts from 0 then.

    Raises:
        VievalError: the table cannot be read, holds no samples or none that can be read, or two of one uid, image
            model, draw and kind.
    """
    table = open_table(named)
    fields = fields_of(table, columns or {})

    def rows() -> Iterator[SampleRow]:
        for number, row in rows_of(table, fields, uids=True):
            if prefix and not isinstance(row, BadLine):
                row = {"uid": f"{prefix}{number - 1}", **row}
            inferred = kind or (None if isinstance(row, BadLine) else kind_of(row))
            yield from samples_in_row(table.folder, number, row, inferred, table.unit)

    fingerprint = fingerprint_of(table.files, kind or "", *(f"{key}={name}" for key, name in fields.columns.items()))
    return checked(SampleSource(table.name, rows, fingerprint, fields.notes, no_text=fields.no_text))


def checked(source: SampleSource) -> SampleSource:
    """The same source with its total known, once it is read and no sample was there twice.

    Its fingerprint is another from then on where one of its image files is another, or has changed.

    Raises:
        VievalError: it holds no samples, none that can be read, or two of one uid, image model, draw and kind.
    """
    hashes: set[int] = set()  # a number a sample, as the ids of millions would fill the memory
    hashed = hashlib.sha256(source.fingerprint.encode())
    total, unreadable, first, addresses = 0, 0, None, False
    for total, row in enumerate(source, start=1):
        identity, first = row.sample.id, first or row
        addresses = addresses or bool(row.addresses)
        unreadable += row.verdict is not None and row.verdict.status is Status.PARSE_FAILURE
        if hash(identity) in hashes:
            _require_first(source, total, identity)
        hashes.add(hash(identity))
        hashed.update(image_stamps(row.sample).encode(errors="replace"))
    if first is None:
        raise VievalError(f"{source.name}: no samples in it; each row has an image and what it was made of")
    if unreadable == total > 1 and first.verdict:
        raise VievalError(f"{source.name}: none of its {total} rows can be read; {first.place}: {first.verdict.reason}")
    return replace(source, total=total, addresses=addresses, fingerprint=hashed.hexdigest()[:16])


def image_stamps(judged: Judged) -> str:
    """The image files of a sample or a contest, each with its size and when it was changed, as one text."""
    stamps = [str(judged.id)]
    for sample in candidates_of(judged):
        for role, image in sample.images.items():
            if isinstance(image.source, Path):
                with contextlib.suppress(OSError, ValueError):  # one that is not there is its row's status
                    state = image.source.stat()
                    stamps.append(f"{role} {image.source.absolute()} {state.st_size} {state.st_mtime_ns}")
    return "\0".join(stamps)


def _require_first(source: SampleSource, number: int, identity: SampleId) -> None:
    """VievalError where the n-th sample of a source is called as one before it is."""
    first, last = None, None
    for last in islice(source, number):
        first = last if first is None and last.sample.id == identity else first
    if first is None or last is None or first.place == last.place:
        return
    of = f" of {identity.image_model}" if identity.image_model else ""
    kind = f" ({identity.part})" if identity.part else ""
    generator = "" if of else ", or name the column of the generator by --columns image_model=COLUMN"
    raise VievalError(
        f"{source.name}: {first.place} and {last.place} are both {identity.uid!r}{of}{kind}; give each a uid of its own, "
        f"or a draw where they are images of one prompt{generator}"
    )


def chained(sources: Sequence[SampleSource]) -> SampleSource:
    """Several sources as one; VievalError as `checked`."""
    if len(sources) == 1:
        return sources[0]

    def rows() -> Iterator[SampleRow]:
        for source in sources:
            yield from (replace(row, place=f"{source.name}: {row.place}") for row in source)

    name, notes = ", ".join(source.name for source in sources), chain.from_iterable(source.notes for source in sources)
    fingerprint = fingerprint_of([], *(source.fingerprint for source in sources))
    no_text = next((source.no_text for source in sources if source.no_text), "")
    return checked(SampleSource(name, rows, fingerprint, tuple(notes), no_text=no_text))


def limited(source: SampleSource, most: int | None) -> SampleSource:
    """The first so many rows of a source; all where there is no limit."""
    if most is None:
        return source
    total = None if source.total is None else min(source.total, most)
    return replace(
        source,
        read=lambda: islice(source, most),
        total=total,
        fingerprint=fingerprint_of([], source.fingerprint, str(most)),
    )


def fingerprint_of(files: Iterable[Path], *words: str) -> str:
    """A short name for the content of some files and for words beside them; VievalError for a file that cannot be read."""
    hashed = hashlib.sha256("\0".join(words).encode(errors="replace"))
    for path in files:
        try:
            with path.open("rb") as file:
                hashed.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise VievalError(f"{path}: the samples cannot be read ({error.strerror})") from None
    return hashed.hexdigest()[:16]


def samples_in_row(
    folder: Path, number: int, row: Mapping[str, Any] | BadLine, kind: str | None, unit: str = "line"
) -> Iterator[SampleRow]:
    """The samples of a row, whose relative paths start at `folder`; a bad one is a sample whose verdict is decided.

    Args:
        folder: where relative paths of images begin.
        number: the row's, which is the uid of one that has none.
        row: as a line of a samples file has it, or what is wrong with it.
        kind: that of rows which name none.
        unit: what a row is called: `line`, `row`, ...
    """
    place = f"{unit} {number}"
    try:
        if isinstance(row, BadLine):
            raise row
        if has_candidates(row):
            contest = contest_of_row(folder, number, row, kind, OWN)
            yield SampleRow(contest, place, absence(contest))
            return
        for sample, files in samples_of_row(folder, number, row, kind, OWN):
            addresses = addresses_among(files)
            images = {
                role: replace(image, origin=addresses.get(role, image.origin)) for role, image in sample.images.items()
            }
            reason = address_among(files)
            verdict = unjudged(Status.TOOL_ERROR, reason) if reason else absence(sample)
            yield SampleRow(replace(sample, images=images), place, verdict, addresses=addresses)
    except BadLine as bad:
        yield SampleRow(_sample_of_bad_row(bad.row, place, kind), place, unjudged(Status.PARSE_FAILURE, str(bad)))


def _sample_of_bad_row(row: Mapping[str, Any], place: str, kind: str | None) -> Sample:
    """The sample that a bad row stands for, as far as it can be told."""
    named = row.get("uid"), row.get("image_model"), row.get("kind", row.get("task", kind))
    uid, model, code = (name if isinstance(name, str) and not overlong(name) else "" for name in named)
    try:
        draw = draw_of(row)
    except BadLine:
        draw = 0
    return Sample(SampleId(OWN, code, model, uid or place, draw), {})
