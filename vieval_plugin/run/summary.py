"""What is said of verdicts on a user's own samples at the end of a run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from vieval_plugin.judges.protocol import Sample, Status, Verdict
from vieval_plugin.text.tables import text_table

LACKING = "not applicable"


def summary(samples: Sequence[Sample], verdicts: Sequence[Verdict], aspects: Sequence[str]) -> list[str]:
    """A table line an image model, and where there are several kinds a line a kind of each.

    It has the number of samples, the mean of each aspect over those scored, failures by status, and how many samples the
    judge does not apply to, where there are some.
    """
    by_kind = len({sample.kind for sample in samples}) > 1
    lacking = any(verdict.status is Status.NOT_APPLICABLE for verdict in verdicts)
    rows: list[tuple[str, ...]] = [
        (
            "image model",
            *(("kind",) if by_kind else ()),
            "samples",
            *aspects,
            "failed",
            *((LACKING,) if lacking else ()),
        )
    ]
    apart: dict[tuple[str, ...], list[Verdict]] = {}
    for sample, verdict in zip(samples, verdicts, strict=True):
        model, kind = sample.id.image_model or "-", sample.kind or "-"
        apart.setdefault((model, kind) if by_kind else (model,), []).append(verdict)
    for of, found in apart.items():
        means = [_mean([v.scores[a] for v in found if a in v.scores]) for a in aspects]
        counted = Counter(v.status for v in found if not v.status.usable)
        unasked = counted.pop(Status.NOT_APPLICABLE, 0)
        failed = ", ".join(f"{status} {n}" for status, n in counted.items()) or "0"
        rows.append((*of, str(len(found)), *means, failed, *((str(unasked),) if lacking else ())))
    return text_table(rows)


def next_step(samples: Sequence[Sample], verdicts: Sequence[Verdict], out: Path) -> list[str]:
    """What to run next where several image models have scores; nothing where one has."""
    models = {sample.id.image_model for sample, one in zip(samples, verdicts, strict=True) if one.scores}
    return [f"next: `vieval rank {out}` says which is best, and whether that is significant"] if len(models) > 1 else []


def failures(samples: Sequence[Sample], verdicts: Sequence[Verdict]) -> list[str]:
    """For each status that is a failure, a line with how many there are and what befell the first.

    Of samples that could not be judged every reason has a line: it says what to put into the file.
    """
    first: dict[tuple[str, str], str] = {}
    counted: Counter[tuple[str, str]] = Counter()
    for sample, verdict in zip(samples, verdicts, strict=True):
        if not verdict.status.usable:
            reason = next((step.reason for step in verdict.trace if not step.status.usable), "")
            told = " ".join(reason.split())[:200]
            key = str(verdict.status), told if verdict.status is Status.NOT_APPLICABLE else ""
            counted[key] += 1
            first.setdefault(key, f"{sample.id}: {told}")
    return [f"{key[0]} {n}, the first: {first[key]}" for key, n in counted.items()]


def _mean(values: Sequence[float]) -> str:
    return f"{math.fsum(values) / len(values):.4f} (n {len(values)})" if values else "-"
