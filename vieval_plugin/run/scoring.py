"""Score samples with one judge after another and write verdicts to a log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vieval_plugin.backends.http.batches import BatchOptions
from vieval_plugin.config import Backbone, Config
from vieval_plugin.readers.absent_images import absence
from vieval_plugin.readers.samples import SampleRow, SampleSource
from vieval_plugin.records import Provenance
from vieval_plugin.run.backbones import require_model
from vieval_plugin.run.evaluate import provenance_of
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.judging_bar import judging_bar
from vieval_plugin.run.prepare import PreparedJudge, prepare
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scheduler import Outcome, add_findings
from vieval_plugin.run.session import Session
from vieval_plugin.run.strict import require_texts
from vieval_plugin.run.verdict_lines import run_hash, verdict_line
from vieval_plugin.run.verdict_log import VerdictLog
from vieval_plugin.text.errors import VievalError


@dataclass(frozen=True)
class Request:
    """Samples, and who judges them."""

    source: SampleSource
    #: Judges that are ready.
    judges: Sequence[PreparedJudge]
    #: Options in force.
    current: Config
    #: Backbone that arguments name; None for those of the options.
    backbone: Backbone | None
    #: Judges of several that cannot run, with the reason of each.
    unable: tuple[tuple[str, str], ...] = ()
    #: Questions are asked by batches first.
    batch: BatchOptions | None = None

    def sources(self, label: str) -> list[Provenance]:
        """The origins of the verdicts, one a judge, each with the label."""
        return [
            replace(provenance_of(judge, self.current, self.backbone), label=label)
            for judge in self.judges
        ]


def request_of(
    source: SampleSource,
    names: Sequence[str],
    setting: str | None,
    current: Config,
    named_backbone: Callable[[Config], Backbone | None],
    default: tuple[str, str | None] = ("viescore", None),
    is_plan: bool = False,
) -> Request:
    """The judges that are ready to run, and lines on those of several that are not.

    Args:
        source: the samples.
        names: of judges.
        setting: of the judges.
        current: options in force.
        named_backbone: function that finds the backbone that arguments name, called where a judge
            asks a model.
        default: the judge where none is named, and its setting.
        is_plan: True for a plan, which needs no model.

    Raises:
        VievalError: the only judge cannot run.
    """
    judge, own_setting = default
    names = list(dict.fromkeys(names or [judge]))
    judges = []
    unable = list[tuple[str, str]]()
    backbone = None
    for name in names:
        judge_setting = setting or (own_setting if name == judge else None)
        try:
            prepared = prepare(name, judge_setting, current)
            require_texts(source, prepared.spec)
            if prepared.asks_a_model:
                backbone = named_backbone(current)
                prepared = prepare(name, judge_setting, current, backbone)
                if not is_plan:
                    require_model(name, current, backbone)
            judges.append(prepared)
        except VievalError as error:
            if len(names) == 1:
                raise
            unable.append((name, str(error)))
    return Request(
        source,
        judges,
        current,
        backbone,
        tuple(unable),
    )


def lines_by_reason(failures: Iterable[tuple[str, str]]) -> list[str]:
    """Group judges that could not run by reason, one line each.

    >>> lines_by_reason([("viescore", "no server"), ("ssim", "no source"), ("pairwise", "no server")])
    ['viescore, pairwise: no server', 'ssim: no source']
    """
    names: dict[str, list[str]] = {}
    for name, reason in failures:
        names.setdefault(reason, []).append(name)
    return [f"{', '.join(judges)}: {reason}" for reason, judges in names.items()]


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
        VievalError: the run cannot continue; finished verdicts are in the log.
    """
    run = run_hash(provenance)

    def write(
        number: int,
        row: SampleRow,
        outcome: Outcome,
    ) -> None:
        log.append(
            run,
            number,
            verdict_line(
                number,
                row.sample,
                add_findings(outcome, row.findings),
                provenance,
                run,
                folder,
            ),
            progress.usage,
        )
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
                options,
                backbone,
                progress,
                prepared.asks_a_model,
                batch,
            ) as session:
                await session.judge_stream(open_rows(), prepared, write, repeat)
        finally:
            log.note_usage(run, progress.usage)
