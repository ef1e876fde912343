"""The beginning of a run of shards: its plan, made or found, and what is left of it to be
judged, or is judged again.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from vieval_plugin import config
from vieval_plugin.config import Backbone, Config
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Status
from vieval_plugin.media.files import cache_folder
from vieval_plugin.readers.columns import (
    ColumnMap,
    fields_of,
    leftover_notes,
    require_columns,
)
from vieval_plugin.readers.places import PLAN, Place, place_at, size_of
from vieval_plugin.readers.samples import SampleSource
from vieval_plugin.run.evaluate import provenance_of
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.plan import pilot_numbers
from vieval_plugin.run.prepare import PreparedJudge, prepare, setting_of
from vieval_plugin.run.shards.folder import ShardFolder, open_folder
from vieval_plugin.run.shards.inputs import (
    InputFile,
    input_files,
    input_places,
    map_in_threads,
    root_of,
    table_of,
    tar_notes,
)
from vieval_plugin.run.shards.passes import PassQueue, passes_over
from vieval_plugin.run.shards.plan import (
    ROWS_PER_SHARD,
    Plan,
    extended,
    new_plan,
    require_same_run,
    to_json,
)
from vieval_plugin.run.shards.rows import fetch_images, rows_of_shards
from vieval_plugin.run.shards.schema import schema_of
from vieval_plugin.run.shards.under_way import forget_deaths
from vieval_plugin.run.shards.worker import MOST_FAILURES, ShardRun
from vieval_plugin.run.strict import (
    FIRST,
    require_any_of_first,
    require_calibrated,
    require_texts,
)
from vieval_plugin.run.verdict_lines import differing_runs, identity_of
from vieval_plugin.text.errors import VievalError

#: Rows above which replies are not kept, unless the options say so.
MOST_STORED = 100_000


@dataclass(frozen=True)
class ShardRequest:
    """A user's request: a data set, a folder for its verdicts, and who judges."""

    #: Files, folders and patterns of the data set.
    inputs: Sequence[str]
    #: The run as its user words it.
    run: ShardRun
    #: Name of the run in reports.
    label: str = ""
    #: Kind of rows that name none.
    kind: str | None = None
    #: Columns by what they are to a sample, where names do not say.
    columns: Mapping[str, str] | None = None
    #: Rows of a shard; None for those of the plan, or the default.
    rows_per_shard: int | None = None
    #: Rows after which the data set ends; None for all.
    limit: int | None = None
    #: Keep traces.
    trace: bool = False
    #: Add new files to the plan.
    extend: bool = False
    #: Each host has a store of its own.
    own_store: bool = False


@dataclass(frozen=True)
class StartedRun:
    """A run of shards that may be launched."""

    #: What workers are told.
    run: ShardRun
    plan: Plan
    #: Lines for the user.
    notes: tuple[str, ...]


def begin(request: ShardRequest) -> StartedRun:
    """Make the plan of a run, or find that it goes on with the plan that is there.

    Raises:
        VievalError: the inputs cannot be read, differ from the plan's, or another judge or other
            options are named; nothing has been asked then.
    """
    run = request.run
    folder = open_folder(run.folder)
    prepared = prepare(run.judge, run.setting, run.options, run.backbone)
    with _leaving_no_folder_without_a_plan(folder):
        plan, root, notes = _planned(request, folder, prepared)
    folder.prepare()
    run = replace(
        run,
        folder=folder.location,
        root=root.address,
        options=choose_store(run.options, plan.rows, request.own_store),
        measures=prepared.spec.scored,
    )
    return StartedRun(run, plan, notes)


def _input_locations(request: ShardRequest, folder: ShardFolder) -> list[Place]:
    """The inputs outside the folder of verdicts."""
    locations = [
        location
        for location in input_places(request.inputs)
        if not Path(str(location)).is_relative_to(folder.name)
    ]
    if not locations:
        raise VievalError(
            f"{folder.name} contains all of the input; choose another --out"
        )
    return locations


