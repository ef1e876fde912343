"""Scores that a judge filled in without judging, found by their form: in any language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from vieval_plugin.judges.protocol import Verdict
from vieval_plugin.judges.refusals import ECHO, letters
from vieval_plugin.records import Record


def fillers(records: Sequence[Record]) -> list[Record]:
    """The records whose scores are likely filled in.

    Args:
        records: those among which a reasoning may recur, such as those of two generators.

    Returns:
        Records with a reasoning that repeats the request, or with zeros alone beside a reasoning that stands beside
        zeros in another record too. A generator of black pictures can earn these: they are fillers only where both
        generators have them.
    """
    reasonings = [_zero_reasonings(record.verdict) for record in records]
    counts = Counter(chain.from_iterable(reasonings))
    return [
        record
        for record, own in zip(records, reasonings, strict=True)
        if ECHO in record.verdict.findings or any(counts[reasoning] > 1 for reasoning in own)
    ]


def _zero_reasonings(verdict: Verdict) -> set[str]:
    """The reasonings of the answers whose scores are all 0."""
    zeros = [step for step in verdict.trace if step.status.usable and step.scores and not any(step.scores)]
    return {letters(step.reason) for step in zeros if step.reason}
