"""What verdicts cost and how many failed: the columns of a headline that have nothing to do with agreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from vieval_plugin.judges.protocol import Status
from vieval_plugin.records import Record

WARNED = 0.05
"""The share of failed verdicts above which a row is marked."""

_NOT_ASKED = (Status.NOT_APPLICABLE, Status.MISSING)


@dataclass(frozen=True)
class Cost:
    """How verdicts came out, and what was spent on them.

    `asked` counts verdicts on samples that the judge applies to and that a replay holds, `failed` those of them without a
    score, by `statuses`; `missing` are those that a replay does not hold. `calls` are the steps behind all verdicts, reminders included. `tokens` is None where no host wrote
    them down. `recorded` says that nothing was spent now: verdicts were replayed.
    """

    asked: int
    failed: int
    statuses: tuple[tuple[str, int], ...]
    missing: int
    calls: int
    tokens: int | None
    recorded: bool

    @property
    def share(self) -> float:
        """The share of failed verdicts, 0 where nothing was asked."""
        return self.failed / self.asked if self.asked else 0.0

    @property
    def told(self) -> str:
        """The failures in words, the most frequent first: `29 refusal, 1 parse_failure`."""
        return ", ".join(f"{n} {status}" for status, n in self.statuses)

    @property
    def warning(self) -> str:
        """What a row must say beside its number; empty where nearly all verdicts have a score."""
        told = []
        if self.share > WARNED:
            told.append(f"{self.failed} of {self.asked} verdicts have no score ({self.told})")
        if self.missing > WARNED * (self.asked + self.missing):
            told.append(f"the replay holds no verdict on {self.missing} of {self.asked + self.missing} samples")
        return "; ".join(told)


def cost_of(records: Sequence[Record]) -> Cost:
    """The cost of some verdicts.

    >>> cost_of([]).warning
    ''
    """
    counted = Counter(record.verdict.status for record in records)
    failed = [(str(s), n) for s, n in counted.most_common() if not s.usable and s not in _NOT_ASKED]
    spent = [record.tokens for record in records if record.tokens is not None]
    return Cost(
        sum(n for status, n in counted.items() if status not in _NOT_ASKED),
        sum(n for _, n in failed),
        tuple(failed),
        counted[Status.MISSING],
        sum(len(record.verdict.trace) for record in records if record.verdict.status not in _NOT_ASKED),
        sum(spent) if spent else None,
        any(record.provenance.recorded for record in records) or Status.MISSING in counted,
    )
