"""Read the verdicts of a file: a host's samples file, or the output of `vieval score`."""

from __future__ import annotations

from pathlib import Path

from vieval_plugin.images import format_of
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.readers.arrow_tables import reread_cells
from vieval_plugin.records import Provenance, Record
from vieval_plugin.results import host_samples
from vieval_plugin.results.flat_table import is_flat
from vieval_plugin.results.own_verdicts import is_own, records_of
from vieval_plugin.run.verdict_log import PARTIAL
from vieval_plugin.text.errors import VievalError, system_reason


def rows_of(path: Path, partial: bool = False) -> list[tuple[Record, ...]]:
    """Read the records of a file, grouped by sample, in line order.

    Args:
        path: the file.
        partial: read incomplete runs too.

    Raises:
        VievalError: in one line, for a file that cannot be read, a malformed line, or two lines
            about one sample (or one draw of it) by the same judge: nobody could say which of them
            counts. So does a file of a run that is not complete, unless `partial` is given.
    """
    if path.name.endswith(PARTIAL) and not partial:
        raise VievalError(
            f"{path}: from an incomplete run; "
            "run the same command again to resume, "
            "or pass --partial to read it as it is"
        )
    if is_flat(path):
        raise VievalError(
            f"{path}: this is a flat table for spreadsheets; pass the JSONL file "
            "from vieval score --out"
        )
    try:
        if not is_own(path):
            rows = host_samples.records_of(path)
        else:
            rows = [(record,) for record in records_of(path)]
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, UnicodeDecodeError) and format_of(path.read_bytes()):
            raise VievalError(
                f"{path}: this is an image, not results; "
                "to rank images, put the images of each generator in a folder and "
                "pass --prompts"
            ) from None
        raise VievalError(
            f"{path}: cannot be read ({system_reason(error)}); restore it, or leave it out"
        ) from None
    if not rows:
        raise VievalError(
            f"{path}: contains no verdicts; restore it, or run the judge again"
        )
    first: dict[tuple[SampleId, Provenance], int] = {}
    for number, records in enumerate(rows, start=1):
        if not records:
            raise VievalError(
                f"{path}: line {number} is not a verdict; restore it, or run the judge again"
            )
        record = records[0]
        earlier_line = first.setdefault((record.id, record.provenance), number)
        if earlier_line != number:
            raise VievalError(
                f"{path}: lines {earlier_line} and {number} are both verdicts by "
                f"{record.provenance.judge} on {record.id}; remove one of them"
            )
    return rows


def sample_of(record: Record) -> Judged | None:
    """Return the sample or contest of a record, with its images read; None if it is in
    the data of its benchmark.

    Raises:
        VievalError: it cannot be read, or its file is not what was judged.
    """
    if record.row is not None:
        from vieval_plugin.results.shard_verdicts import input_sample

        return input_sample(record.row)
    if record.sample:
        return reread_cells(record.sample)
    return None
