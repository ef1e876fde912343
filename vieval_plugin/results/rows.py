"""Reads the verdicts of a file, whoever wrote it: a host's samples file, or what `vieval score` wrote."""

from __future__ import annotations

from pathlib import Path

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.records import Provenance, Record
from vieval_plugin.results import host_samples, own


def rows_of(path: Path) -> list[tuple[Record, ...]]:
    """The records of a file, each sample's together, in the order of its lines.

    Raises:
        VievalError: in one line, for a file that cannot be read, a malformed line, or two lines about one sample (or one
            draw of it) by the same judge: nobody could say which of them counts.
    """
    try:
        rows = _records_of_score(path) if own.is_own(path) else host_samples.records_of(path)
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


def _records_of_score(path: Path) -> list[tuple[Record, ...]]:
    return [(record,) for record in own.records_of(path)]
