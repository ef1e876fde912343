"""The part of `vieval score` that judges data sets into a folder of shards."""

from __future__ import annotations

import asyncio
import os
import tempfile
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from vieval_plugin.cli import tell
from vieval_plugin.cli.options import (
    DEFAULT_JUDGE,
    ScoreOptions,
    ShardOptions,
    backbone_of,
    batch_of,
    first_flag,
    options_in_force,
    remove_batches,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from vieval_plugin.backends.http.batches import BatchOptions
    from vieval_plugin.run.shards.passes import PassQueue
    from vieval_plugin.run.shards.start import ShardRequest, StartedRun
    from vieval_plugin.run.shards.worker import ShardRun

    Launcher: TypeAlias = Callable[
        [ShardRun, PassQueue, Callable[[int], None]], list[str]
    ]

_FILES = (".jsonl", ".csv", ".parquet")
_PLANNED_ROWS = 16  # rows of a shard that are read for one that is drawn
_SHOWN_SHARDS = 10  # shards that were not written
_FILE_OPTIONS = (
    "benchmark",
    "prompts",
    "prompt",
    "source",
    "instruction",
    "layout",
    "json",
    "strict",
)


def is_of_shards(options: ScoreOptions) -> bool:
    """Return whether verdicts go to a folder of shards, or would without --plan, by --out and by
    what is judged.

    Raises:
        VievalError: they do not, and what is judged are tar files, a pattern or data in object
            storage, or --out is an address.
    """
    from vieval_plugin.readers.places import location_of
    from vieval_plugin.run.shards.inputs import (
        is_data_set,
        is_for_shards_alone,
        is_object_storage,
    )
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.redaction import redacted
    from vieval_plugin.text.untrusted import has_scheme

    takes_shards = (
        options.out is not None
        and not options.plan
        and options.out.suffix.lower() not in _FILES
    )
    if takes_shards and any(map(is_data_set, options.samples)):
        return True
    if options.out and has_scheme(options.out):
        address = redacted(location_of(options.out)).partition("?")[0]
        raise VievalError(
            f"--out must be a local path, got {address}; object storage is supported only for "
            "folders of shards of parquet or tar files"
        )
    candidates = [] if takes_shards else options.samples
    for_shards = list(filter(is_for_shards_alone, candidates))
    if for_shards and not options.plan:
        location = for_shards[0]
        if is_object_storage(location):
            location = location.partition("?")[0]
        raise VievalError(
            f"{location}: tar files, patterns and object storage require a folder of shards; pass "
            "--out FOLDER"
        )
    return bool(for_shards)


def require_no_shard_flags(options: ScoreOptions) -> None:
    """Raise VievalError for flags of a folder of shards that are used without one."""
    from vieval_plugin.text.errors import VievalError

    useless = first_flag(options, (option.name for option in fields(ShardOptions)))
    if useless:
        raise VievalError(
            f"{useless} applies only to a folder of shards; pass --out FOLDER"
        )


def judge_shards(options: ScoreOptions) -> int:
    """Judge what is left of a data set; the exit code, 1 where shards could not be written or no
    row has a score.
    """
    from vieval_plugin.run.shards.start import begin

    started = begin(_request(options, str(options.out)))
    tell(*started.notes)
    return _launch(options, started)


def plan_shards(options: ScoreOptions) -> int:
    """Judge at most eight rows drawn from a data set, and print what all would cost."""
    from vieval_plugin.run.plan import pilot, plan, to_ask
    from vieval_plugin.run.prepare import prepare
    from vieval_plugin.run.shards.start import begin, drawn_samples
    from vieval_plugin.text.escaping import say

    with tempfile.TemporaryDirectory() as folder:
        request = _request(options, f"{folder}/plan")
        started = begin(replace(request, rows_per_shard=_PLANNED_ROWS))
        tell(*started.notes)
        run = request.run
        pilot_samples = drawn_samples(started, run.options.statistics.seed)
        prepared = prepare(run.judge, run.setting, run.options, run.backbone)
        askable = to_ask(pilot_samples, prepared)
        trial = asyncio.run(pilot(askable, prepared, run.options, run.backbone))
    say(
        *plan(
            replace(trial, samples=started.plan.rows),
            run.backbone,
            by_batches=bool(options.batch or options.batch_files),
        )
    )
    unaskable = len(pilot_samples) - len(askable)
    if unaskable:
        say(
            f"no questions would be asked about {unaskable} of the {len(pilot_samples)} sampled "
            "rows"
        )
    return 0


def _request(options: ScoreOptions, folder: str) -> ShardRequest:
    from vieval_plugin.readers.columns import parse_columns
    from vieval_plugin.run.shards.start import ShardRequest
    from vieval_plugin.run.shards.worker import MOST_FAILURES, ShardRun
    from vieval_plugin.text.errors import VievalError

    current = options_in_force(options)
    judge = (options.judge or [DEFAULT_JUDGE])[0]
    backbone = backbone_of(judge, options, current)
    useless = first_flag(options, _FILE_OPTIONS)
    if useless:
        raise VievalError(
            f"{useless} does not apply to a folder of shards; --out must end in .jsonl, "
            ".csv or .parquet"
        )
    if len(options.judge) > 1:
        raise VievalError(
            "a folder of shards can have only one judge; use another --out for the others"
        )
    most_failures = (
        MOST_FAILURES if options.max_failures is None else options.max_failures
    )
    run_fields = folder, "", judge, options.setting, current, backbone
    allowed = tuple(options.allow_urls)
    is_shared = bool(options.part) or options.ray is not None
    return ShardRequest(
        options.samples,
        ShardRun(*run_fields, most_failures, options.budget, allowed),
        label=options.label,
        kind=options.kind,
        columns=parse_columns(options.columns),
        rows_per_shard=options.rows_per_shard,
        limit=options.limit,
        trace=options.trace,
        extend=options.extend,
        own_store=is_shared,
    )


def _next_step(queue: PassQueue) -> str:
    """The advice on shards that were not written."""
    if all(job.exceeds_budget for job in queue.not_written):
        return "raise --budget, or lower --rows-per-shard with another --out"
    return "run the same command again to resume"


def _launch(options: ScoreOptions, started: StartedRun) -> int:
    """Judge what is left, and say what the folder holds then."""
    from vieval_plugin.judges.protocol import FAILED_CALLS
    from vieval_plugin.readers.places import shown_location
    from vieval_plugin.run.shards.folder import open_folder
    from vieval_plugin.run.shards.inputs import hidden_images
    from vieval_plugin.run.shards.passes import part_of
    from vieval_plugin.run.shards.progress import progress_of
    from vieval_plugin.run.shards.start import passes_left
    from vieval_plugin.text.escaping import say

    batch = batch_of(options, open_folder(started.run.folder).local_folder / "batches")
    if batch:
        started = _asked_in_batches(options, started, batch)
    queue, rows = passes_left(
        started, part_of(options.part, os.environ) if options.part else (0, 1)
    )
    tell(f"{rows:,} of {started.plan.rows:,} rows left to judge")
    code = judged(started.run, queue, rows, _launcher(options))
    progress = progress_of(open_folder(started.run.folder), started.plan)
    say(*progress.lines(), *filter(None, [started.plan.provenance.calibration_note]))
    if code:
        tell(f"some shards were not written; {_next_step(queue)}")
    elif hidden := hidden_images(started.plan.files, started.plan.columns.values()):
        tell(*(f"incomplete: {line}" for line in hidden))
        code = 1
    elif progress.is_complete:
        if not any(progress.statuses[status] for status in FAILED_CALLS):
            remove_batches(options, batch)
        say(f"wrote {shown_location(options.out or started.run.folder)}")
    if progress.unscored:
        tell(f"{progress.unscored} (see the reasons above)")
    return 1 if progress.unscored else code


def _asked_in_batches(
    options: ScoreOptions, started: StartedRun, batch: BatchOptions
) -> StartedRun:
    """The run, once batches over all its shards have answered its questions."""
    from functools import partial

    from vieval_plugin.run.prepare import prepare
    from vieval_plugin.run.session import ask_in_batches
    from vieval_plugin.run.shards.start import jobs_left
    from vieval_plugin.text.errors import VievalError

    useless = first_flag(options, ("budget", "part", "ray"))
    if useless:
        raise VievalError(
            f"{useless} cannot be combined with batches, because one process sends "
            "them for all shards"
        )
    run = started.run
    prepared = prepare(run.judge, run.setting, run.options, run.backbone)
    jobs = partial(jobs_left, started, prepared)
    asyncio.run(ask_in_batches(jobs, [prepared], run.options, run.backbone, batch))
    return replace(started, run=replace(run, batch=batch))


def _launcher(options: ScoreOptions) -> Launcher:
    from functools import partial

    from vieval_plugin.run.shards.launchers.processes import work_in_processes
    from vieval_plugin.run.shards.launchers.ray import Cluster, work_on_ray
    from vieval_plugin.run.shards.worker import work_here

    if options.ray is not None:
        return partial(work_on_ray, cluster=Cluster(options.ray, options.workers))
    if options.processes:
        return partial(work_in_processes, processes=options.processes)
    return work_here


def judged(run: ShardRun, queue: PassQueue, rows: int, launcher: Launcher) -> int:
    """Have the passes of a queue judged; the exit code, 1 where a shard was not written, each of
    which has a line.
    """
    from vieval_plugin.run.judging_bar import judging_bar
    from vieval_plugin.run.progress import Progress
    from vieval_plugin.text.wording import plural

    if not rows:
        return 0
    with judging_bar(
        Progress(statuses=queue.statuses), rows, True, "row", has_answers=False
    ) as on_rows:
        lines = launcher(run, queue, on_rows)
    tell(*lines)
    for job in queue.not_written[:_SHOWN_SHARDS]:
        shard = job.shard
        tell(
            f"not written: {shard.path}: row group {shard.group}, rows {shard.first} to "
            f"{shard.first + shard.rows - 1}: {job.reason}"
        )
    further = queue.not_written[_SHOWN_SHARDS:]
    if further:
        tell(f"not written: {plural(len(further), 'more shard')}")
    return 1 if queue.not_written else 0
