"""Counts of a run so far, which are printed at its end, and the printed summary of a user's own samples."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vieval_plugin.backends.http.server import Usage
from vieval_plugin.judges.protocol import Sample, Status, Verdict
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.text.tables import text_table

_ENOUGH_REPLIES = 20
"""So many replies that could not be read are enough to say that most of them are the same words."""
_MOST_CHARACTERS = 60
_COMPARED = 200
_REASON = 160

_NOT_READ = (Status.PARSE_FAILURE, Status.GUESSED)


@dataclass
class Progress:
    """Calls, tokens, statuses and findings of a run so far, and in which words unread replies came, by judge.

    `not_asked` counts why a judge was not asked at all.
    """

    usage: Usage = field(default_factory=Usage)
    statuses: Counter[Status] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    wordings: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    not_asked: Counter[str] = field(default_factory=Counter)

    @property
    def failed_calls(self) -> int:
        """Verdicts that lack a score because a call or a tool failed; unreadable answers and refusals are findings."""
        return self.statuses[Status.API_ERROR] + self.statuses[Status.TOOL_ERROR]

    def count(self, outcomes: Iterable[Outcome], judge: str = "") -> None:
        """Take note of how verdicts of a judge came out."""
        for outcome in outcomes:
            self.statuses[outcome.verdict.status] += 1
            self.findings.update(outcome.verdict.findings)
            if outcome.verdict.status is Status.NOT_APPLICABLE:
                self.not_asked[outcome.verdict.reason] += 1
            texts = [step.answer for step in outcome.verdict.trace if step.status in _NOT_READ and step.answer.strip()]
            self.wordings[judge].update(map(_wording, texts))

    def failures(self) -> dict[str, int]:
        """Verdicts without a score, by status."""
        return {str(status): n for status, n in self.statuses.items() if not status.usable}

    def lines(self) -> list[str]:
        """The last lines of a run: what it cost, and what failed."""
        u = self.usage
        cost = f"calls: {u.calls}, answered from the store: {u.cached}, tokens in: {u.input_tokens}, out: {u.output_tokens}"
        verdicts, *noted = self.verdict_lines()
        lines = [verdicts, cost, *noted]
        if u.cached and not (u.calls or u.measured or u.retries or u.failures):
            lines.append(
                f"NOTHING WAS ASKED: all {u.cached} answers are from the store, where earlier runs kept them; "
                "--fresh of vieval score, or the option store: {refresh: true}, asks anew"
            )
        if u.retries:
            lines.append(f"tried again: {_listing(u.retries)}")
        if u.failures:
            lines.append(f"FAILED CALLS: {_listing(u.failures)}")
        return lines

    def verdict_lines(self) -> list[str]:
        """Lines on statuses and findings of verdicts, and on whether most unread replies are the same words."""
        lines = [f"verdicts: {_listing(self.statuses) or 'none'}"]
        for reason, times in self.not_asked.most_common(1):
            further = f" (and {len(self.not_asked) - 1} other reasons)" if len(self.not_asked) > 1 else ""
            lines.append(f"not asked: {times}, as {reason[:_REASON]}{further}")
        if self.findings:
            lines.append(f"findings: {_listing(self.findings)}")
        for judge, wordings in self.wordings.items():
            total = wordings.total()
            for words, times in wordings.most_common(1):
                if total >= _ENOUGH_REPLIES and times > total / 2:
                    of_judge = f" of {judge}" if judge else ""
                    lines.append(
                        f"ONE WORDING: {times} of {total} replies{of_judge} that could not be read say the same: "
                        f"{words[:_MOST_CHARACTERS]!r}"
                    )
        return lines


def _wording(text: str) -> str:
    """The words of a reply without case, spaces and punctuation; of a long one its beginning.

    >>> _wording("Naturalness : 10,\\n artifacts 0")
    'naturalness 10 artifacts 0'
    """
    beginning = text.strip()[: 4 * _COMPARED].lower()
    return " ".join(re.findall(r"\w+", beginning))[:_COMPARED] or beginning[:_COMPARED]


def _listing(counts: Mapping[Status, int] | Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in sorted(counts.items(), key=lambda item: -item[1]))


NOT_APPLICABLE = "not applicable"


def summary(samples: Sequence[Sample], verdicts: Sequence[Verdict], aspects: Sequence[str]) -> list[str]:
    """A table line an image model, and where there are several kinds a line a kind of each.

    It has the number of samples, the mean of each aspect over those scored, failures by status, and how many samples
    the judge does not apply to, where there are some.
    """
    by_kind = len({sample.kind for sample in samples}) > 1
    any_not_applicable = any(verdict.status is Status.NOT_APPLICABLE for verdict in verdicts)
    rows: list[tuple[str, ...]] = [
        (
            "image model",
            *(("kind",) if by_kind else ()),
            "samples",
            *aspects,
            "failed",
            *((NOT_APPLICABLE,) if any_not_applicable else ()),
        )
    ]
    by_group: dict[tuple[str, ...], list[Verdict]] = {}
    for sample, verdict in zip(samples, verdicts, strict=True):
        model, kind = sample.id.image_model or "-", sample.kind or "-"
        by_group.setdefault((model, kind) if by_kind else (model,), []).append(verdict)
    for of, group_verdicts in by_group.items():
        means = [_mean([v.scores[a] for v in group_verdicts if a in v.scores]) for a in aspects]
        failures_by_status = Counter(v.status for v in group_verdicts if not v.status.usable)
        unasked = failures_by_status.pop(Status.NOT_APPLICABLE, 0)
        failed = ", ".join(f"{status} {n}" for status, n in failures_by_status.items()) or "0"
        rows.append((*of, str(len(group_verdicts)), *means, failed, *((str(unasked),) if any_not_applicable else ())))
    return text_table(rows)


def next_step(samples: Sequence[Sample], verdicts: Sequence[Verdict], path: Path) -> list[str]:
    """The command to run next where several image models have scores; nothing where one has."""
    models = {sample.id.image_model for sample, verdict in zip(samples, verdicts, strict=True) if verdict.scores}
    return (
        [f"next: `vieval rank {path}` says which is best, and whether that is significant"] if len(models) > 1 else []
    )


def failures(samples: Sequence[Sample], verdicts: Sequence[Verdict]) -> list[str]:
    """For each status that is a failure, a line with how many there are and what befell the first.

    Of samples that could not be judged every reason has a line: it says what to put into the file.
    """
    first: dict[tuple[str, str], str] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for sample, verdict in zip(samples, verdicts, strict=True):
        if not verdict.status.usable:
            reason = next((step.reason for step in verdict.trace if not step.status.usable), "")
            reason_text = " ".join(reason.split())[:200]
            key = str(verdict.status), reason_text if verdict.status is Status.NOT_APPLICABLE else ""
            counts[key] += 1
            first.setdefault(key, f"{sample.id}: {reason_text}")
    return [f"{key[0]} {n}, the first: {first[key]}" for key, n in counts.items()]


def _mean(values: Sequence[float]) -> str:
    return f"{math.fsum(values) / len(values):.4f} (n {len(values)})" if values else "-"
