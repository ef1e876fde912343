"""Images that a run of a host made -> samples: those it left to be judged later, those it judged, and those of its own tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vieval_plugin.config import Config
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Sample, Verdict
from vieval_plugin.media.files import require_plain
from vieval_plugin.records import lines_of
from vieval_plugin.results.documents import read_made, read_record
from vieval_plugin.results.foreign_samples import is_foreign, made_of_row
from vieval_plugin.results.host_samples import responses_of, samples_files
from vieval_plugin.run.generated import trusted_folders, undrawn
from vieval_plugin.run.prepare import unjudged
from vieval_plugin.run.samples_file import Given
from vieval_plugin.text.untrusted import isdir
from vieval_plugin.text.yaml_json import read_json


@dataclass(frozen=True)
class UnjudgedRun:
    """The images of a run, those that there are not decided already, and the judge and setting that its tasks name.

    Both are empty for tasks that name none.
    """

    given: Given
    judge: str
    setting: str


@dataclass(frozen=True)
class _Found:
    """An image of a row: the sample, its verdict where that is decided, what was found, and whom it was made for."""

    sample: Sample
    verdict: Verdict | None
    findings: tuple[str, ...] = ()
    judge: tuple[str, str] = ("", "")


def is_run(path: Path) -> bool:
    """Whether a path is what a host left, and no samples file: a folder, or a file whose rows are a host's.

    Raises:
        VievalError: it is neither a folder nor a plain file.
    """
    if isdir(path):
        return True
    require_plain(path)
    try:
        with path.open("rb") as file:
            row = read_json(file.readline().decode())
    except (OSError, ValueError):
        return False
    return isinstance(row, dict) and "filtered_resps" in row


def load_unjudged(path: Path, options: Config, kind: str | None = None) -> UnjudgedRun:
    """The images of a run and why others are lacking; what a judge said of them already is left out.

    Args:
        path: what the host wrote, a folder or one of its samples files.
        options: name folders that are trusted beside that of the run.
        kind: that of the images of tasks which say none: all that are not VIEval's.

    Raises:
        VievalError: the run made none, or is of tasks with different judges.
    """
    given, judges = Given(), dict[tuple[str, str], None]()
    trusted = trusted_folders(options, path if path.is_dir() else path.parent)
    for file in samples_files(path):
        for number, line in enumerate(_lines(file), start=1):
            try:
                for found in _found(read_json(line), file, kind, trusted):
                    judges[found.judge] = None
                    if found.verdict:
                        given.decided[len(given.samples)] = found.verdict
                    if found.findings:
                        given.findings[len(given.samples)] = found.findings
                    given.samples.append(found.sample)
                    given.lines.append(number)
            except (ValueError, KeyError, TypeError, AttributeError, VievalError) as error:
                raise VievalError(
                    f"{file}: line {number} is no image that is to be judged ({error}); what is judged here is a run in "
                    "which a generator made images, such as generate_* tasks with --predict_only"
                ) from None
    if not given.samples:
        raise VievalError(f"{path}: no images in it; run generate_* tasks with --predict_only first")
    if len(judges) > 1:
        named = ", ".join(" ".join(filter(None, one)) or "none" for one in judges)
        raise VievalError(f"{path}: tasks of several judges ({named}); pass the samples file of one of them")
    [(judge, setting)] = judges
    return UnjudgedRun(given, judge, setting)


def _lines(file: Path) -> list[str]:
    try:
        return lines_of(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise VievalError(f"{file}: cannot be read ({error}); restore it, or leave it out") from None


def _found(row: Mapping[str, Any], file: Path, kind: str | None, trusted: Sequence[Path]) -> Iterator[_Found]:
    if is_foreign(row):
        for made in made_of_row(row, file, kind, trusted):
            yield _Found(made.sample, undrawn(made), made.findings)
        return
    for response in responses_of(row):
        answered = read_json(response)
        if isinstance(answered, dict) and "verdict" in answered:
            yield _judged(response, row["target"])
            continue
        one = read_made(response, row["target"])
        yield _Found(
            one.sample, unjudged(one.status, one.reason) if one.reason else None, one.findings, (one.judge, one.setting)
        )


def _judged(response: str, target: str) -> _Found:
    """The image of a verdict, to be judged by another judge."""
    record = read_record(response, target)
    if record.sample is None:
        raise VievalError("a verdict on an image of a benchmark, which another task of that benchmark judges")
    lacking = record.verdict if "output" not in record.sample.images else None
    return _Found(record.sample, lacking, judge=(record.provenance.judge, ""))
