"""Read the lines of verdicts that `vieval score` writes, with their judges and image
locations.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter

from vieval_plugin.judges.contests import Contest, Judged, Votes
from vieval_plugin.judges.protocol import Image, Sample, SampleId, TableCell
from vieval_plugin.records import OWN, SCHEMA, Provenance, Record, Totals, record_of
from vieval_plugin.results.documents import (
    MALFORMED,
    plain,
    read_provenance,
    read_target,
    read_verdict,
)
from vieval_plugin.run.verdict_lines import run_file
from vieval_plugin.run.verdict_log import HEADER, partial_file, read_header
from vieval_plugin.text.errors import UPGRADE, VievalError, line_of
from vieval_plugin.text.untrusted import exists, path_of
from vieval_plugin.text.yaml_json import JsonObject, first_row, read_json

_TOTALS = TypeAdapter(Totals)
_VERDICT = (
    "scores",
    "status",
    "rationale",
    "trace",
    "bounds",
    "findings",
    "recorded",
    "choice",
)


def is_own(path: Path) -> bool:
    """Tell by its first line whether `vieval score` wrote a file."""
    names = first_row(path).keys()
    return names >= {"run", "vieval"} or names >= HEADER


def written_file(path: Path) -> Path:
    """The file of `vieval score` at a path: OUT.partial where an incomplete run has not yet
    written OUT.
    """
    partial = partial_file(path)
    return partial if not exists(path) and exists(partial) else path


def records_of(path: Path) -> Iterator[Record]:
    """Yield the records of a file; VievalError with the line if it is malformed or its
    run is not in the accompanying run file.
    """
    with path.open(encoding="utf-8", newline="\n") as file:
        first = file.readline()
        header = read_header(first)
        common, runs = _common_and_runs(path, header)
        verdict_lines = file if header else chain([first], file)
        for number, line in enumerate(verdict_lines, start=2 if header else 1):
            if header and '"usage": {' in line and "usage" in read_json(line):
                continue
            try:
                yield record_of_line(line, path.parent, runs, common)
            except MALFORMED as error:
                raise VievalError(
                    f"{path}: line {number} is not a verdict from vieval score "
                    f"({line_of(error)})"
                ) from None


def missing_note(path: Path, records: Sequence[Record]) -> str:
    """Note on a file that has fewer verdicts on images than its runs wrote; empty if
    none are missing, and for contests, whose number is not recorded.

    Args:
        path: a file of verdicts.
        records: all of its records.
    """
    if any(isinstance(record.sample, Contest) for record in records):
        return ""
    try:
        document = read_json(run_file(path).read_text(encoding="utf-8"))
        written = document["inputs"]["total"] * len(document["runs"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    if len(records) >= written:
        return ""
    return (
        f"{path} contains only {len(records)} of the {written} verdicts from its runs; "
        "the missing ones are not counted"
    )


def _common_and_runs(
    path: Path, header: Mapping[str, Any] | None
) -> tuple[JsonObject, Mapping[str, Provenance]]:
    """Fields that all records of a file share, and the provenances of its verdicts by
    their hash.

    They come from the file's first line, or from the accompanying run file.
    """
    document_file = run_file(path)
    try:
        document: Any = header
        if document is None:
            document = read_json(document_file.read_text(encoding="utf-8"))
        _require_whole_characters(document)
        version = str(document.get("versions", {}).get("vieval", ""))
        totals = document.get("inputs", {}).get("totals")
        if totals is not None:
            totals = _TOTALS.validate_python(totals)
        common = {"version": version, "totals": totals}
        runs = document["runs"].items()
        provenances = {run: read_provenance(r["provenance"]) for run, r in runs}
        return common, provenances
    except FileNotFoundError:
        raise VievalError(
            f"{path}: {document_file.name}, "
            "which records the judges used, is missing from the same folder; "
            "copy it there, or run the judge again"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = line_of(error)
        raise VievalError(
            f"{document_file}: cannot be read ({reason}); restore it, or run the judge again"
        ) from None


def _require_whole_characters(document: JsonObject) -> None:
    """Raise ValueError for half a character, which could be written nowhere."""
    json.dumps(document, ensure_ascii=False).encode()


def record_of_line(
    line: str,
    folder: Path,
    runs: Mapping[str, Provenance],
    common: Mapping[str, Any] = MappingProxyType({}),
) -> Record:
    """Read the record of a line of verdicts.

    Args:
        line: as written by `run/verdict_lines.py`.
        folder: of its file; relative paths start there.
        runs: provenances of verdicts by their hash.
        common: fields that all records of the file share.

    Raises:
        VievalError: its run is unknown, or its verdict is impossible; ValueError, KeyError,
            TypeError or AttributeError if it is malformed.
    """
    row = read_json(line)
    if "\\u" in line:
        _require_whole_characters(row)
    written = row.get("vieval")
    if written != SCHEMA:
        raise VievalError(f"unsupported schema version {written}; {UPGRADE}")
    if row["run"] not in runs:
        raise VievalError(
            f"it belongs to run {str(row['run'])[:40]}, which the accompanying run "
            "file does not describe; restore that file"
        )
    source = runs[row["run"]]
    _require_same_run(source, row)
    kind = str(row["kind"])
    verdict = read_verdict({name: row[name] for name in _VERDICT if name in row})
    identity = _id(OWN, kind, row)
    fields: JsonObject = {}
    if "target" in row:
        identity, fields = read_target(row["target"])
    record = record_of(
        _judged(identity, row, folder),
        verdict,
        source,
    )
    tokens = sum(map(int, row["tokens"])) if "tokens" in row else None
    return plain(
        replace(record, **{"kind": kind, "tokens": tokens, **common, **fields})
    )


def _id(
    benchmark: str,
    part: str,
    row: JsonObject,
) -> SampleId:
    model = str(row["image_model"])
    uid = str(row["uid"])
    return SampleId(
        benchmark,
        part,
        model,
        uid,
        int(row.get("draw", 0)),
    )


def _require_same_run(source: Provenance, row: JsonObject) -> None:
    for name, value in (
        ("judge", source.judge),
        ("model", source.backbone),
        ("setting", source.setting),
    ):
        if row.get(name, value) != value:
            row_value = str(row[name])[:40]
            raise VievalError(
                f"its {name} is {row_value!r}, but its run has {value!r}; restore the file"
            )


def _judged(
    identity: SampleId,
    row: JsonObject,
    folder: Path,
) -> Judged:
    """Build the sample or contest of a line, with its texts and those of its images
    that are files.
    """
    tags = tuple(map(str, row.get("tags", ())))
    kind = str(row["kind"])
    if "candidates" in row:
        benchmark = identity.benchmark
        part = identity.part
        samples = [
            _sample(
                _id(benchmark, part, candidate),
                kind,
                candidate,
                folder,
            )
            for candidate in row["candidates"]
        ]
        return Contest(
            identity,
            tuple(samples),
            Votes(),
            group=str(row["group"]),
            tags=tags,
        )
    return replace(
        _sample(identity, kind, row, folder),
        tags=tags,
        category=str(row.get("category", "")),
        group=str(row.get("group", identity.uid)),
    )


def _sample(
    identity: SampleId,
    kind: str,
    row: JsonObject,
    folder: Path,
) -> Sample:
    images = {
        str(role): _image(image, folder)
        for role, image in row["images"].items()
        if "file" in image
    }
    texts = {str(name): str(text) for name, text in row["texts"].items()}
    return Sample(identity, images, texts, kind=kind)


def _image(document: JsonObject, folder: Path) -> Image:
    """Build an image of a line; an image that was unreadable then never matches the one
    that was judged.
    """
    file = path_of(str(document["file"]), folder)
    sha256 = str(document.get("sha256") or "unknown")
    origin: TableCell | str = str(document.get("address", ""))
    if "column" in document:
        origin = TableCell(
            file,
            int(document["row"]),
            str(document["column"]),
        )
    return Image(file, origin, sha256)
