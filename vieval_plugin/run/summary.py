"""Printed summary of verdicts on a user's own samples, counted one after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten

from vieval_plugin.judges.protocol import SampleId, Status, Verdict
from vieval_plugin.text.tables import text_table
from vieval_plugin.text.wording import plural

NOT_APPLICABLE = "not applicable"
#: What contests that were decided are counted under.
CHOICE = "choice"
#: How many image models an answer names.
_MOST_MODELS = 5

_LONGEST_REASON = 400


@dataclass
class _Counts:
    """Verdicts on one image model's samples of one kind."""

    samples: int = 0
    failures: Counter[Status] = field(default_factory=Counter)
    #: Sums of scores, by aspect.
    sums: Counter[str] = field(default_factory=Counter)
    #: Numbers of scores, by aspect.
    scored: Counter[str] = field(default_factory=Counter)

    @property
    def applicable(self) -> int:
        """The number of samples that the judge applies to."""
        return self.samples - self.failures[Status.NOT_APPLICABLE]


@dataclass
class ScoreSummary:
    """Verdicts of a judge by image model and kind, and the failures among them."""

    #: Aspects of the judge.
    aspects: Sequence[str]
    #: Counts by image model and kind.
    by_group: dict[tuple[str, str], _Counts] = field(default_factory=dict)
    #: Failures by status and reason.
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: The first of each, in words.
    first: dict[tuple[str, str], str] = field(default_factory=dict)
    #: True if prompts have several images of one model, over which a ranking averages first.
    has_several_images: bool = False

    def add(self, identity: SampleId, verdict: Verdict) -> None:
        """Count the verdict on a sample, or on a contest with the scores of its candidates."""
        counts = self.by_group.setdefault(
            (identity.image_model, identity.part), _Counts()
        )
        counts.samples += 1
        self.has_several_images |= identity.draw > 0
        choice = verdict.choice
        for scores in choice.scores if choice else (verdict.scores,):
            counts.sums.update(scores)
            counts.scored.update(scores.keys())
        if choice and verdict.status.usable:
            counts.scored[CHOICE] += 1
        if not verdict.status.usable:
            counts.failures[verdict.status] += 1
            failure = next(
                (step.failure for step in verdict.trace if not step.status.usable), ""
            )
            reason = shorten(failure, _LONGEST_REASON, placeholder=" ...")
            is_cause = verdict.status is Status.NOT_APPLICABLE
            key = str(verdict.status), reason if is_cause else ""
            self.failures[key] += 1
            self.first.setdefault(key, f"{identity}: {reason}")

    def answer(self, judge: str) -> str:
        """A line with the mean O of each image model, the highest first; of the first aspect
        where the judge rates no O.
        """
        aspect = "O" if "O" in self.aspects else next(iter(self.aspects), "")
        sums = Counter[str]()
        scored = Counter[str]()
        for (model, _), counts in self.by_group.items():
            sums[model] += counts.sums[aspect]
            scored[model] += counts.scored[aspect]
        means = [(sums[model] / n, model) for model, n in scored.items() if n]
        means.sort(reverse=True)
        if not means:
            decided = sum(counts.scored[CHOICE] for counts in self.by_group.values())
            return f"{judge}: " + (
                f"{plural(decided, 'contest')} decided" if decided else "no scores"
            )
        shown_means = means[:_MOST_MODELS]
        models = [f"{model} {mean:.3f}".strip() for mean, model in shown_means]
        if hidden := len(means) - len(shown_means):
            models.append(f"{hidden} more below")
        scope = " over images" if self.has_several_images else ""
        return f"{judge}, mean {aspect}{scope}: {', '.join(models)}"

    def lines(self) -> list[str]:
        """One table line per image model and, with several kinds, one per kind of each;
        below them the failures.

        It has the number of samples, the mean of each aspect over those scored, failures by status,
        and how many samples the judge does not apply to, where there are some. A kind that it does
        not support has no line.
        """
        applicable = {
            (model, kind): counts
            for (model, kind), counts in self.by_group.items()
            if counts.applicable or not kind
        }
        applicable = applicable or self.by_group
        by_kind = len({kind for _, kind in applicable}) > 1
        unasked = any(
            counts.failures[Status.NOT_APPLICABLE] for counts in applicable.values()
        )
        header = (
            "image model",
            *(("kind",) if by_kind else ()),
            "samples",
            *self.aspects,
            "failed",
        )
        rows = [(*header, *((NOT_APPLICABLE,) if unasked else ()))]
        for (model, kind), counts in applicable.items():
            failures = counts.failures.items()
            failed = [
                f"{status} {n}"
                for status, n in failures
                if status is not Status.NOT_APPLICABLE
            ]
            kind_cells = (kind or "-",) if by_kind else ()
            cells = (model or "-", *kind_cells, str(counts.samples))
            means = (_mean(counts, aspect) for aspect in self.aspects)
            last = (str(counts.failures[Status.NOT_APPLICABLE]),) if unasked else ()
            rows.append((*cells, *means, ", ".join(failed) or "0", *last))
        return [*text_table(rows), *self.failure_lines()]

    def failure_lines(self) -> list[str]:
        """For each status that is a failure, a line with how many there are and what befell the
        first.

        Of samples that could not be judged every reason has a line: it says what to put into the
        file.
        """
        return [
            f"{key[0]} {n}, first: {self.first[key]}"
            for key, n in self.failures.items()
        ]

    def next_step(self, path: Path) -> list[str]:
        """The command to run next where several image models have scores; nothing where one has."""
        models = {
            model for (model, _), counts in self.by_group.items() if counts.scored
        }
        if len(models) < 2:
            return []
        return [
            f"next: `vieval rank {path}` shows which generator is best, and whether "
            "the difference is significant"
        ]


def failures(verdicts: Iterable[tuple[SampleId, Verdict]]) -> list[str]:
    """The lines on failures of `ScoreSummary`."""
    summary = ScoreSummary(())
    for identity, verdict in verdicts:
        summary.add(identity, verdict)
    return summary.failure_lines()


def _mean(counts: _Counts, aspect: str) -> str:
    number = counts.scored[aspect]
    part = f" (n {number})" if number != counts.samples else ""
    if number:
        return f"{counts.sums[aspect] / number:.3f}{part}"
    return "-"
