"""Results on disk -> records, grouped into runs: one judge in one setting with one backbone on one benchmark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from vieval_plugin import registry
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import SampleId, Status
from vieval_plugin.records import Record, Run
from vieval_plugin.results import own
from vieval_plugin.results.host_samples import records_of, samples_files

Source: TypeAlias = tuple[str, str, tuple[str, ...]]
"""What makes verdicts of one run: backbone, judge, settings."""


def load_runs(results: Sequence[Path]) -> list[Run]:
    """Read the samples files below each path (a run's --output_path, or one file), the newest of each folder and task.

    Raises VievalError for a path without samples, a malformed row, and a judge's sample that two files hold.
    """
    records: dict[tuple[SampleId, Source], tuple[Record, ...]] = {}
    origin: dict[tuple[SampleId, Source], Path] = {}
    for path in dict.fromkeys(file for result in results for file in samples_files(result)):
        if own.is_own(path):
            raise VievalError(
                f"{path}: verdicts of vieval score, which `vieval show` reads; what is reported and compared are lmms-eval "
                "runs (--output_path, with --log_samples)"
            )
        for judged in records_of(path):
            record, p = judged[0], judged[0].provenance
            key = (record.id, (p.backbone, p.judge, p.settings))
            if key in records:
                raise VievalError(
                    f"{path}: {record.id} of {p.backbone} {p.judge} {p.setting} is in {origin[key]} as well; pass one of the two"
                )
            records[key], origin[key] = judged, path
    return _runs(records.values())


def _runs(records: Iterable[tuple[Record, ...]]) -> list[Run]:
    grouped: dict[tuple[str, Source], dict[str, list[tuple[Record, ...]]]] = defaultdict(lambda: defaultdict(list))
    for judged in records:
        identity, p = judged[0].id, judged[0].provenance
        grouped[identity.benchmark, (p.backbone, p.judge, p.settings)][identity.part].append(judged)
    # a replay of several judges from the logs of one leaves the others wholly missing: nothing to report
    held = {key: by_part for key, by_part in grouped.items() if not _nothing_recorded(by_part)} or grouped
    runs = []
    for (benchmark, (backbone, judge, settings)), by_part in held.items():
        namesakes = [key for b, key in held if b == benchmark and key[0] == backbone]
        label = backbone if len(namesakes) == 1 else " ".join([backbone, judge, *settings])
        aspects = next(iter(by_part.values()))[0][0].provenance.aspects
        known = registry.judges().get(judge)
        against_all, table = (known.against_all, known.table) if known else (False, "")
        runs.append(Run(label, benchmark, judge, aspects, dict(by_part), against_all, table))
    return sorted(runs, key=lambda run: (run.benchmark, run.label))


def _nothing_recorded(by_part: dict[str, list[tuple[Record, ...]]]) -> bool:
    return all(r.verdict.status is Status.MISSING for rows in by_part.values() for judged in rows for r in judged)
