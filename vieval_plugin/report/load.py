"""Results on disk -> records, grouped into runs: one judge in one setting with one backbone on one benchmark."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import SampleId, Status
from vieval_plugin.records import Record, lines_of, read_record
from vieval_plugin.replay import responses_of


@dataclass(frozen=True)
class Run:
    """All records of one judge on one benchmark, by task, each sample's together; `label` is what tables call it."""

    label: str
    benchmark: str
    aspects: tuple[str, ...]
    records: dict[str, list[tuple[Record, ...]]]


def load_runs(results: Sequence[Path]) -> list[Run]:
    """Read the samples files below each path (a run's --output_path, or one file), the newest of each folder and task.

    Raises VievalError for a path without samples, a malformed row, and a judge's sample that two files hold.
    """
    records: dict[tuple[SampleId, tuple[str, str, str]], tuple[Record, ...]] = {}
    origin: dict[tuple[SampleId, tuple[str, str, str]], Path] = {}
    for path in dict.fromkeys(file for result in results for file in samples_files(result)):
        for judged in records_of(path):
            record, p = judged[0], judged[0].provenance
            key = (record.id, (p.backbone, p.judge, p.setting))
            if key in records:
                raise VievalError(
                    f"{path}: {record.id} of {p.backbone} {p.judge} {p.setting} is in {origin[key]} as well; pass one of the two"
                )
            records[key], origin[key] = judged, path
    return _runs(records.values())


def samples_files(result: Path) -> list[Path]:
    """The samples files of a result: of several by one task in one folder, the newest."""
    if result.is_file():
        return [result]
    newest: dict[tuple[Path, str], Path] = {}
    for path in sorted(result.rglob("*_samples_*.jsonl")):
        newest[path.parent, re.sub(r"^.*_samples_", "", path.name)] = path
    if not newest:
        raise VievalError(
            f"{result}: no samples_*.jsonl there; run lmms-eval with --log_samples and --output_path {result}"
        )
    return list(newest.values())


def records_of(path: Path) -> list[tuple[Record, ...]]:
    """The records of a samples file, each sample's together; VievalError names a malformed row."""
    records = []
    for number, line in enumerate(lines_of(path.read_text(encoding="utf-8")), start=1):
        try:
            row = json.loads(line)
            records.append(tuple(read_record(response, row["target"]) for response in responses_of(row)))
        except (ValueError, KeyError, TypeError, VievalError) as error:
            raise VievalError(f"{path}: line {number} is no result of VIEval ({error})") from None
    return records


def _runs(records: Iterable[tuple[Record, ...]]) -> list[Run]:
    grouped: dict[tuple[str, tuple[str, str, str]], dict[str, list[tuple[Record, ...]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for judged in records:
        identity, p = judged[0].id, judged[0].provenance
        grouped[identity.benchmark, (p.backbone, p.judge, p.setting)][identity.task].append(judged)
    # a replay of several judges from the logs of one leaves the others wholly missing: nothing to report
    held = {key: by_task for key, by_task in grouped.items() if not _nothing_recorded(by_task)} or grouped
    runs = []
    for (benchmark, (backbone, judge, setting)), by_task in held.items():
        namesakes = [key for b, key in held if b == benchmark and key[0] == backbone]
        label = backbone if len(namesakes) == 1 else f"{backbone} {judge} {setting}"
        aspects = next(iter(by_task.values()))[0][0].provenance.aspects
        runs.append(Run(label, benchmark, aspects, dict(by_task)))
    return sorted(runs, key=lambda run: (run.benchmark, run.label))


def _nothing_recorded(by_task: dict[str, list[tuple[Record, ...]]]) -> bool:
    return all(r.verdict.status is Status.MISSING for rows in by_task.values() for judged in rows for r in judged)
