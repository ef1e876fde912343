"""Images that a run made and left to be judged later (lmms-eval's --predict_only) -> samples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vieval_plugin.errors import VievalError
from vieval_plugin.records import lines_of
from vieval_plugin.results.documents import read_made
from vieval_plugin.results.host_samples import responses_of, samples_files
from vieval_plugin.run.prepare import unjudged
from vieval_plugin.run.samples_file import Given
from vieval_plugin.yaml_json import read_json


@dataclass(frozen=True)
class UnjudgedRun:
    """The images of a run, those that there are not decided already, and the judge and setting that its tasks name."""

    given: Given
    judge: str
    setting: str


def is_run(path: Path) -> bool:
    """Whether a path is what a host left, and no samples file: a folder, or a file whose rows are a host's."""
    if path.is_dir():
        return True
    try:
        with path.open("rb") as file:
            row = read_json(file.readline().decode())
    except (OSError, ValueError):
        return False
    return isinstance(row, dict) and "filtered_resps" in row


def load_unjudged(path: Path) -> UnjudgedRun:
    """The images of a run and why others are lacking.

    Raises:
        VievalError: the run made none, judged them already, or is of tasks with different judges.
    """
    given, judges = Given(), dict[tuple[str, str], None]()
    for file in samples_files(path):
        for number, line in enumerate(lines_of(file.read_text(encoding="utf-8")), start=1):
            try:
                row = read_json(line)
                for response in responses_of(row):
                    found = read_made(response, row["target"])
                    judges[found.judge, found.setting] = None
                    if found.reason:
                        given.decided[len(given.samples)] = unjudged(found.status, found.reason)
                    if found.findings:
                        given.findings[len(given.samples)] = found.findings
                    given.samples.append(found.sample)
                    given.lines.append(number)
            except (ValueError, KeyError, TypeError, VievalError) as error:
                raise VievalError(
                    f"{file}: line {number} is no image that is to be judged ({error}); what is judged here is a run of "
                    "generate_* tasks with --predict_only"
                ) from None
    if not given.samples:
        raise VievalError(f"{path}: no images in it; run generate_* tasks with --predict_only first")
    if len(judges) > 1:
        named = ", ".join(" ".join(filter(None, one)) for one in judges)
        raise VievalError(f"{path}: tasks of several judges ({named}); pass the samples file of one of them")
    [(judge, setting)] = judges
    return UnjudgedRun(given, judge, setting)
