"""Score images and write the verdicts.

No human ratings are required. A judge that asks a model requires --model and --base-url, the
environment variables VIEVAL_MODEL and VIEVAL_BASE_URL, or an options file. To resume an interrupted
run, run the same command again.

Examples:
    # score one image, without a model
    vieval score cat.png --prompt 'a sign that says "CAT"' --judge text_rendering
    # score a table of images and prompts
    vieval score images.csv --out verdicts.jsonl --model NAME --base-url http://127.0.0.1:8000/v1
    # estimate the cost
    vieval score images.csv --plan --model NAME --base-url http://127.0.0.1:8000/v1
    # score a data set of any size with four processes
    vieval score data/ --out verdicts/ --judge viescore --processes 4
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import tell
from vieval_plugin.cli.options import (
    DEFAULT_JUDGE,
    ScoreOptions,
    backbone_fields,
    batch_of,
    first_flag,
    named_backbone,
    options_in_force,
    remove_batches,
)

if TYPE_CHECKING:
    from vieval_plugin.config import Config
    from vieval_plugin.judges.contests import Judged
    from vieval_plugin.readers.samples import SampleSource
    from vieval_plugin.results.scored import Scored
    from vieval_plugin.run.prepare import PreparedJudge
    from vieval_plugin.run.progress import Progress
    from vieval_plugin.run.scoring import Request
    from vieval_plugin.run.verdict_log import VerdictLog


def run(options: ScoreOptions) -> int:
    from vieval_plugin.cli.shards.judging import (
        is_of_shards,
        judge_shards,
        plan_shards,
        require_no_shard_flags,
    )
    from vieval_plugin.images import files_of
    from vieval_plugin.judges import registry as judge_registry
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.readers.samples import limited
    from vieval_plugin.results.flat_table import require_known_format
    from vieval_plugin.run.scoring import request_of
    from vieval_plugin.run.strict import require_any_of_first
    from vieval_plugin.run.verdict_lines import run_file
    from vieval_plugin.run.verdict_log import partial_file

    if is_of_shards(options):
        return plan_shards(options) if options.plan else judge_shards(options)
    require_no_shard_flags(options)
    options, images = _checked_flags(options)
    current = options_in_force(options)
    for name in options.judge:
        judge_registry.judge(name, current.judge_files)
    source, judge, setting = _samples_of(options, current)
    source = limited(source, options.limit)
    request = request_of(
        source,
        options.judge,
        options.setting,
        current,
        partial(named_backbone, options),
        default=(judge, setting),
        is_plan=options.plan,
    )
    tell(*source.notes, *_unused(options, request.judges))
    if request.judges and not options.benchmark:
        require_any_of_first(
            source.name,
            source,
            [judge.spec for judge in request.judges],
            options.allow_urls,
        )
    if options.out:
        prompts = [options.prompts] if options.prompts else []
        inputs_to_read = [*map(Path, options.samples), *prompts]
        # a source is read for its files only where OUT is there already
        require_writable(
            options.out,
            reads=chain(inputs_to_read, files_of(row.sample for row in source)),
        )
        for path in (partial_file(options.out), run_file(options.out)):
            require_writable(path, reads=inputs_to_read)
        require_known_format(options.out)
    if options.allow_urls or source.addresses:
        from vieval_plugin.run.addresses import fetch_source_images

        source = fetch_source_images(source, options.allow_urls, options.fresh)
    from vieval_plugin.run.strict import require_calibrated

    require_calibrated(source, request.judges)
    if options.strict:
        from vieval_plugin.run.strict import require_good

        for prepared in request.judges:
            require_good(source, prepared.spec)
    request = replace(
        request, source=source, batch=batch_of(options, Path(f"{options.out}.batches"))
    )
    if options.plan:
        unjudged = [row.sample for row in request.source if row.verdict is None]
        return tell_plan(request, unjudged, request.source.total or 0)
    return _score(options, request, images)


def _checked_flags(options: ScoreOptions) -> tuple[ScoreOptions, bool]:
    """The options with the file of verdicts, and whether images are judged that are named
    themselves; VievalError for flags that do not go together.
    """
    from vieval_plugin.readers.image_folder import are_images, other_than_images
    from vieval_plugin.text.errors import VievalError

    if bool(options.benchmark) == bool(options.samples):
        raise VievalError(
            "--benchmark cannot be combined with samples; remove the samples"
            if options.samples
            else "no samples; pass images, a table, folders, or --benchmark FOLDER"
        )
    sample_options = ("prompts", "kind", "columns", "allow_urls")
    useless = first_flag(options, sample_options)
    if options.benchmark and useless:
        raise VievalError(
            f"{useless} cannot be combined with --benchmark; remove {useless}"
        )
    images = (
        bool(options.samples) and not options.prompts and are_images(options.samples)
    )
    alone = first_flag(options, ("prompt", "source", "instruction"))
    if alone and not images:
        reason = (
            "; --prompts already defines it"
            if options.prompts
            else other_than_images(options.samples)
        )
        raise VievalError(f"{alone} applies only to images passed individually{reason}")
    if options.samples and not (options.out or options.plan or images):
        options = replace(options, out=_file_beside(options.samples[0]))
    if options.batch and not (options.out or options.plan):
        raise VievalError(
            "--batch requires --out FILE, because it saves its requests in the same "
            "folder"
        )
    if options.out is None and not (options.plan or images):
        raise VievalError("--out FILE (or --plan) is required for a benchmark")
    if options.json and not images:
        raise VievalError(
            "--json applies only to images passed individually; other verdicts are written to --out"
        )
    return options, images


def _file_beside(name: str) -> Path:
    """The file of verdicts beside what is judged; VievalError for an address and a data set of
    the hub.
    """
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.untrusted import exists, has_scheme, path_of, real

    path = path_of(name)
    if not exists(path):
        if has_scheme(name):
            raise VievalError(f"--out FILE (or --plan) is required for {name}")
        raise VievalError(
            f"{name}: no such file or folder; for a data set of the Hugging Face Hub, "
            "pass --out FILE (or --plan)"
        )
    path = real(path)
    stem = path.stem if path.is_file() else path.name
    return path.with_name(f"{stem}.verdicts.jsonl")


def _samples_of(
    options: ScoreOptions, current: Config
) -> tuple[SampleSource, str, str | None]:
    """The samples, and the judge and setting that they are for where no other is named."""
    from vieval_plugin.readers.columns import parse_columns
    from vieval_plugin.readers.image_folder import (
        are_images,
        read_image_samples,
        read_named,
    )

    if options.benchmark:
        from vieval_plugin.benchmarks import registry as benchmark_registry

        source = benchmark_registry.source(options.benchmark, current)
        return source, DEFAULT_JUDGE, None
    is_named = options.prompts or options.layout
    if not is_named and are_images(options.samples):
        texts = {"prompt": options.prompt, "instruction": options.instruction}
        known = {name: text for name, text in texts.items() if text}
        files = options.samples
        source = read_image_samples(files, known, options.source, options.kind)
        return source, DEFAULT_JUDGE, None
    from vieval_plugin.results.unjudged import is_run, load_unjudged

    path = Path(options.samples[0])
    if is_named or len(options.samples) > 1 or not is_run(path):
        columns = parse_columns(options.columns)
        arguments = options.prompts, options.kind, columns, options.layout or ""
        return read_named(options.samples, *arguments), DEFAULT_JUDGE, None
    run = load_unjudged(path, current, options.kind)
    return run.source, run.judge or DEFAULT_JUDGE, run.setting


def _unused(options: ScoreOptions, prepared: Sequence[PreparedJudge]) -> list[str]:
    """Lines on flags that have no effect on any judge."""
    names = ", ".join(judge.spec.name for judge in prepared)
    model_options = first_flag(
        options, [name for name in backbone_fields(options) if name != "base_url"]
    )
    lines = []
    if options.scorer and not any(judge.spec.scored for judge in prepared):
        lines.append(f"--scorer has no effect on {names} (no network)")
    if model_options and not any(judge.asks_a_model for judge in prepared):
        lines.append(f"{model_options} has no effect on {names} (no model)")
    if options.plan and options.out:
        lines.append("--out has no effect with --plan, which writes no verdicts")
    return lines


def tell_plan(
    request: Request, samples: Sequence[Judged], total: int, further: Sequence[str] = ()
) -> int:
    """Print what judging samples or contests would cost, and further lines; `total` counts those
    that have their verdict already too.
    """
    from vieval_plugin.judges.protocol import Sample
    from vieval_plugin.run.backbones import JUDGE
    from vieval_plugin.run.plan import obstacle, pilot, plan, to_ask
    from vieval_plugin.run.scoring import lines_by_reason
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say

    for judge in request.judges:
        askable = to_ask(samples, judge)
        if samples and not askable:
            first = samples[0]
            raise VievalError(
                f"{judge.spec.name} cannot judge any of these samples "
                f"(first: {first.id}, {obstacle(first, judge)})"
            )
        cost = asyncio.run(pilot(askable, judge, request.current, request.backbone))
        answering = None
        if judge.asks_a_model:
            answering = request.backbone or request.current.backbones.get(JUDGE)
        say(*plan(cost, answering, by_batches=request.batch is not None))
        unaskable = total - len(askable)
        if unaskable:
            say(f"no questions would be asked about {unaskable} of {total} samples")
        single = (sample for sample in samples if isinstance(sample, Sample))
        demands = judge.spec.demands(single)
        if demands:
            say(demands)
    say(*further)
    tell(*lines_by_reason(request.unable))
    return 1 if request.unable else 0


def _say_notes(options: ScoreOptions, notes: Iterable[str]) -> None:
    """Print each note once, and beside JSON to standard error."""
    from vieval_plugin.text.escaping import say

    lines = dict.fromkeys(filter(None, notes))
    say(*lines, file=sys.stderr if options.json else sys.stdout)


def _score(options: ScoreOptions, request: Request, images: bool) -> int:
    from vieval_plugin.results.scored import (
        Scored,
        image_summary,
        read_scored,
        write_scored,
    )
    from vieval_plugin.run.scoring import lines_by_reason
    from vieval_plugin.run.verdict_lines import (
        inputs_of,
        require_same_judges,
        run_hash,
    )
    from vieval_plugin.run.verdict_log import VerdictLog, log_file, partial_file
    from vieval_plugin.text.escaping import say

    sources = request.sources(options.label)
    runs = {run_hash(source): source for source in sources}
    # what an incomplete run has finished is replaced once the rest is
    if options.out and not partial_file(options.out).exists():
        require_same_judges(options.out, runs)
    inputs = inputs_of(request.source, options.command)
    with log_file(options.out) as path, VerdictLog(path, inputs, runs) as log:
        folder = options.out.parent if options.out else Path()
        is_resumed = log.total > 0
        unable = _judge_all(log, request, options.label, folder, not images)
        complete = {
            run: source
            for run, source in runs.items()
            if log.count(run) == inputs.total
        }
        scored = Scored()
        if options.out and complete:
            scored = write_scored(options.out, log, inputs, complete)
        if images:
            scored = Scored()
            for line, record in read_scored(log, complete, folder, scored):
                say(*([line.rstrip()] if options.json else image_summary(record)))
        log.complete = log.total == sum(map(log.count, complete))
        if log.complete and not scored.progress.failed_calls:
            remove_batches(options, request.batch)
    _tell(options, scored, images, is_resumed)
    _say_notes(options, (source.calibration_note for source in sources))
    tell(*lines_by_reason(unable))
    is_bad = unable or scored.bad_rows or scored.progress.failed_calls
    return 1 if is_bad or not scored.any_scores else 0


def _judge_all(
    log: VerdictLog,
    request: Request,
    label: str,
    folder: Path,
    batch: bool,
) -> list[tuple[str, str]]:
    """Have each judge judge what is not in the log yet; those of several that could not go on,
    with the reason.
    """
    from vieval_plugin.run.progress import Progress
    from vieval_plugin.run.scoring import jobs_left, score_into
    from vieval_plugin.run.session import ask_in_batches
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.wording import plural

    unable = list(request.unable)
    if log.total:
        tell(f"resuming with {plural(log.total, 'verdict')} from an earlier run")
    for prepared, source in zip(request.judges, request.sources(label), strict=True):
        progress = Progress()
        by_batches = request.batch if prepared.asks_a_model else None
        try:
            if by_batches:
                jobs = partial(jobs_left, log, request.source, prepared, source)
                asyncio.run(
                    ask_in_batches(
                        jobs, [prepared], request.current, request.backbone, by_batches
                    )
                )
            asyncio.run(
                score_into(
                    log,
                    request.source,
                    prepared,
                    source,
                    folder,
                    request.current,
                    request.backbone,
                    progress,
                    bar=batch,
                    batch=by_batches,
                )
            )
        except VievalError as error:
            unable.append((prepared.spec.name, str(error)))
            if len(request.judges) == 1 and not request.unable:
                _tell_ended(log, progress)
                raise
        except BaseException:
            _tell_ended(log, progress)
            raise
    return unable


def _tell_ended(log: VerdictLog, progress: Progress) -> None:
    """Print what a run that ends before its time has done so far."""
    from vieval_plugin.text.wording import plural

    tell(progress)
    if log.total:
        verdicts = plural(log.total, "verdict")
        tell(f"saved {verdicts} to {log.path}; run the same command again to resume")


def _tell(
    options: ScoreOptions, scored: Scored, images: bool, is_resumed: bool
) -> None:
    """Print summaries and what was written; of images the latter alone, as their verdicts are
    printed already.
    """
    from vieval_plugin.results.flat_table import is_flat
    from vieval_plugin.text.escaping import say

    if not images or (scored.progress.failed_calls and scored.progress.usage.calls):
        if is_resumed:
            tell(
                "all counts below include the interrupted run; if it was killed, its "
                "last calls are missing"
            )
        tell(scored.progress)
    if not images:
        for judge, summary in scored.summaries.values():
            say(summary.answer(judge), "", *summary.lines(), "")
        elsewhere = ""
        if options.out and not is_flat(options.out):
            elsewhere = f"`vieval report {options.out} --out FOLDER` writes them"
        for table in scored.benchmarks.tables():
            # folders of no benchmark are judged without what makes reports
            from vieval_plugin.report.tables import table_lines

            say(*table_lines(table, elsewhere))
    if options.out and scored.summaries:
        (_, first), *_ = scored.summaries.values()
        next_step = [] if is_flat(options.out) else first.next_step(options.out)
        say(
            f"wrote {options.out}",
            *next_step,
            file=sys.stderr if options.json else sys.stdout,
        )
    if not scored.any_scores:
        act = "scored" if scored.judged else "judged"
        tell(f"no sample could be {act} (see above)")
