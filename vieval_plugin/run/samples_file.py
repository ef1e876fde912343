"""A user's own samples from a file, and their verdicts to a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vieval_plugin.errors import VievalError
from vieval_plugin.images import examine
from vieval_plugin.judges.protocol import Sample, SampleId, Status, Verdict
from vieval_plugin.judges.spec import JudgeSpec, missing_inputs
from vieval_plugin.media.files import write_whole
from vieval_plugin.readers.sample_rows import (
    BadLine,
    address_among,
    addresses_among,
    draw_of,
    lines_of_file,
    row_of_line,
    samples_of_row,
)
from vieval_plugin.readers.sample_table import NumberedRow, is_table, kind_of, rows_of_table
from vieval_plugin.records import SCHEMA, Provenance, fingerprint, verdict_document
from vieval_plugin.run.evaluate import OWN
from vieval_plugin.run.prepare import unjudged
from vieval_plugin.run.runner import absent_image
from vieval_plugin.text.untrusted import overlong


@dataclass
class SampleFile:
    """The samples of a file in order, the line of each, and by their number the verdicts on
    those whose line is bad or that were never made, and what was found when they were.

    `addresses` are the images that are addresses, by role, of the samples that are decided because of them; `notes` are
    lines on what was left out.
    """

    samples: list[Sample] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    decided: dict[int, Verdict] = field(default_factory=dict)
    findings: dict[int, tuple[str, ...]] = field(default_factory=dict)
    addresses: dict[int, Mapping[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_samples(path: Path, kind: str | None = None) -> SampleFile:
    """Samples from a JSONL file, one object a line, or a CSV file (see `rows_of_table`).

    `images` maps roles to paths (relative ones start at the file's folder); `texts` has the conditions, a list of
    prompts standing for as many samples (`<uid>#0`, ...); `kind` (or `task`) is one of the seven codes unless given for
    all; `draw` numbers the images that one image model made under the same conditions; `tags` and a `category` are
    free; all of these and `uid` and `image_model` may be left out. A line that is no such object is a sample whose
    verdict is decided, called `line N` where it has no readable uid; so is one that names an image file which is not
    there.

    Raises:
        VievalError: the file cannot be read, holds no samples, or holds two of one uid, image model, draw and kind.
    """
    loaded = SampleFile()
    for number, row in _rows(path):
        inferred = kind_of(row) if is_table(path) and not isinstance(row, BadLine) else None
        add_row(loaded, path.parent, number, row, kind or inferred)
    if not loaded.samples:
        raise VievalError(f"{path}: no samples in it; each line is an object with images, texts and kind")
    _require_distinct(path, loaded)
    return loaded


def require_good(path: Path, loaded: SampleFile, spec: JudgeSpec) -> None:
    """VievalError with the number of the first line that is bad, lacks what the judge needs, or has a broken image."""

    def problem(number: int) -> str:
        sample = loaded.samples[number]
        if number in loaded.decided:
            return loaded.decided[number].trace[0].reason
        if reason := missing_inputs(spec, sample):
            return reason
        try:
            for image in sample.images.values():
                examine(image)
        except VievalError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(thread_name_prefix="look") as pool:
        for number, reason in enumerate(pool.map(problem, range(len(loaded.samples)))):
            if reason:
                pool.shutdown(cancel_futures=True)
                raise VievalError(f"{path}: line {loaded.lines[number]}: {reason}")


def _require_distinct(path: Path, loaded: SampleFile) -> None:
    first: dict[SampleId, int] = {}
    for sample, line in zip(loaded.samples, loaded.lines, strict=True):
        earlier = first.setdefault(sample.id, line)
        if earlier != line:
            of = f" of {sample.id.image_model}" if sample.id.image_model else ""
            kind = f" ({sample.kind})" if sample.kind else ""
            raise VievalError(
                f"{path}: lines {earlier} and {line} are both {sample.id.uid!r}{of}{kind}; give each a uid of its own, or "
                "a draw where they are images of one prompt"
            )


def limited(loaded: SampleFile, most: int | None) -> SampleFile:
    """The first so many samples, and what is known of them; all where there is no limit."""
    if most is None or most >= len(loaded.samples):
        return loaded

    def first(known: Mapping[int, Any]) -> dict[int, Any]:
        return {number: value for number, value in known.items() if number < most}

    return SampleFile(
        loaded.samples[:most],
        loaded.lines[:most],
        first(loaded.decided),
        first(loaded.findings),
        first(loaded.addresses),
        loaded.notes,
    )


def add_row(loaded: SampleFile, folder: Path, number: int, row: Mapping[str, Any] | BadLine, kind: str | None) -> None:
    """Add the samples of a row, whose relative paths start at `folder`; a bad one is a sample whose verdict is decided."""
    try:
        if isinstance(row, BadLine):
            raise row
        for sample, files in samples_of_row(folder, number, row, kind, OWN):
            if verdict := _unshown(files, sample):
                loaded.decided[len(loaded.samples)] = verdict
                loaded.addresses |= {len(loaded.samples): by_role for by_role in (addresses_among(files),) if by_role}
            loaded.samples.append(sample)
            loaded.lines.append(number)
    except BadLine as bad:
        loaded.decided[len(loaded.samples)] = unjudged(Status.PARSE_FAILURE, str(bad))
        loaded.samples.append(_bad_sample(bad.row, number, kind))
        loaded.lines.append(number)


def _rows(path: Path) -> Iterable[NumberedRow]:
    return rows_of_table(path) if is_table(path) else _objects(path)


def _objects(path: Path) -> Iterator[NumberedRow]:
    for number, line in lines_of_file(path):
        try:
            yield number, row_of_line(line)
        except BadLine as bad:
            yield number, bad


def _bad_sample(row: Mapping[str, Any], number: int, kind: str | None) -> Sample:
    """The sample that a bad row stands for, as far as it can be told."""
    named = row.get("uid"), row.get("image_model"), row.get("kind", row.get("task", kind))
    uid, model, code = (name if isinstance(name, str) and not overlong(name) else "" for name in named)
    try:
        draw = draw_of(row)
    except BadLine:
        draw = 0
    return Sample(SampleId(OWN, code, model, uid or f"line {number}", draw), {})


def _unshown(files: Mapping[str, str], sample: Sample) -> Verdict | None:
    """The verdict on a sample with an image that is not there; `files` are its images as the line has them."""
    reason = address_among(files) or absent_image(sample)
    return unjudged(Status.TOOL_ERROR, reason) if reason else None


def write_verdicts(path: Path, samples: Sequence[Sample], verdicts: Sequence[Verdict], source: Provenance) -> None:
    """Write one JSON object a line, in the samples' order: identity, scores, status, rationale, trace, provenance."""
    write_all(path, samples, [(verdicts, source)])


def write_all(path: Path, samples: Sequence[Sample], judged: Sequence[tuple[Sequence[Verdict], Provenance]]) -> None:
    """`write_verdicts` of several judges, one after another in one file."""
    lines = (line for verdicts, source in judged for line in verdict_lines(samples, verdicts, source))
    write_whole(path, (f"{line}\n" for line in lines))


def verdict_lines(samples: Sequence[Sample], verdicts: Sequence[Verdict], source: Provenance) -> Iterator[str]:
    """A verdict a line, as JSON."""
    by = asdict(source)
    for sample, verdict in zip(samples, verdicts, strict=True):
        identity = {"uid": sample.id.uid, "image_model": sample.id.image_model, "kind": sample.kind}
        extras = {"draw": sample.id.draw, "tags": sample.tags, "category": sample.category}
        row = {
            "vieval": SCHEMA,
            **identity,
            **{name: value for name, value in extras.items() if value},
            **verdict_document(verdict),
            "sample": fingerprint(sample),
            "provenance": by,
        }
        yield json.dumps(row, allow_nan=False)
