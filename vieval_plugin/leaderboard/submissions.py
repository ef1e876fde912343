"""Submissions as the leaderboard stores them: a small JSON file each, with scores but
without replies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from vieval_plugin.card.card import Card, CardEntry
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Verdict
from vieval_plugin.media.files import write_whole
from vieval_plugin.records import Provenance, Record, Run, rated_record
from vieval_plugin.results.runs import results_of
from vieval_plugin.text.errors import UPGRADE, VievalError, line_of
from vieval_plugin.text.yaml_json import read_json

VERSION = 1
FOLDER = "submissions"


@dataclass(frozen=True)
class SubmittedRun:
    """Verdicts of a judge on a benchmark, without replies."""

    benchmark: str
    #: The judge.
    provenance: Provenance
    #: SHA-256 of the files that were checked.
    files: Mapping[str, str]
    #: Scores or choice, by the id of the sample or contest.
    verdicts: Mapping[str, Verdict]


@dataclass(frozen=True)
class Submission:
    """Part of a card that the leaderboard stores."""

    #: Version of its form.
    submission: int
    model: str
    #: Day of the card.
    date: str
    #: One a judge and benchmark.
    runs: tuple[SubmittedRun, ...]


_SUBMISSION = TypeAdapter(Submission)


def submission_of(
    card: Card, records: Sequence[tuple[CardEntry, Sequence[Record]]]
) -> Submission:
    """Build the submission of a checked card from the records of its entries."""
    runs = []
    for entry, rows in records:
        verdicts = {
            str(r.id): Verdict(
                r.verdict.scores, r.verdict.status, choice=r.verdict.choice
            )
            for r in rows
        }
        source = replace(
            rows[0].provenance,
            options={},
            config_hash="",
            label="",
            recorded=True,
        )
        runs.append(SubmittedRun(entry.benchmark, source, entry.files, verdicts))
    return Submission(VERSION, card.model, str(card.date), tuple(runs))


def write_submission(submission: Submission, folder: Path) -> Path:
    """Write a submission to the folder of submissions, and return its file; VievalError
    if the file exists with other content.
    """
    name = submission.model.rpartition("/")[2]
    title = f"{name}-{submission.date}"
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", title).strip("-.")
    path = folder / f"{stem}.json"
    content = _SUBMISSION.dump_json(submission, exclude_defaults=True) + b"\n"
    if path.exists() and path.read_bytes() != content:
        raise VievalError(
            f"{path} already holds a different submission with this name and date; "
            "remove it, or rename the model"
        )
    write_whole(path, content)
    return path


def read_submissions(folder: Path) -> list[Submission]:
    """Read the submissions of a folder, by file name; empty if the folder does not
    exist.

    Raises:
        VievalError: a file is not a submission, or has another version.
    """
    return [_read(path) for path in sorted(folder.glob("*.json"))]


def _read(path: Path) -> Submission:
    try:
        document = read_json(path.read_bytes())
        version = document.get("submission") if isinstance(document, dict) else None
        if version != VERSION:
            remedy = "create one with `vieval leaderboard add`"
            if isinstance(version, int) and version > VERSION:
                remedy = UPGRADE
            raise VievalError(
                f"{path}: not a submission of version {VERSION}; {remedy}"
            )
        return _SUBMISSION.validate_python(document)
    except (OSError, ValueError) as error:  # of validation too, in several lines
        problem = line_of(error)
        raise VievalError(
            f"{path}: cannot be read ({problem}); add the submission again"
        ) from None


def run_of_submission(
    submitted: SubmittedRun, label: str, judged: Sequence[Judged]
) -> Run:
    """Build a run from the verdicts of a submission.

    Args:
        submitted: a run of a submission.
        label: name of the run in tables.
        judged: the benchmark's samples or contests.

    Raises:
        VievalError: a verdict is on an unknown sample.
    """
    by_id = {str(sample.id): sample for sample in judged}
    if foreign := next(
        (name for name in submitted.verdicts if name not in by_id), None
    ):
        problem = f"{foreign} is not among the samples of {submitted.benchmark}"
        raise VievalError(f"{label}: {problem}; add the submission again")
    source = replace(submitted.provenance, backbone=label, label=label)
    verdicts = submitted.verdicts.items()
    records = [rated_record(by_id[name], v, source) for name, v in verdicts]
    [run] = results_of(records).runs
    return run
