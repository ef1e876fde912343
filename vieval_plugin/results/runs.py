"""Read records from results on disk, grouped into runs: one judge in one setting with
one backbone on one benchmark.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.protocol import SampleId, Status
from vieval_plugin.meta_evaluation.ratings import HumanRatings, rated
from vieval_plugin.readers.places import is_shards
from vieval_plugin.records import Record, RecordsByPart, Run
from vieval_plugin.results.host_samples import samples_files
from vieval_plugin.results.own_verdicts import missing_note
from vieval_plugin.results.rows import rows_of
from vieval_plugin.results.sources import (
    Source,
    differing_details,
    labels_of,
    source_of,
)
from vieval_plugin.run.verdict_log import PARTIAL
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import plural

if TYPE_CHECKING:
    from vieval_plugin.results.shard_sample import FolderTotals


#: The records of each sample by a run.
_RecordsBySource: TypeAlias = dict[tuple[SampleId, Source], tuple[Record, ...]]


@dataclass(frozen=True)
class Results:
    """The runs of some results."""

    runs: tuple[Run, ...]
    #: A line for each file that could not be read.
    unreadable: tuple[str, ...] = ()
    #: Notes on what was left out.
    notes: tuple[str, ...] = ()
    #: Counts over all verdicts of folders of shards, which the runs may sample.
    totals: tuple[FolderTotals, ...] = ()
    #: Files and folders that they were read from; empty for verdicts in memory.
    paths: tuple[Path, ...] = ()
    #: File of the baseline that they are compared with; None without one.
    baseline: Path | None = None

    @property
    def records(self) -> list[Record]:
        """The records of all runs."""
        return list(chain(*(run.all_records for run in self.runs)))


def load_results(
    results: Sequence[Path],
    labels: Sequence[str] = (),
    partial: bool = False,
) -> Results:
    """Read the verdicts below each path: a run's --output_path, one samples file, or
    output of `vieval score`.

    A folder of shards is sampled by `sample_shards`. If a folder has several samples
    files of one task, the newest is used. Unreadable files are listed, and the others
    are read.

    Args:
        results: folders or files.
        labels: names of the runs of each path in tables, one per path; empty texts, or no labels,
            mean the runs' own names.
        partial: read incomplete runs too.

    Raises:
        VievalError: a path has no samples, no file can be read, the number of labels is wrong, or
            two files hold the same judge's verdict on a sample.
    """
    if labels and len(labels) != len(results):
        raise VievalError(
            f"got {plural(len(labels), 'label')} for {plural(len(results), 'result')}; "
            "pass one --label per result, in the same order ('' for none)"
        )
    records_by_source: _RecordsBySource = {}
    origin: dict[tuple[SampleId, Source], str] = {}
    unreadable = list[str]()
    notes = list[str]()
    totals = []
    files: dict[Path, str] = {}
    path_labels = labels or [""] * len(results)
    for result, label in zip(results, path_labels, strict=True):
        files |= dict.fromkeys(samples_files(result), label)
    for path, label in files.items():
        try:
            if not is_shards(path):
                rows = rows_of(path, partial)
            else:
                from vieval_plugin.results.shard_sample import sample_shards

                sample = sample_shards(path, partial)
                rows = [(record,) for record in sample.records]
                notes += sample.notes
                totals.append(sample.totals)
        except VievalError as error:
            unreadable.append(str(error))
            continue
        notes += filter(None, [_file_note(path, rows)])
        for number, judged in enumerate(rows, start=1):
            first = judged[0]
            source = source_of(first.provenance, label)
            key = first.id, source
            row = first.row
            where = f"{row.file}:{row.row}" if row else f"line {number}"
            if key in records_by_source:
                raise _repeated_verdict_error(f"{path}: {where}", *key, origin[key])
            records_by_source[key] = judged
            origin[key] = f"{where} of {path}"
    if unreadable and not records_by_source:
        raise VievalError(unreadable[0])
    return Results(
        tuple(_runs(records_by_source)),
        tuple(unreadable),
        tuple(notes),
        tuple(totals),
        tuple(results),
    )


def _file_note(path: Path, rows: Sequence[tuple[Record, ...]]) -> str:
    """Return the line on verdicts that a file does not have, if any."""
    if not path.name.endswith(PARTIAL):
        return missing_note(path, list(chain(*rows)))
    return (
        f"{path} is from an incomplete run "
        f"({plural(len(rows), 'verdict')} so far), "
        "so the final numbers may differ"
    )


def _repeated_verdict_error(
    where: str,
    sample: SampleId,
    source: Source,
    other: str,
) -> VievalError:
    return VievalError(
        f"{where}: the verdict on {sample} by {source.name} {source.judge} "
        f"is also in {other}; "
        "pass only one of the two, "
        "or distinguish the runs with --label"
    )


def results_of(records: Iterable[Record]) -> Results:
    """Build results from verdicts in memory, as `load_results` does from files."""
    by_source: _RecordsBySource = {
        (record.id, source_of(record.provenance)): (record,) for record in records
    }
    return Results(tuple(_runs(by_source)))


def _is_recorded(by_part: RecordsByPart) -> bool:
    """Return whether any verdict of a run is not missing."""
    judged = chain.from_iterable(by_part.values())
    records = chain.from_iterable(judged)
    return any(record.verdict.status is not Status.MISSING for record in records)


def _runs(records: _RecordsBySource) -> list[Run]:
    grouped: dict[tuple[str, Source], RecordsByPart] = defaultdict(
        lambda: defaultdict(list)
    )
    for (identity, source), judged in records.items():
        grouped[identity.benchmark, source][identity.part].append(judged)
    # a replay of several judges from the logs of one leaves the others wholly missing: nothing to
    # report
    recorded = {
        key: by_part for key, by_part in grouped.items() if _is_recorded(by_part)
    } or grouped
    titles = {name: spec.title for name, spec in judge_registry.judges().items()}
    sources = defaultdict[str, list[Source]](list)
    for benchmark, source in recorded:
        sources[benchmark].append(source)
    labels = {name: labels_of(group, titles) for name, group in sources.items()}
    runs = []
    for (benchmark, source), by_part in recorded.items():
        recorded_by = next(iter(by_part.values()))[0][0].provenance
        spec = judge_registry.judge_of_results(source.judge, recorded_by.options)
        runs.append(
            Run(
                labels[benchmark][source],
                benchmark,
                source.judge,
                recorded_by.aspects,
                dict(by_part),
                spec.against_all if spec else False,
                spec.table if spec else "",
                " ".join(source.settings),
                source.name,
                differing_details(source, sources[benchmark]),
            )
        )
    return sorted(runs, key=lambda run: (run.benchmark, run.label))


def rated_runs(
    results: Results, ratings: HumanRatings | None
) -> tuple[list[Run], list[str]]:
    """The runs of results, with these ratings in the place of their own where there are any, and
    lines to be read beside them.

    Raises:
        VievalError: no rating is of a sample among the results.
    """
    unreadable = (
        f"skipped, because it cannot be read: {line}" for line in results.unreadable
    )
    runs = list(results.runs)
    notes = [*results.notes, *unreadable]
    if not ratings:
        return runs, notes
    runs, unknown = rated(runs, ratings)
    if not unknown:
        return runs, notes
    first_unknown = unknown[0]
    first = f"{ratings.where[first_unknown]}: {first_unknown}"
    if len(unknown) == len(ratings.where):
        are_votes = ratings.votes.keys() >= set(unknown)
        if are_votes and not _has_contests(runs):
            verdicts = shlex.join(map(str, results.paths)) or "verdicts.jsonl"
            raise VievalError(
                f"{first} is a vote on a pair, but these verdicts are on single images; "
                "rate them on a page from "
                f"`vieval label {verdicts} --out label.html`"
            )
        raise VievalError(
            f"none of the rated samples has a verdict (first: {first}); pass ratings "
            "of the samples in these verdicts"
        )
    samples = plural(len(unknown), "sample")
    note = f"ratings of {samples} without a verdict are left out (first: {first})"
    return runs, [*notes, note]


def _has_contests(runs: Sequence[Run]) -> bool:
    for run in runs:
        for first_record, *_ in run.records_by_sample:
            if first_record.votes is not None:
                return True
    return False
