"""Cost of verdicts: failures, calls and tokens, and the seconds of runs as far as the host wrote
them down.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from vieval_plugin.judges.protocol import Status
from vieval_plugin.records import Record, Run
from vieval_plugin.stats.decisions import NOTABLE_FAILURES
from vieval_plugin.text.wording import plural
from vieval_plugin.text.yaml_json import read_json

_NOT_ASKED = (Status.NOT_APPLICABLE, Status.MISSING)


@dataclass(frozen=True)
class Cost:
    """Outcomes and costs of verdicts.

    `verdicts` counts verdicts on samples that the judge applies to and that a replay holds,
    `failed` those of them without a score, by `statuses`; `missing` are those that a replay does
    not hold. `answers` are the steps behind all verdicts, reminders included, whether a call or the
    store gave them. `tokens` is None where no host wrote them down. `recorded` says that nothing
    was spent now: verdicts were replayed.
    """

    verdicts: int
    failed: int
    statuses: tuple[tuple[str, int], ...]
    missing: int
    answers: int
    tokens: int | None
    recorded: bool

    @property
    def share(self) -> float:
        """The share of failed verdicts, 0 where nothing was asked."""
        return self.failed / self.verdicts if self.verdicts else 0.0

    @property
    def failures_text(self) -> str:
        """The failures in words, the most frequent first: `29 refusal, 1 parse_failure`."""
        return statuses_text(self.statuses)

    @property
    def missing_text(self) -> str:
        """The samples that a replay lacks in words: `311 of 4801 missing`; empty where it lacks
        none.
        """
        if self.missing:
            return f"{self.missing} of {self.verdicts + self.missing} missing"
        return ""

    @property
    def warning(self) -> str:
        """Warning to be shown beside a row's number; empty where nearly all verdicts have a
        score.
        """
        warnings = []
        if self.share > NOTABLE_FAILURES:
            have = "has" if self.failed == 1 else "have"
            warnings.append(
                f"{self.failed} of {self.verdicts} verdicts {have} no score ({self.failures_text})"
            )
        if self.missing > NOTABLE_FAILURES * (self.verdicts + self.missing):
            warnings.append(
                f"the replay has no verdict on {self.missing} of "
                f"{self.verdicts + self.missing} samples"
            )
        return "; ".join(warnings)


def statuses_text(statuses: Iterable[tuple[str, int]]) -> str:
    """Counts of statuses in words.

    >>> statuses_text([("refusal", 29), ("guessed", 1)])
    "29 refusal, 1 guessed at random by the log's authors"
    """
    texts = {str(Status.GUESSED): "guessed at random by the log's authors"}
    return ", ".join(f"{n} {texts.get(status, status)}" for status, n in statuses)


def cost_of(records: Sequence[Record]) -> Cost:
    """The cost of some verdicts.

    >>> cost_of([]).warning
    ''
    """
    status_counts = Counter(record.verdict.status for record in records)
    failed = [
        (str(s), n)
        for s, n in status_counts.most_common()
        if not s.usable and s not in _NOT_ASKED
    ]
    token_counts = [record.tokens for record in records if record.tokens is not None]
    tokens = sum(token_counts) if token_counts else None
    asked = [r.verdict for r in records if r.verdict.status not in _NOT_ASKED]
    steps = chain.from_iterable(verdict.trace for verdict in asked)
    recorded = any(record.provenance.recorded for record in records)
    return Cost(
        len(asked),
        sum(n for _, n in failed),
        tuple(failed),
        status_counts[Status.MISSING],
        sum(step.status is not Status.NOT_ASKED for step in steps),
        tokens,
        recorded or Status.MISSING in status_counts,
    )


def durations(runs: Sequence[Run]) -> dict[tuple[str, str], str]:
    """Seconds that runs took, in words, by benchmark and judge: a host times all of its tasks
    together.

    Args:
        runs: of all benchmarks, those that are shown together.
    """
    run_summaries = {}
    for run in runs:
        recorded = (record.summary for record in run.all_records)
        run_summaries[run.benchmark, run.label] = {*filter(None, recorded)}
    judges: dict[Path, set[str]] = defaultdict(set)
    for (_, label), summaries in run_summaries.items():
        for summary in summaries:
            judges[summary].add(label)
    seconds_of = {summary: _seconds(summary) for summary in judges}
    texts = {}
    for key, summaries in run_summaries.items():
        if summaries and all(seconds_of[summary] for summary in summaries):
            seconds = sum(seconds_of[summary] for summary in summaries)
            others = max(len(judges[summary]) - 1 for summary in summaries)
            digits = 0 if seconds >= 10 else 1
            texts[key] = f"{seconds:.{digits}f}"
            if others:
                texts[key] += f" (with {plural(others, 'other judge')})"
    return texts


def _seconds(summary: Path) -> float:
    try:
        return float(read_json(summary.read_bytes())["total_evaluation_time_seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