def _planned(
    request: ShardRequest,
    folder: ShardFolder,
    prepared: PreparedJudge,
) -> tuple[Plan, Place, tuple[str, ...]]:
    """The plan that is kept in a folder now, where its paths start on this machine, and lines on
    columns for the user.
    """
    locations = _input_locations(request, folder)
    folder.storage.prepare(PLAN)
    earlier = folder.plan()
    root = _root(earlier, locations)
    planned = earlier.by_path if earlier else {}
    files = input_files(
        locations,
        root,
        folder.indexes,
        planned,
        (request.columns or {}).values(),
    )
    fields = _fields(
        request,
        files,
        [file for file in files if file.path not in planned],
        root,
        folder.indexes,
    )
    earlier_size = earlier.rows_per_shard if earlier else ROWS_PER_SHARD
    options = request.run.options
    now = new_plan(
        root,
        files,
        request.rows_per_shard or earlier_size,
        fields.columns,
        request.kind,
        replace(
            provenance_of(prepared, options, request.run.backbone),
            label=request.label,
        ),
        schema_of(prepared, options.judges.options_of(prepared.spec), request.trace),
        request.limit,
    )
    if earlier is None:
        _require_readable(
            now,
            root,
            folder,
            fields,
            prepared,
            request.run.hosts,
        )
        earlier = folder.create_plan(now)
    require_same_run(earlier, now, folder.name)
    plan = extended(earlier, now, folder.name, request.extend)
    if plan.files != earlier.files:
        folder.storage.write(PLAN, to_json(plan))
    notes = (*fields.notes, *leftover_notes(str(root), fields.leftover))
    return plan, root, (*notes, *tar_notes(plan.files, plan.columns.values()))


@contextmanager
def _leaving_no_folder_without_a_plan(folder: ShardFolder) -> Iterator[None]:
    """Remove the indexes of tar files, and the folders that were not there, where an error comes
    before the plan.
    """
    created = [
        path
        for path in (folder.local_folder, *folder.local_folder.parents)
        if not path.exists()
    ]
    try:
        yield
    except VievalError:
        with suppress(OSError, VievalError):  # a plan that cannot be read is one
            if folder.plan() is None:
                shutil.rmtree(folder.indexes, ignore_errors=True)
                for path in created:
                    path.rmdir()
        raise


def passes_left(
    started: StartedRun, part: tuple[int, int] = (0, 1)
) -> tuple[PassQueue, int]:
    """The passes that are not done, or one part of several of them, and the number of their rows.

    `part` is its number from 0 and how many there are. Which part a row group belongs to does not
    depend on what is done.
    """
    number, parts = part
    folder = open_folder(started.run.folder)
    written = folder.names()
    # of a worker that was killed when its file had its name
    forget_deaths(folder.under_way, written)
    passes = list(passes_over(started.plan.shards(), ()))[number::parts]
    shards = [shard for work in passes for shard in work.shards]
    rows = sum(shard.rows for shard in shards if shard.name not in written)
    return PassQueue(passes_over(shards, written)), rows


def jobs_left(started: StartedRun, prepared: PreparedJudge) -> Iterator[Job]:
    """The samples that a judge is still to be asked about; of rows that cannot be read their
    shards say so later.
    """
    folder = open_folder(started.run.folder)
    root = place_at(started.run.root)
    for work in passes_over(started.plan.shards(), folder.names()):
        with suppress(VievalError):
            rows = rows_of_shards(started.plan, root, folder.indexes, work.shards)
            for row in fetch_images(rows, started.run.hosts):
                if row.row.verdict is None:
                    yield Job(row.row.sample, prepared)


def drawn_samples(started: StartedRun, seed: int) -> list[Judged]:
    """Samples of at most eight rows of a whole data set, drawn by a seed; rows that have their
    verdict are left out.
    """
    folder = open_folder(started.run.folder)
    root = place_at(started.run.root)
    numbers = sorted(pilot_numbers(started.plan.rows, seed))
    start = 0
    samples = []
    for shard in started.plan.shards():
        drawn = {shard.first + number - start for number in numbers}
        drawn &= set(shard.numbers)
        start += shard.rows
        if drawn:
            rows = rows_of_shards(started.plan, root, folder.indexes, [shard])
            samples += [
                row.row.sample
                for row in fetch_images(rows, started.run.hosts)
                if row.number in drawn and row.row.verdict is None
            ]
    return samples


def choose_store(
    options: Config,
    rows: int,
    is_shared: bool,
) -> Config:
    """The options with the store that suits a run: none for very many rows, and one a host where
    there may be several.

    Args:
        options: those in force, whose own word on the store holds.
        rows: of the whole run.
        is_shared: whether other hosts may work beside this one, with whom no file of SQLite can be
            shared.
    """
    store = options.store
    if rows > MOST_STORED and "use" not in store.model_fields_set:
        store = store.model_copy(update={"use": False})
    if is_shared and store.use:
        path = store.path or cache_folder() / "replies.sqlite"
        store = store.model_copy(
            update={"path": path.with_stem(f"{path.stem}-{socket.gethostname()}")}
        )
    return options.model_copy(update={"store": store})


