"""Tables about verdicts as such: findings beside their scores, and samples that a judge was trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.records import Record, Run
from vieval_plugin.results.training_records import own_training_records, trained_on, was_trained_on


def findings_tables(runs: Sequence[Run]) -> list[Table]:
    """A row for each judge and kind of finding, the most frequent first; no table where there are none.

    Args:
        runs: one a judge, all of one benchmark.
    """
    rows = []
    for run in runs:
        verdicts = [record.verdict for judged in run.records.values() for records in judged for record in records]
        occurrences = Counter(finding for verdict in verdicts for finding in verdict.findings)
        verdict_count_by_finding = Counter(finding for verdict in verdicts for finding in set(verdict.findings))
        rows += [
            (run.label, name, str(n), f"{verdict_count_by_finding[name]} of {len(verdicts)}")
            for name, n in occurrences.most_common()
        ]
    header = ("judge", "finding", "times", "samples")
    return [Table("findings", "What was found on the way", header, tuple(rows))] if rows else []


def trained_on_tables(runs: Sequence[Run], training_records: Sequence[Path]) -> list[Table]:
    """A row for each judge that knew some of its samples from its training; no table where none did.

    Args:
        runs: one a judge, all of one benchmark.
        training_records: of models that answered; those in folders that the runs' options name are found by themselves.

    Raises:
        VievalError: a training record that cannot be read.
    """
    listed_uids = [trained_on(record) for record in training_records]
    rows = []
    for run in runs:
        records = [record for judged in run.records.values() for verdicts in judged for record in verdicts]
        uids = frozenset().union(*listed_uids, *map(trained_on, _training_records_of(records)))
        trained = sum(was_trained_on(record, uids) for record in records)
        if trained:
            rows.append((run.label, str(trained), str(len(records))))
    header = ("judge", "samples it was trained on", "of")
    title = "Trained on what it judges: such numbers say nothing about other samples"
    return [Table("trained_on", title, header, tuple(rows))] if rows else []


def _training_records_of(records: Sequence[Record]) -> list[Path]:
    by_config = {record.provenance.config_hash: record.provenance for record in records}
    return list(dict.fromkeys(record for source in by_config.values() for record in own_training_records(source)))
