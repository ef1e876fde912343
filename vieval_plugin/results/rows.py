"""Reads the verdicts of a file, whoever wrote it: a host's samples file, or what `vieval score` wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.contests import Votes
from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.records import OWN, SCHEMA, Provenance, Record, lines_of
from vieval_plugin.results import host_samples
from vieval_plugin.results.documents import plain, read_provenance, read_verdict
from vieval_plugin.text.yaml_json import read_json

_VERDICT = ("scores", "status", "rationale", "trace", "bounds", "findings", "recorded", "choice")


def rows_of(path: Path) -> list[tuple[Record, ...]]:
    """The records of a file, each sample's together, in the order of its lines.

    Raises:
        VievalError: in one line, for a file that cannot be read, a malformed line, or two lines about one sample (or one
            draw of it) by the same judge: nobody could say which of them counts.
    """
    try:
        rows: list[tuple[Record, ...]] = (
            [(record,) for record in records_of(path)] if is_own(path) else host_samples.records_of(path)
        )
    except (OSError, UnicodeDecodeError) as error:
        raise VievalError(f"{path}: cannot be read ({error}); restore it, or leave it out") from None
    if not rows:
        raise VievalError(f"{path}: no verdicts in it; restore it, or judge again")
    first: dict[tuple[SampleId, Provenance], int] = {}
    for number, records in enumerate(rows, start=1):
        if not records:
            raise VievalError(f"{path}: line {number} holds no verdict; restore it, or judge again")
        record = records[0]
        earlier_line = first.setdefault((record.id, record.provenance), number)
        if earlier_line != number:
            raise VievalError(
                f"{path}: lines {earlier_line} and {number} are both verdicts of {record.provenance.judge} on {record.id}; remove one of them"
            )
    return rows


def is_own(path: Path) -> bool:
    """Tell by its first line whether a file was written by `vieval score`."""
    with path.open(encoding="utf-8") as file:
        try:
            row = read_json(file.readline())
        except ValueError:
            return False
    return isinstance(row, dict) and "provenance" in row and "resps" not in row


def records_of(path: Path) -> Iterator[Record]:
    """The records of a file; VievalError names a malformed line."""
    for number, line in enumerate(lines_of(path.read_text(encoding="utf-8")), start=1):
        try:
            row = read_json(line)
            if "\\u" in line:
                json.dumps(row, ensure_ascii=False).encode()  # half a character could be written nowhere
            if (written := row.get("vieval")) != SCHEMA:
                raise VievalError(f"schema {written} is of another version; upgrade: pip install --upgrade vieval")
            kind, uid = str(row["kind"]), str(row["uid"])
            verdict = read_verdict({name: row[name] for name in _VERDICT if name in row})
            identity = SampleId(OWN, kind, str(row["image_model"]), uid, int(row.get("draw", 0)))
            yield plain(
                Record(
                    identity,
                    verdict,
                    read_provenance(row["provenance"]),
                    {},
                    tuple(map(str, row.get("tags", ()))),
                    fingerprint=str(row.get("sample", "")),
                    kind=kind,
                    group=str(row.get("group", uid)),
                    votes=Votes() if "candidates" in row else None,
                    candidates=tuple(
                        SampleId(OWN, kind, str(model), str(name), int(draw))
                        for model, name, draw in row.get("candidates", ())
                    ),
                    category=str(row.get("category", "")),
                )
            )
        except (ValueError, KeyError, TypeError, AttributeError, VievalError) as error:
            reason = " ".join(str(error).split())[:200]
            raise VievalError(f"{path}: line {number} is no verdict of vieval score ({reason})") from None
