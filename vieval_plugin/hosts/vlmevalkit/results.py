"""Results of a run in the host's folders: short cells in its sheet, and beside it the verdicts in
full.

A sheet's cell is cut at 32,767 characters and rewritten with the whole sheet, so it holds no more
than what tells which verdict is meant. Each rank appends its verdicts to a file as they come; the
evaluation puts those that the sheet means into one, in the form that lmms-eval's samples files
have.
"""

from __future__ import annotations

import glob
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vieval_plugin.judges.protocol import FAILED_CALLS, Verdict
from vieval_plugin.media.files import write_whole
from vieval_plugin.text.errors import VievalError, unwritable
from vieval_plugin.text.yaml_json import JsonObject, read_json

#: Text that the host counts as a failed call, and asks again with --reuse.
FAILED = "Failed to obtain answer via API."


@dataclass(frozen=True)
class KeptVerdict:
    """Stored verdict."""

    #: Row in the dataset.
    index: int
    #: Target as hosts carry it.
    target: str
    #: Response as hosts carry it.
    response: str
    #: Hash of judge, wording and model.
    by: str

    @property
    def digest(self) -> str:
        return short_hash(self.response)


@dataclass(frozen=True)
class SheetCell:
    """Cell of a sheet."""

    #: Hash of what gave the verdict.
    by: str
    #: Digest of the verdict.
    digest: str
    #: True where a call or tool failed.
    failed: bool


@dataclass(frozen=True)
class VerdictFiles:
    """Files of the verdicts on a dataset by a model, beside the host's sheet."""

    #: Folder of the run.
    folder: Path
    #: Name of the model in file names.
    model: str
    #: Name of the dataset in file names.
    dataset: str

    @property
    def samples(self) -> Path:
        """File of all verdicts that the sheet means, in its order."""
        return self.folder / f"{self.model}_{self.dataset}_samples_{self.dataset}.jsonl"

    def part(self, rank: int) -> Path:
        """File of the verdicts of a rank so far."""
        return (
            self.folder / f"{self.model}_{self.dataset}_part{rank}_{self.dataset}.jsonl"
        )

    def parts(self) -> list[Path]:
        start = f"{self.model}_{self.dataset}_part"
        end = f"_{self.dataset}.jsonl"
        return [
            path
            for path in sorted(self.folder.glob(f"{glob.escape(start)}*.jsonl"))
            if path.name.removeprefix(start).removesuffix(end).isdecimal()
        ]

    def rows(self) -> Iterator[KeptVerdict]:
        """Verdicts in this folder, in the parts first."""
        for path in (*self.parts(), self.samples):
            yield from _rows(path)

    def earlier(self) -> Iterator[VerdictFiles]:
        """The same files of other runs, which the host keeps in folders beside this one; the
        newest first.
        """
        for path in sorted(self.folder.parent.iterdir(), reverse=True):
            if path.is_dir() and path != self.folder:
                yield replace(self, folder=path)


def short_hash(text: str) -> str:
    """A short name for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_failed_call(verdict: Verdict) -> bool:
    """Return whether a verdict is missing because a call or a tool failed, which may
    succeed on a retry.
    """
    return verdict.status in FAILED_CALLS


def cell(verdict: Verdict, row: KeptVerdict) -> str:
    """Text of a verdict in the host's sheet, in fewer than 1,000 characters."""
    first_scores = list(verdict.scores.items())[:8]
    document = {
        "vieval": 1,
        "status": str(verdict.status),
        "scores": {aspect: round(value, 6) for aspect, value in first_scores},
        "by": row.by,
        "digest": row.digest,
    }
    failed = f"{FAILED} " if is_failed_call(verdict) else ""
    return failed + json.dumps(document)


def read_cell(text: Any) -> SheetCell | None:
    """The inverse of `cell`; None for an invalid cell."""
    if not isinstance(text, str):
        return None
    try:
        document = read_json(text.removeprefix(FAILED).strip())
        if document["vieval"] != 1:
            return None
        by = str(document["by"])
        digest = str(document["digest"])
        return SheetCell(by, digest, text.startswith(FAILED))
    except (ValueError, KeyError, TypeError):
        return None


def append(path: Path, row: KeptVerdict) -> None:
    """Add a verdict to a rank's file; it is there when this returns. VievalError where it cannot
    be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            # on a line of its own, as a process that was killed may have left half a one
            file.write(f"\n{json.dumps(_document(row))}\n".encode())
    except OSError as error:
        raise unwritable(path, error, "choose another --work-dir") from None


def finish(files: VerdictFiles, cells: Mapping[int, SheetCell]) -> list[KeptVerdict]:
    """The verdicts that a sheet means, in its order, written to one file; what ranks wrote is
    removed.

    Those not in this folder are looked for in the runs beside it. VievalError where one is nowhere.
    """
    keys = {(index, sheet_cell.digest) for index, sheet_cell in cells.items()}
    by_key: dict[tuple[int, str], KeptVerdict] = {}
    for verdict_files in (files, *files.earlier()):
        if len(by_key) < len(keys):
            for row in verdict_files.rows():
                if (key := (row.index, row.digest)) in keys:
                    by_key.setdefault(key, row)
    missing = keys - set(by_key)
    if missing:
        raise VievalError(
            f"{files.samples}: missing {len(missing)} of {len(keys)} verdicts of the sheet "
            f"(first: row {min(missing)[0]}); run again without --reuse in "
            "another --work-dir, which reuses cached replies"
        )
    rows = [by_key[index, sheet_cell.digest] for index, sheet_cell in cells.items()]
    lines = (f"{json.dumps(_document(row))}\n" for row in rows)
    write_whole(files.samples, lines, "--work-dir")
    for path in files.parts():
        path.unlink()
    return rows


def _document(row: KeptVerdict) -> JsonObject:
    return {
        "doc_id": row.index,
        "target": row.target,
        "filtered_resps": [row.response],
        "by": row.by,
    }


def _rows(path: Path) -> Iterable[KeptVerdict]:
    """The verdicts in a file, less a line that a killed process left unfinished."""
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        with suppress(ValueError, KeyError, TypeError, IndexError):
            document = read_json(line)
            yield KeptVerdict(
                int(document["doc_id"]),
                str(document["target"]),
                str(document["filtered_resps"][0]),
                str(document["by"]),
            )
