"""Submissions in the form in which the leaderboard keeps them: a small JSON file each, with scores and without replies."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from vieval_plugin.card.card import Card, CardEntry
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Choice, Status, Verdict
from vieval_plugin.media.files import write_whole
from vieval_plugin.records import Provenance, Record, Run, rated_record
from vieval_plugin.results.runs import results_of
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.yaml_json import read_json

VERSION = 1
FOLDER = "submissions"


@dataclass(frozen=True)
class ScoredVerdict:
    """A verdict without what was replied: its status, and its scores or its choice."""

    status: Status
    scores: Mapping[str, float]
    choice: Choice | None = None


@dataclass(frozen=True)
class SubmittedRun:
    """A judge's verdicts on a benchmark, by the id of the sample or contest; `files` has the SHA-256 of what was checked."""

    benchmark: str
    judge: str
    settings: tuple[str, ...]
    aspects: tuple[str, ...]
    pack: str
    pack_hash: str
    files: Mapping[str, str]
    verdicts: Mapping[str, ScoredVerdict]


@dataclass(frozen=True)
class Submission:
    """The part of a card that the leaderboard keeps."""

    submission: int
    model: str
    date: str
    runs: tuple[SubmittedRun, ...]


_SUBMISSION = TypeAdapter(Submission)


def submission_of(card: Card, records: Sequence[tuple[CardEntry, Sequence[Record]]]) -> Submission:
    """The submission of a card that was checked, with the records of its entries."""
    runs = []
    for entry, rows in records:
        by, by_id = rows[0].provenance, {str(row.id): row.verdict for row in rows}
        verdicts = {name: ScoredVerdict(v.status, v.scores, v.choice) for name, v in by_id.items()}
        names = by.judge, by.settings, by.aspects, by.pack, by.pack_hash
        runs.append(SubmittedRun(entry.benchmark, *names, entry.files, verdicts))
    return Submission(VERSION, card.model, card.date, tuple(runs))


def write_submission(submission: Submission, folder: Path) -> Path:
    """Write a submission to the folder of submissions, and return its file; one of the same model and date is replaced."""
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{submission.model.rpartition('/')[2]}-{submission.date}").strip("-.")
    path = folder / f"{stem}.json"
    write_whole(path, [json.dumps(asdict(submission), indent=None, allow_nan=False), "\n"])
    return path


def read_submissions(folder: Path) -> list[Submission]:
    """The submissions of a folder, by the names of their files; none where it is not there.

    Raises:
        VievalError: a file is none, or of another version.
    """
    return [_read(path) for path in sorted(folder.glob("*.json"))]


def _read(path: Path) -> Submission:
    try:
        document: Any = read_json(path.read_bytes())
        if not isinstance(document, dict) or document.get("submission") != VERSION:
            raise VievalError(f"{path}: no submission of version {VERSION}; `vieval leaderboard add` writes one")
        return _SUBMISSION.validate_python(document)
    except (OSError, ValueError) as error:
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            error = ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
        raise VievalError(f"{path}: cannot be read ({error}); add the submission again") from None


def run_of_submission(submitted: SubmittedRun, label: str, judged: Sequence[Judged]) -> Run:
    """The verdicts of a submission as a run beside others.

    Args:
        submitted: a run of a submission.
        label: what tables are to call it.
        judged: the benchmark's samples or contests.

    Raises:
        VievalError: a verdict is on none of these.
    """
    by_id = {str(sample.id): sample for sample in judged}
    if foreign := next((name for name in submitted.verdicts if name not in by_id), None):
        problem = f"{foreign} is not among the samples of {submitted.benchmark}"
        raise VievalError(f"{label}: {problem}; add the submission again")
    judge, packs = (submitted.judge, submitted.settings, submitted.aspects), (submitted.pack, submitted.pack_hash)
    source = Provenance(*judge, label, *packs, recorded=True, label=label)
    records = [
        rated_record(by_id[name], Verdict(verdict.scores, verdict.status, choice=verdict.choice), source)
        for name, verdict in submitted.verdicts.items()
    ]
    [run] = results_of(records).runs
    return run
