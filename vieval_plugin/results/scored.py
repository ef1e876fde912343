"""Count the verdicts of `vieval score` in sample order, write them to a file, and
summarise them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.judges.contests import candidates_of
from vieval_plugin.judges.protocol import OUTPUTS, Status, Step
from vieval_plugin.media.files import write_whole
from vieval_plugin.records import UNJUDGED, YOUR_IMAGES, Provenance, Record, Run, Totals
from vieval_plugin.results.flat_table import is_flat, write_flat
from vieval_plugin.results.own_verdicts import record_of_line
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.summary import ScoreSummary
from vieval_plugin.run.verdict_lines import Inputs, runs_document, write_run_file
from vieval_plugin.run.verdict_log import VerdictLog
from vieval_plugin.text.wording import decimals, plural

if TYPE_CHECKING:
    from vieval_plugin.meta_evaluation.tables import Table

_REASON = 300  # characters of a reason that are printed
_MOST_STEPS = 4  # lines below an image's scores


@dataclass(frozen=True)
class _ImageScore:
    #: Category of its prompt.
    category: str
    #: Uid of its prompt.
    prompt: str
    #: Its main score, or 1 and 0 for right and wrong; NaN without a score.
    score: float


@dataclass
class BenchmarkScores:
    """Scores of benchmark images, from which totals are computed."""

    #: Scores by benchmark, judge and generator.
    by_system: dict[tuple[Totals, str, str], list[_ImageScore]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add(self, record: Record, judge: str) -> None:
        """Count the main score of a verdict; if the benchmark has a threshold, as 1 or
        0 for right or wrong.
        """
        totals = record.totals
        if totals is None:
            return
        aspects = record.provenance.aspects
        main_aspect = "O" if "O" in aspects else next(iter(aspects), "")
        score = record.verdict.scores.get(main_aspect, math.nan)
        if totals.threshold is not None and not math.isnan(score):
            score = float(score >= totals.threshold)
        generator = record.id.image_model or YOUR_IMAGES
        image = _ImageScore(
            record.category,
            record.id.uid,
            score,
        )
        self.by_system[totals, judge, generator].append(image)

    def tables(self) -> list[Table]:
        """Build one table per benchmark, with totals per judge and generator and the
        mean of each category.
        """
        benchmarks = dict.fromkeys(totals for totals, _, _ in self.by_system)
        return [
            self._table(totals, f"totals_{number}")
            for number, totals in enumerate(benchmarks, start=1)
        ]

    def _table(self, totals: Totals, name: str) -> Table:
        from vieval_plugin.meta_evaluation.tables import Table

        rows = [
            (judge, generator, *row)
            for (benchmark, judge, generator), images in self.by_system.items()
            if benchmark == totals
            for row in _total_rows(totals, images)
        ]
        unit = "mean score"
        if totals.threshold is not None:
            unit = (
                "share of correct images "
                f"(score at least {totals.threshold:g}), "
                "and of prompts with all or any images correct"
            )
        shares = [(f"{share} right", f"prompts ({share})") for share in _shares(totals)]
        header = ("judge", "generator", "category", "mean", "images", "scored")
        title = f"Totals of {totals.benchmark}: {unit}"
        columns = (*header, *chain(*shares))
        return Table(
            name,
            title,
            columns,
            tuple(rows),
        )


def _shares(totals: Totals) -> list[str]:
    """Shares of prompts among the totals of a benchmark."""
    has_threshold = totals.threshold is not None
    return [name for name in ("all", "any") if has_threshold and name in totals.names]


def _total_rows(
    totals: Totals, images: Sequence[_ImageScore]
) -> Iterator[tuple[str, ...]]:
    """Yield the totals of a judge and a generator, starting with the category: first
    for all images, then for each category.
    """
    by_category = defaultdict[str, list[_ImageScore]](list)
    if "categories" in totals.names:
        for image in images:
            by_category[image.category].append(image)
    means = [_mean_score(part) for part in by_category.values()]
    unit = "category" if len(means) == 1 else "categories"
    overall = ("all images", _mean_score(images), images)
    if by_category:
        label = f"mean of {len(means)} {unit}"
        overall = (label, _mean(means), images)
    parts = (
        (category or "no category", _mean_score(part), part)
        for category, part in sorted(by_category.items())
    )
    for category, mean, scores in (overall, *parts):
        scored = sum(not math.isnan(image.score) for image in scores)
        cells = [
            category,
            _decimals(mean),
            str(len(scores)),
            str(scored),
        ]
        for share in _shares(totals):
            decided = _decided_prompts(scores, share)
            cells += [_decimals(_mean(decided)), str(len(decided))]
        yield tuple(cells)


def benchmark_tables(runs: Iterable[Run]) -> list[Table]:
    """Build tables with the totals of the benchmarks whose layouts the images follow."""
    scores = BenchmarkScores()
    for run in runs:
        for record in run.all_records:
            scores.add(record, str(run.name))
    return scores.tables()


@dataclass
class Scored:
    """Verdicts of one or several judges while they are counted."""

    #: Judge and summary of each run.
    summaries: dict[str, tuple[str, ScoreSummary]] = field(default_factory=dict)
    #: Cost and statuses of all.
    progress: Progress = field(default_factory=Progress)
    #: Verdicts for which the judge was asked.
    judged: int = 0
    #: Verdicts on rows that could not be judged.
    bad_rows: int = 0
    #: Scores of the images of benchmarks.
    benchmarks: BenchmarkScores = field(default_factory=BenchmarkScores)

    @property
    def any_scores(self) -> bool:
        """Return whether any verdict has a score."""
        return any(
            counts.scored
            for _, summary in self.summaries.values()
            for counts in summary.by_group.values()
        )

    def add(self, summary: ScoreSummary, record: Record) -> None:
        """Count a verdict, also in the summary of its run."""
        verdict = record.verdict
        summary.add(record.id, verdict)
        self.benchmarks.add(record, record.provenance.judge)
        self.progress.count(verdict, record.provenance.judge)
        unasked = any(
            UNJUDGED in (step.path, step.path[1:]) for step in verdict.trace[:1]
        )
        self.judged += not unasked
        # a file that is named is one to look after, and an answer in words is none
        if verdict.status is Status.NO_IMAGE:
            samples = candidates_of(record.sample) if record.sample else ()
            self.bad_rows += any({*OUTPUTS} & {*sample.images} for sample in samples)
        else:
            self.bad_rows += unasked and verdict.status is not Status.NOT_APPLICABLE


def read_scored(
    log: VerdictLog,
    runs: Mapping[str, Provenance],
    folder: Path,
    scored: Scored,
    totals: Totals | None = None,
) -> Iterator[tuple[str, Record]]:
    """Yield and count the lines and records of runs, one run after another, each in
    sample order.

    Args:
        log: to read from.
        runs: to read.
        folder: where relative paths start.
        scored: to add the counts to.
        totals: of the benchmark whose layout the images follow.
    """
    scored.progress.usage = log.usage(*runs)
    for run, provenance in runs.items():
        summary = ScoreSummary((*provenance.aspects, *provenance.calibrated_scores))
        scored.summaries[run] = provenance.judge, summary
        for line in log.lines(run):
            record = record_of_line(line, folder, runs, {"totals": totals})
            scored.add(summary, record)
            yield line, record


def write_scored(
    out: Path,
    log: VerdictLog,
    inputs: Inputs,
    runs: Mapping[str, Provenance],
) -> Scored:
    """Write the verdicts of complete runs, as lines or as a flat table, with a run file
    for their shared fields.

    Raises:
        VievalError: a file cannot be written.
    """
    scored = Scored()
    read = read_scored(
        log,
        runs,
        out.parent,
        scored,
        inputs.totals,
    )
    usage = {run: log.usage(run) for run in runs}
    with write_run_file(out, runs_document(inputs, runs, usage)):
        if is_flat(out):
            scores = ((*run.aspects, *run.calibrated_scores) for run in runs.values())
            records = (record for _, record in read)
            write_flat(
                out,
                records,
                chain(*scores),
            )
        else:
            write_whole(out, (line for line, _ in read))
    return scored


def image_summary(record: Record) -> Iterator[str]:
    """Yield at most five lines on an image: its scores, and the sub-scores and reasons
    of the first answers.
    """
    yield _score_line(record)
    steps = [
        step for step in record.verdict.trace if step.scores or not step.status.usable
    ]
    last = _MOST_STEPS if len(steps) <= _MOST_STEPS else _MOST_STEPS - 1
    alike = {(step.failure, step.scores) for step in steps}
    if len(steps) > 1 and len(alike) == 1 and not steps[0].scores:
        labels = ", ".join(step.label for step in steps)
        yield f"  {labels}: {_failure(steps[0])}"
        return
    for step in steps[:last]:
        numbers = ", ".join(f"{score:.3g}" for score in step.scores)
        parts = (step.label, numbers, _failure(step))
        yield f"  {': '.join(filter(None, parts))}"
    if steps[last:]:
        yield (
            f"  and {plural(len(steps) - last, 'more answer')}: --out FILE stores all of them, "
            "and `vieval show FILE` prints them"
        )


def _score_line(record: Record) -> str:
    """The line with an image's scores and its judge."""
    verdict = record.verdict
    source = record.provenance
    model = ["by", source.backbone] if source.pack else []
    by = " ".join([source.judge, *source.settings, *model])
    scores = ", ".join(
        f"{aspect} {score:.2f}" for aspect, score in verdict.scores.items()
    )
    status = "" if verdict.status.usable else f", {verdict.status}"
    return f"{record.id.uid}: {scores or 'no score'} ({by}{status})"


def _failure(step: Step) -> str:
    return " ".join(step.failure.split())[:_REASON]


def _mean(scores: Iterable[float]) -> float:
    """Mean of the defined scores; NaN if there are none."""
    defined = [score for score in scores if not math.isnan(score)]
    if defined:
        return sum(defined) / len(defined)
    return math.nan


def _mean_score(images: Sequence[_ImageScore]) -> float:
    return _mean(image.score for image in images)


def _decimals(value: float) -> str:
    return decimals(value, ".3f", "-")


def _decided_prompts(images: Sequence[_ImageScore], share: str) -> list[bool]:
    """Return for each prompt whether all or any of its images are right, without
    prompts that a failure leaves open.
    """
    by_prompt: dict[str, list[float]] = defaultdict(list)
    for image in images:
        by_prompt[image.prompt].append(image.score)
    decided = []
    for scores in by_prompt.values():
        defined = [score for score in scores if not math.isnan(score)]
        is_right = all(defined) if share == "all" else any(defined)
        # a failure could turn it
        if len(defined) == len(scores) or is_right != (share == "all"):
            decided.append(is_right)
    return decided
