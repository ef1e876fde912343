"""Scoring of a stream of samples into a log of verdicts, by one judge after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from vieval_plugin.backends.http.batches import BatchOptions
from vieval_plugin.config import Backbone, Config
from vieval_plugin.readers.absent_images import absence
from vieval_plugin.readers.samples import SampleRow, SampleSource
from vieval_plugin.records import Provenance
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.judging_bar import judging_bar
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.run.session import Session
from vieval_plugin.run.verdict_lines import run_hash, verdict_line
from vieval_plugin.run.verdict_log import VerdictLog


def jobs_left(
    log: VerdictLog,
    source: SampleSource,
    prepared: PreparedJudge,
    provenance: Provenance,
    repeat: int = 0,
) -> Iterator[Job]:
    """The samples of which the log has no verdict yet and that a judge is to be asked about."""
    run = run_hash(provenance)
    for number, row in enumerate(source):
        if not (log.holds(run, number) or row.verdict or absence(row.sample)):
            yield Job(row.sample, prepared, repeat)


async def score_into(
    log: VerdictLog,
    source: SampleSource,
    prepared: PreparedJudge,
    provenance: Provenance,
    folder: Path,
    options: Config,
    backbone: Backbone | None,
    progress: Progress,
    bar: bool,
    batch: BatchOptions | None = None,
    repeat: int = 0,
) -> None:
    """Judge the samples of which the log has no verdict yet; each verdict is written as it comes.

    Args:
        log: of this run among others.
        source: the samples.
        prepared: the judge.
        provenance: that of its verdicts.
        folder: where relative paths in the log start.
        options: those in force.
        backbone: the model that answers, where a command names it and not the options.
        progress: counts calls, tokens and failures of this attempt.
        bar: whether to show a progress bar.
        batch: folder in which batches have answered all questions; None for calls.
        repeat: number of these verdicts among those on the same, from 0.

    Raises:
        VievalError: the run cannot go on; what was judged is in the log.
    """
    run = run_hash(provenance)

    def write(number: int, row: SampleRow, outcome: Outcome) -> None:
        findings = (*outcome.verdict.findings, *row.findings)
        outcome = replace(outcome, verdict=replace(outcome.verdict, findings=findings))
        line = verdict_line(number, row.sample, outcome, provenance, run, folder)
        log.append(run, number, line, progress.usage)
        update(1)

    def open_rows() -> Iterator[tuple[int, SampleRow]]:
        for number, row in enumerate(source):
            if log.holds(run, number):
                update(1)
            elif verdict := row.verdict or absence(row.sample):
                write(number, row, Outcome(verdict))
            else:
                yield number, row

    with judging_bar(progress, source.total, bar) as update:
        try:
            async with Session(
                options, backbone, progress, prepared.asks_a_model, batch
            ) as session:
                await session.judge_stream(open_rows(), prepared, write, repeat)
        finally:
            log.note_usage(run, progress.usage)