def _root(earlier: Plan | None, locations: Sequence[Place]) -> Place:
    """The folder that paths of the plan start at: that of the plan, unless its files lie
    elsewhere now.
    """
    if earlier:
        root = place_at(earlier.root)
        with suppress(VievalError):
            size_of(root.below(earlier.files[0].path))
            return root
    return root_of(locations)


def _fields(
    request: ShardRequest,
    files: Sequence[InputFile],
    new_files: Sequence[InputFile],
    root: Place,
    indexes: Path,
) -> ColumnMap:
    """The columns by what they are, from the first file; VievalError where one that is new lacks
    one of them.
    """
    first = table_of(files[0], root, indexes)
    fields = fields_of(first, request.columns or {})

    def require_same_columns(file: InputFile) -> None:
        try:
            require_columns(table_of(file, root, indexes), fields.columns.values())
        except VievalError as error:
            needed = f"all files must have the columns of {first.name}"
            raise VievalError(f"{error}; {needed}") from None

    map_in_threads(require_same_columns, new_files)
    return fields


def _require_readable(
    plan: Plan,
    root: Place,
    folder: ShardFolder,
    fields: ColumnMap,
    prepared: PreparedJudge,
    hosts: Sequence[str],
) -> None:
    """Raise VievalError if there are no rows, the first have no text that the judge
    needs, or none of them can be judged.
    """
    first = next(plan.shards(), None)
    if first is None:
        raise VievalError(
            f"{root.below(plan.files[0].path)}: contains no rows; each row must "
            "have an image and its prompt or instruction"
        )
    if root.scheme and not fields.no_text:
        # its rows would be fetched twice; a run whose rows all fail is ended by --max-failures
        return
    try:
        shard_rows = rows_of_shards(plan, root, folder.indexes, [first])
        rows = [row.row for row in islice(shard_rows, FIRST)]
    except VievalError:
        return  # its shards say so
    require_texts(
        SampleSource(first.path, lambda: iter(rows), "", no_text=fields.no_text),
        prepared.spec,
    )
    require_any_of_first(first.path, rows, [prepared.spec], hosts)
    require_calibrated(rows, [prepared])


def options_of(plan: Plan, current: Config) -> Config:
    """The options that a plan's verdicts are given under, with store, calibration and servers of
    those in force.
    """
    recorded = config.from_document(plan.provenance.options)
    servers = {
        name: backbone.model_copy(
            update={"base_url": today.base_url, "api_key_env": today.api_key_env}
        )
        for name, backbone in recorded.backbones.items()
        if (today := current.backbones.get(name)) and today.model == backbone.model
    }
    return recorded.model_copy(
        update={
            "store": current.store,
            "calibration": current.calibration,
            "backbones": {**recorded.backbones, **servers},
        }
    )


def run_again(
    folder: ShardFolder,
    plan: Plan,
    options: Config,
    backbone: Backbone | None,
    statuses: Collection[str],
) -> ShardRun:
    """The run that judges rows of some statuses again, past the store.

    Raises:
        VievalError: the judge would not ask what it asked, as its wording or another option has
            changed.
    """
    judge = plan.provenance.judge
    setting = setting_of(plan.provenance)
    now = provenance_of(prepare(judge, setting, options, backbone), options, backbone)
    same_label = {**identity_of(now), "label": plan.provenance.label}
    if difference := differing_runs(identity_of(plan.provenance), same_label):
        raise VievalError(
            f"{folder.name}: contains a run started {difference}; use the "
            "same options to judge its rows again"
        )
    had_scores = any(Status(status).usable for status in statuses)
    return ShardRun(
        folder.location,
        plan.root,
        judge,
        setting,
        options.asking_anew(),
        backbone,
        # a row that failed loses nothing by failing again
        most_failures=MOST_FAILURES if had_scores else 1.0,
        rejudge=tuple(statuses),
    )


def passes_again(
    folder: ShardFolder,
    plan: Plan,
    statuses: Collection[str],
) -> tuple[PassQueue, int]:
    """The passes over shards with verdicts of these statuses, and the number of their rows."""
    again = {
        document["shard"]["name"]
        for file, names in folder.counted()
        for document in folder.metadata(file)
        if document["shard"]["name"] in names
        and any(document["statuses"].get(status) for status in statuses)
    }
    shards = [shard for shard in plan.shards() if shard.name in again]
    return PassQueue(passes_over(shards, ())), sum(shard.rows for shard in shards)
