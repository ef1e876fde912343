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
    `failed` those whose status is a failure, by `statuses`; `missing` are those that a replay does
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
        if self.verdicts:
            return self.failed / self.verdicts
        return 0.0

    @property
    def failures_text(self) -> str:
        """The failures in words, the most frequent first: `29 refusal, 1 parse_failure`."""
        return statuses_text(self.statuses)

    @property
    def missing_text(self) -> str:
        """The samples that a replay lacks in words: `311 of 4801 missing`; empty where it lacks
        none.
        """
        if not self.missing:
            return ""
        samples = self.verdicts + self.missing
        return f"{self.missing} of {samples} missing"

    @property
    def warning(self) -> str:
        """Warning to be shown beside a row's number; empty where few verdicts failed."""
        warnings = []
        if self.share > NOTABLE_FAILURES:
            warnings.append(
                f"{self.failed} of {self.verdicts} verdicts failed "
                f"({self.failures_text})"
            )
        samples = self.verdicts + self.missing
        if self.missing > NOTABLE_FAILURES * samples:
            warnings.append(
                f"the replay has no verdict on {self.missing} of {samples} samples"
            )
        return "; ".join(warnings)


def statuses_text(statuses: Iterable[tuple[str, int]]) -> str:
    """Counts of statuses in words.

    >>> statuses_text([("refusal", 29), ("guessed", 1)])
    "29 refusal, 1 guessed at random by the log's authors"
    """
    texts = []
    for status, n in statuses:
        text = status
        if status == Status.GUESSED:
            text = "guessed at random by the log's authors"
        texts.append(f"{n} {text}")
    return ", ".join(texts)


def cost_of(records: Sequence[Record]) -> Cost:
    """The cost of some verdicts.

    >>> cost_of([]).warning
    ''
    """
    verdicts = [record.verdict for record in records]
    asked = [verdict for verdict in verdicts if verdict.status not in _NOT_ASKED]
    failed = Counter(
        str(verdict.status) for verdict in asked if not verdict.status.usable
    )
    missing = sum(verdict.status is Status.MISSING for verdict in verdicts)
    steps = chain.from_iterable(verdict.trace for verdict in asked)
    answers = sum(step.status is not Status.NOT_ASKED for step in steps)
    tokens = None
    token_counts = [record.tokens for record in records if record.tokens is not None]
    if token_counts:
        tokens = sum(token_counts)
    recorded = any(record.provenance.recorded for record in records)
    return Cost(
        verdicts=len(asked),
        failed=failed.total(),
        statuses=tuple(failed.most_common()),
        missing=missing,
        answers=answers,
        tokens=tokens,
        recorded=recorded or missing > 0,
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
        all_seconds = [seconds_of[summary] for summary in summaries]
        if not all_seconds or not all(all_seconds):
            continue
        seconds = sum(all_seconds)
        digits = 1
        if seconds >= 10:
            digits = 0
        text = f"{seconds:.{digits}f}"
        most_judges = max(len(judges[summary]) for summary in summaries)
        if most_judges > 1:
            text += f" (with {plural(most_judges - 1, 'other judge')})"
        texts[key] = text
    return texts


def _seconds(summary: Path) -> float:
    try:
        fields = read_json(summary.read_bytes())
        return float(fields["total_evaluation_time_seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
