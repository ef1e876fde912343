"""The worker that every launcher starts: passes in, files of verdicts out, with the next shard
always open.

Rows are read in a thread and begin as slots free up, those of the next shard while the last ones of
a shard are under way, so that no server waits for a shard to end. At most three shards are open,
and one bound on requests holds for all.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from operator import itemgetter
from typing import TypeAlias

from vieval_plugin.backends.http.batches import BatchOptions
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.config import Backbone, Config
from vieval_plugin.judges.protocol import FAILED_CALLS, Status
from vieval_plugin.readers.places import arrow, place_at
from vieval_plugin.readers.samples import SampleRow
from vieval_plugin.records import unjudged
from vieval_plugin.run.prepare import PreparedJudge, prepare
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.run.session import Session
from vieval_plugin.run.shards.folder import kept_verdicts, open_folder
from vieval_plugin.run.shards.inputs import require_same
from vieval_plugin.run.shards.passes import (
    NotWritten,
    Pass,
    PassQueue,
    ShardReport,
    Written,
)
from vieval_plugin.run.shards.plan import Plan, Shard
from vieval_plugin.run.shards.read_ahead import ReadAhead
from vieval_plugin.run.shards.rows import (
    ShardRow,
    fetch_images,
    output_digest,
    rows_of_shards,
    verdict_row,
)
from vieval_plugin.run.shards.schema import Tally, encoded_tables
from vieval_plugin.run.shards.under_way import (
    DEATHS,
    RowsUnderWay,
    forget_deaths,
    is_open,
    suspect_and_fatal_rows,
)
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.versions import VERSION
from vieval_plugin.text.wording import plural
from vieval_plugin.text.yaml_json import JsonObject

#: Shards that a worker has open at once.
MOST_OPEN = 3
MOST_FAILURES = 0.2
_ENOUGH = 20  # rows whose calls tell what a row takes
_IN_A_ROW = 3  # shards with too many failures, after which a worker stops
#: Statuses of rows that `--max-failures` counts: all without a score that the judge applies to.
FAILURES = (
    *FAILED_CALLS,
    Status.PARSE_FAILURE,
    Status.REFUSAL,
    Status.NO_IMAGE,
)
_FATAL = unjudged(
    Status.TOOL_ERROR,
    f"judging this row killed its process {DEATHS} times, so it was skipped",
)


@dataclass(frozen=True)
class ShardRun:
    """The run that a worker is told; no key is in it, as each worker takes its own from its
    environment.
    """

    #: Folder of shards.
    folder: str
    #: Folder on this machine that paths of the plan start at; empty before there is one.
    root: str
    #: Name of the judge, or its file.
    judge: str
    #: Its setting; None for the plain one.
    setting: str | None
    #: Options of the run.
    options: Config
    #: Model that a command names; None for that of the options.
    backbone: Backbone | None = None
    #: Share of failed rows above which a shard is not written.
    most_failures: float = MOST_FAILURES
    #: Calls that this worker may make; None for any number.
    budget: int | None = None
    #: Hosts whose images are fetched.
    hosts: tuple[str, ...] = ()
    #: Statuses whose rows are judged again in shards that are done; empty for shards that are not.
    rejudge: tuple[str, ...] = ()
    #: Questions were asked by batches, whose answers are taken.
    batch: BatchOptions | None = None
    #: The judge is a network in the worker's own process.
    measures: bool = False


@dataclass
class OpenShard:
    """A shard under way: its rows are read, then the last are judged, then it is written or
    reported as not written.
    """

    shard: Shard
    note: RowsUnderWay
    #: Rows that are judged alone.
    suspects: set[int]
    #: Rows that are not judged again.
    fatal: set[int]
    #: Verdicts of an earlier run that stay, by row and prompt.
    earlier_verdicts: Mapping[tuple[int, int], JsonObject] = field(default_factory=dict)
    #: Verdicts so far.
    verdicts: list[JsonObject] = field(default_factory=list)
    #: Rows that were read and have no verdict.
    pending: int = 0
    #: All its rows were read.
    is_read: bool = False
    #: Reason why its rows end too early; empty where they do not.
    problem: str = ""
    #: Time at which it was opened.
    began: float = field(default_factory=time.time)


@dataclass(frozen=True, eq=False)
class _RowEvent:
    """A row of an open shard."""

    opened: OpenShard
    row: ShardRow


#: A row that was read, an open shard all of whose rows were, or one that is not opened.
_Event: TypeAlias = _RowEvent | OpenShard | ShardReport


class CallBudget:
    """The calls that a worker may make: they end its run between two shards, never within one.

    Args:
        limit: the calls; None for any number.
        usage: counts those that were made.
        calls: what a sample takes, in words, as `PreparedJudge.calls`.
    """

    def __init__(
        self,
        limit: int | None,
        usage: Usage,
        calls: str,
    ) -> None:
        self._limit = limit
        self._usage = usage
        self._expected = max(map(float, re.findall(r"\d+", calls)), default=0.0)
        self.rows_opened = self.rows_judged = 0

    def allows(self, rows: int) -> bool:
        """Return whether the calls of so many rows are left, beside those of the rows that are
        under way.
        """
        rows_left = self.rows_opened - self.rows_judged + rows
        return (
            self._limit is None
            or self._usage.calls + self._calls(rows_left) <= self._limit
        )

    def never_allows(self, rows: int) -> bool:
        """Return whether so many rows take more than all of the calls."""
        return self._limit is not None and self._calls(rows) > self._limit

    def _calls(self, rows: int) -> float:
        is_known = self.rows_judged >= _ENOUGH
        return (
            self._usage.calls / self.rows_judged if is_known else self._expected
        ) * rows


class ShardWorker:
    """Judges shards as passes are handed to it.

    Args:
        run: what is judged, and by whom.
        report: called in the event loop with each shard that ends.
        on_row: called there with each row that has its verdict.
    """

    def __init__(
        self,
        run: ShardRun,
        report: Callable[[ShardReport], None],
        on_row: Callable[[], None] = lambda: None,
    ) -> None:
        self._run = run
        self._report = report
        self._on_row = on_row
        self._folder = open_folder(run.folder)
        self._root = place_at(run.root)
        plan = self._folder.plan()
        if plan is None:
            raise VievalError(
                f"{run.folder}: contains no plan; use a folder that all workers share"
            )
        # a worker on another machine than the driver has a folder of notes of its own
        self._folder.prepare()
        self._plan: Plan = plan
        self.progress = Progress()
        self._prepared: PreparedJudge = prepare(
            run.judge,
            run.setting,
            run.options,
            run.backbone,
        )
        self._budget = CallBudget(run.budget, self.progress.usage, self._prepared.calls)
        self._slots = threading.Semaphore(MOST_OPEN)
        self._stopped = False
        self._open: dict[str, OpenShard] = {}
        self._bad_in_a_row = self._from_store = self._repeated = 0

    async def work(self, passes: Iterable[Pass]) -> None:
        """Judge all passes, which are taken in a thread of their own: each when the one before it
        is read.

        Raises:
            VievalError: the run cannot go on; files that were written stay.
        """
        ahead = ReadAhead(
            self._events(passes),
            lambda event: event.row.size if isinstance(event, _RowEvent) else 0,
        )
        try:
            async with asyncio.TaskGroup() as self._tasks:
                await self._judge(ahead)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            self._stopped = True
            self._slots.release(MOST_OPEN)  # the reading thread may wait for one
            ahead.close()
            for opened in self._open.values():
                opened.note.close()

    async def _judge(self, ahead: ReadAhead[_Event]) -> None:
        under_way = set()
        drained = asyncio.Event()
        drained.set()

        async def rows() -> AsyncIterator[tuple[_RowEvent, SampleRow]]:
            async for event in ahead:
                if not (row_event := self._take(event)):
                    continue
                alone = row_event.row.number in row_event.opened.suspects
                if alone:
                    await drained.wait()
                row_event.opened.note.begin(row_event.row.number, alone)
                under_way.add(row_event)
                drained.clear()
                yield row_event, row_event.row.row
                if alone:
                    await drained.wait()

        def settle(
            judged: _RowEvent,
            _: SampleRow,
            outcome: Outcome,
        ) -> None:
            under_way.remove(judged)
            judged.opened.note.end(judged.row.number)
            if not under_way:
                drained.set()
            self._settle(judged, outcome)

        run = self._run
        async with Session(
            run.options,
            run.backbone,
            self.progress,
            self._prepared.asks_a_model,
            run.batch,
        ) as session:
            await session.judge_stream(rows(), self._prepared, settle)

    def _events(self, passes: Iterable[Pass]) -> Iterator[_Event]:
        """Open shards and read their rows, in a thread."""
        checked = set()
        for work in passes:
            path = work.shards[0].path
            if path not in checked:
                require_same(self._plan.by_path[path], self._root)
                checked.add(path)
            yield from self._events_of(work)

    def _events_of(self, work: Pass) -> Iterator[_Event]:
        """The rows of a pass. Rows that cannot be read end their shard, and those of the row
        group after it.
        """
        waiting = list(work.shards)
        current: OpenShard | None = None
        problem = "it has fewer rows than when the plan was made"
        for row in self._rows_of(work):
            if isinstance(row, VievalError):
                problem = str(row)
                if current:
                    current.problem = problem
                break
            if waiting and row.shard is waiting[0]:
                if current:
                    yield current
                opened = self._opened(waiting.pop(0), work.is_last)
                if self._stopped:
                    return
                current = opened if isinstance(opened, OpenShard) else None
                if isinstance(opened, (Written, NotWritten)):
                    yield opened
            if current:
                yield _RowEvent(current, replace(row, digest=output_digest(row.row)))
        if current:
            yield current
        for shard in waiting:
            yield NotWritten(shard, problem)

    def _rows_of(self, work: Pass) -> Iterator[ShardRow | VievalError]:
        """The rows of a pass, and where they cannot be read to their end the reason."""
        rows = rows_of_shards(self._plan, self._root, self._folder.indexes, work.shards)
        try:
            yield from fetch_images(rows, self._run.hosts)
        except VievalError as error:
            yield error

    def _opened(self, shard: Shard, is_last: bool) -> OpenShard | ShardReport:
        """A shard that is open now, once fewer than three are; or why it is not."""
        self._slots.acquire()
        opened: OpenShard | ShardReport
        if not self._run.rejudge and self._folder.holds(shard.name):
            opened = Written(shard)
        elif not is_last and is_open(self._folder.under_way, shard.name):
            opened = NotWritten(
                shard,
                "another worker has it open",
                is_open_elsewhere=True,
            )
        elif self._budget.never_allows(shard.rows):
            opened = NotWritten(
                shard,
                f"its calls exceed --budget {self._run.budget} per worker",
                exceeds_budget=True,
            )
        elif not self._budget.allows(shard.rows):
            opened = NotWritten(
                shard,
                f"its calls exceed the rest of --budget {self._run.budget}",
            )
        elif self._stopped:
            opened = NotWritten(shard, "the run was stopped")
        else:
            suspects, fatal = suspect_and_fatal_rows(self._folder.under_way, shard)
            self._open[shard.name] = opened = OpenShard(
                shard,
                RowsUnderWay(self._folder.under_way, shard),
                suspects,
                fatal,
            )
            if self._run.rejudge:
                opened.earlier_verdicts = kept_verdicts(
                    self._folder,
                    shard.name,
                    self._run.rejudge,
                )
            self._budget.rows_opened += shard.rows
            return opened
        self._slots.release()
        return opened

    def _take(self, event: _Event) -> _RowEvent | None:
        """Record what was read; a row that the judge is to be asked about."""
        if isinstance(event, (Written, NotWritten)):
            self._report(event)
            return None
        if isinstance(event, OpenShard):
            event.is_read = True
            self._end_if_whole(event)
            return None
        opened = event.opened
        opened.pending += 1
        if verdict := opened.earlier_verdicts.get((event.row.number, event.row.prompt)):
            self._keep(opened, verdict)
            return None
        decided = _FATAL if event.row.number in opened.fatal else event.row.row.verdict
        if decided is None:
            return event
        self.progress.count(decided)
        self._settle(event, Outcome(decided))
        return None

    def _settle(self, event: _RowEvent, outcome: Outcome) -> None:
        self._keep(event.opened, verdict_row(event.row, outcome, self._plan.schema))

    def _keep(self, opened: OpenShard, verdict: JsonObject) -> None:
        opened.verdicts.append(verdict)
        opened.pending -= 1
        self._budget.rows_judged += 1
        self._on_row()
        self._end_if_whole(opened)

    def _end_if_whole(self, opened: OpenShard) -> None:
        if opened.is_read and not opened.pending:
            self._tasks.create_task(self._end(opened))

    async def _end(self, opened: OpenShard) -> None:
        """Write a shard all of whose rows have their verdicts, unless too many of them failed."""
        shard = opened.shard
        tally = self._tally(opened.verdicts)
        failures = sum(tally.statuses[status] for status in FAILURES)
        problem = opened.problem
        if not problem and failures > self._run.most_failures * len(opened.verdicts):
            problem = _too_many(tally, failures, self._run.most_failures)
            self._bad_in_a_row += 1
        else:
            self._bad_in_a_row = 0
        if not problem:
            await asyncio.to_thread(self._write, opened, tally)
            forget_deaths(self._folder.under_way, {shard.name}, shard.name)
        opened.note.close()
        del self._open[shard.name]
        self._slots.release()
        self._report(
            NotWritten(shard, problem)
            if problem
            else Written(
                shard,
                {Status(status): n for status, n in tally.statuses.items()},
                tally.calls,
            )
        )
        if self._bad_in_a_row == _IN_A_ROW:
            raise VievalError(
                f"{_IN_A_ROW} shards in a row were not written: {problem}; fix "
                "the cause or raise --max-failures, then run the same command to "
                "resume"
            )

    def _tally(self, verdicts: Iterable[JsonObject]) -> Tally:
        """Count verdicts, and the answers that the model was not asked for since the shard before
        this ended.
        """
        tally = Tally()
        for row in verdicts:
            tally.add(row)
        usage = self.progress.usage
        tally.from_store = usage.cached - self._from_store
        tally.repeated = usage.repeated - self._repeated
        self._from_store = usage.cached
        self._repeated = usage.repeated
        return tally

    def _write(self, opened: OpenShard, tally: Tally) -> None:
        """Write the file of a shard; in a thread."""
        plan = self._plan
        opened.verdicts.sort(key=itemgetter("row", "prompt"))
        metadata = {
            "version": VERSION,
            "run": plan.run,
            "provenance": asdict(plan.provenance),
            "shard": asdict(opened.shard),
            **tally.document(),
            "began": opened.began,
            "ended": time.time(),
        }
        table = arrow().Table.from_pylist(opened.verdicts, schema=plan.schema.arrow())
        self._folder.write(opened.shard.name, encoded_tables([table], metadata))


def _too_many(
    tally: Tally,
    failures: int,
    max_share: float,
) -> str:
    """The line on a shard with too many failures: how many, and the reason of most of them."""
    reasons = (
        f" ({status}: {reason})"
        for (status, reason), _ in tally.reasons.most_common()
        if status in FAILURES
    )
    often = next(reasons, "")
    return (
        f"{failures} of {plural(tally.verdicts, 'row')} failed, more than "
        f"--max-failures {max_share:g} allows{often}"
    )


def work_here(
    run: ShardRun,
    queue: PassQueue,
    on_rows: Callable[[int], None],
) -> list[str]:
    """Have all passes of a queue judged in this process; lines on what that cost.

    Args:
        run: what is judged, and by whom.
        queue: the passes.
        on_rows: called with numbers of rows that have their verdicts.

    Raises:
        VievalError: the run cannot go on; files that were written stay.
    """
    worker = ShardWorker(run, queue.note, lambda: on_rows(1))
    try:
        asyncio.run(worker.work(queue))
    finally:
        queue.close()
    return worker.progress.lines()
