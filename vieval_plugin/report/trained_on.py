"""Which results are on samples that a judge was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.records import Record, Run
from vieval_plugin.results.training_records import own_cards, trained_on, was_trained_on


def trained_on_tables(runs: Sequence[Run], cards: Sequence[Path]) -> list[Table]:
    """A row for each judge that knew some of its samples from its training; no table where none did.

    Args:
        runs: one a judge, all of one benchmark.
        cards: of models that answered; those in folders that the runs' options name are found by themselves.

    Raises:
        VievalError: a card that cannot be read.
    """
    given = [trained_on(card) for card in cards]
    rows = []
    for run in runs:
        records = [record for judged in run.records.values() for one in judged for record in one]
        uids = frozenset().union(*given, *map(trained_on, _own(records)))
        known = sum(was_trained_on(record, uids) for record in records)
        if known:
            rows.append((run.label, str(known), str(len(records))))
    header = ("judge", "samples it was trained on", "of")
    title = "Trained on what it judges: such numbers say nothing about other samples"
    return [Table("trained_on", title, header, tuple(rows))] if rows else []


def _own(records: Sequence[Record]) -> list[Path]:
    seen = {record.provenance.config_hash: record.provenance for record in records}
    return list(dict.fromkeys(card for source in seen.values() for card in own_cards(source)))
