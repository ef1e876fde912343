"""Verdicts of `vieval score` in the samples' order: counted, written to the file that is asked for, and in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vieval_plugin.judges.contests import candidates_of
from vieval_plugin.judges.protocol import OUTPUTS, Status
from vieval_plugin.media.files import write_whole
from vieval_plugin.readers.layout import Layout
from vieval_plugin.records import UNJUDGED, Provenance, Record
from vieval_plugin.results.flat_table import is_flat, write_flat
from vieval_plugin.results.own_verdicts import record_of_line
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.summary import ScoreSummary
from vieval_plugin.run.verdict_lines import Inputs, runs_document, write_run_file
from vieval_plugin.run.verdict_log import VerdictLog

_REASON = 300  # characters of a reason that are printed
_MOST_CATEGORIES = 12  # whose means are printed
_MOST_STEPS = 4  # lines below an image's scores


@dataclass
class LayoutTotals:
    """Scores of a run, by category and by prompt."""

    layout: Layout
    #: Scores by judge, image model and category.
    by_category: dict[tuple[str, str], dict[str, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    #: Scores of each prompt's images by judge and image model; None for one that has none.
    by_prompt: dict[tuple[str, str], dict[str, list[float | None]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def add(self, record: Record) -> None:
        """Count a verdict: its main score, or 1 and 0 for right and wrong where the layout has a threshold."""
        group = record.provenance.judge, record.id.image_model
        aspects = record.provenance.aspects
        main_aspect = "O" if "O" in aspects else next(iter(aspects), "")
        score = record.verdict.scores.get(main_aspect)
        if score is not None and self.layout.threshold is not None:
            score = float(score >= self.layout.threshold)
        self.by_prompt[group][record.id.uid].append(score)
        if score is not None:
            self.by_category[group][record.category].append(score)

    def lines(self) -> Iterator[str]:
        """The totals that the layout names, a line each."""
        is_share = self.layout.threshold is not None
        unit = f"share of right images (score from {self.layout.threshold:g} on)" if is_share else "mean score"
        for (judge, image_model), categories in self.by_category.items():
            name = f"{judge}, {image_model}"
            if "categories" in self.layout.totals:
                means = {category: sum(scores) / len(scores) for category, scores in sorted(categories.items())}
                listed = ", ".join(
                    f"{category or '-'} {mean:.3f}" for category, mean in [*means.items()][:_MOST_CATEGORIES]
                )
                total = sum(means.values()) / len(means)
                yield f"{name}: {unit}, mean of {len(means)} categories {total:.3f} ({listed})"
            prompts = list(self.by_prompt[judge, image_model].values())
            for total_name in ("all", "any"):
                if is_share and total_name in self.layout.totals:
                    yield f"{name}: {_share_line(prompts, total_name)}"


@dataclass
class Scored:
    """Verdicts of one or several judges as they are counted."""

    #: Judge and summary of each run.
    summaries: dict[str, tuple[str, ScoreSummary]] = field(default_factory=dict)
    #: Cost and statuses of all.
    progress: Progress = field(default_factory=Progress)
    #: Verdicts of judges that were asked.
    judged: int = 0
    #: Verdicts on rows that nobody could judge.
    bad_rows: int = 0
    #: Totals of a benchmark's layout; None for other samples.
    totals: LayoutTotals | None = None

    @property
    def any_scores(self) -> bool:
        """Return whether a verdict has a score."""
        return any(counts.scored for _, summary in self.summaries.values() for counts in summary.by_group.values())

    def add(self, summary: ScoreSummary, record: Record) -> None:
        """Count a verdict, in the summary of its run too."""
        verdict = record.verdict
        summary.add(record.id, verdict)
        if self.totals:
            self.totals.add(record)
        self.progress.count(verdict, record.provenance.judge)
        unasked = any(UNJUDGED in (step.path, step.path[1:]) for step in verdict.trace[:1])
        self.judged += not unasked
        if (
            verdict.status is Status.NO_IMAGE
        ):  # a file that is named is one to look after, and an answer in words is none
            samples = candidates_of(record.sample) if record.sample else ()
            self.bad_rows += any(role in OUTPUTS for sample in samples for role in sample.images)
        else:
            self.bad_rows += unasked and verdict.status is not Status.NOT_APPLICABLE


def read_scored(
    log: VerdictLog, runs: Mapping[str, Provenance], folder: Path, scored: Scored
) -> Iterator[tuple[str, Record]]:
    """The lines and records of runs, one run after another, each in the samples' order; they are counted on the way.

    Args:
        log: which holds them.
        runs: those that are read.
        folder: where relative paths start.
        scored: what they are added to.
    """
    scored.progress.usage = log.usage(*runs)
    for run, provenance in runs.items():
        summary = ScoreSummary((*provenance.aspects, *provenance.calibration[:1]))
        scored.summaries[run] = provenance.judge, summary
        for line in log.lines(run):
            record = record_of_line(line, folder, runs)
            scored.add(summary, record)
            yield line, record


def write_scored(
    out: Path, log: VerdictLog, inputs: Inputs, runs: Mapping[str, Provenance], layout: Layout | None = None
) -> Scored:
    """Write the verdicts of complete runs, as lines or as a flat table, with what they have in common beside them.

    Raises:
        VievalError: a file cannot be written there.
    """
    scored = Scored(totals=LayoutTotals(layout) if layout else None)
    read = read_scored(log, runs, out.parent, scored)
    with write_run_file(out, runs_document(inputs, runs, {run: log.usage(run) for run in runs})):
        if is_flat(out):
            scores = [score for run in runs.values() for score in (*run.aspects, *run.calibration[:1])]
            write_flat(out, (record for _, record in read), scores)
        else:
            write_whole(out, (line for line, _ in read))
    return scored


def image_summary(record: Record) -> Iterator[str]:
    """At most five lines on an image: its scores, and the sub-scores and reason of the first answers."""
    verdict, source = record.verdict, record.provenance
    by = " ".join([source.judge, *source.settings, *(["by", source.backbone] if source.pack else [])])
    scores = ", ".join(f"{aspect} {score:.2f}" for aspect, score in verdict.scores.items())
    yield f"{record.id.uid}: {scores or 'no score'} ({by}{'' if verdict.status.usable else f', {verdict.status}'})"
    steps = [step for step in verdict.trace if step.scores or not step.status.usable]
    last = _MOST_STEPS if len(steps) <= _MOST_STEPS else _MOST_STEPS - 1
    if len(steps) > 1 and len({step.failure for step in steps}) == 1 and not any(s.scores for s in steps):
        yield f"  {', '.join(step.label for step in steps)}: {' '.join(steps[0].failure.split())[:_REASON]}"
        return
    for step in steps[:last]:
        numbers = ", ".join(f"{score:.3g}" for score in step.scores)
        yield f"  {': '.join(filter(None, (step.label, numbers, ' '.join(step.failure.split())[:_REASON])))}"
    if steps[last:]:
        yield f"  and {len(steps) - last} further answers: --out FILE keeps them all, and `vieval show FILE` shows them"


def _share_line(prompts: Sequence[Sequence[float | None]], total: str) -> str:
    """The share of prompts of which all or any images are right; one that a failure leaves open is left out."""
    decided = []
    for scores in prompts:
        known = [score for score in scores if score is not None]
        is_right = all(known) if total == "all" else any(known)
        is_open = len(known) < len(scores) and is_right == (total == "all")
        if not is_open:
            decided.append(is_right)
    left_out = f", {len(prompts) - len(decided)} left out for failures" if len(decided) < len(prompts) else ""
    value = f"{sum(decided) / len(decided):.3f}" if decided else "-"
    return f"prompts with {total} images right {value} (n {len(decided)}{left_out})"
