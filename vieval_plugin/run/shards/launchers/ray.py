"""Workers on a cluster, placed and started again by Ray: actors with an open judge each.

An actor is handed passes once it is there, two at a time, so that its next shard is always open. Nodes may join and go:
what an actor had not finished when it died goes back to the queue. Ray's core is all that is used.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import Any

from vieval_plugin.run.progress import Progress
from vieval_plugin.run.shards.folder import ShardFolder, open_folder
from vieval_plugin.run.shards.launchers.processes import MOST_DEATHS, lines_on_workers
from vieval_plugin.run.shards.passes import Pass, PassQueue, ShardReport, Written
from vieval_plugin.run.shards.worker import ShardRun, ShardWorker
from vieval_plugin.text.errors import VievalError, install_advice

_PASSES = 2  # that an actor has: one that it judges, and the next
_PATIENCE = 20.0  # seconds in which a file that was written elsewhere is to be seen here
_ENDING = 10.0


@dataclass(frozen=True)
class Cluster:
    """The part of a cluster that is used."""

    #: Its address; empty for the one that runs here, or a new one.
    address: str = ""
    #: Number of workers; None for one a node, or one a GPU where the judge measures by a network.
    workers: int | None = None


class ShardActor:
    """A worker in a process that Ray started. What cannot go on is returned, as an error's text, and not raised."""

    def __init__(self, run: ShardRun) -> None:
        self._run = run
        self._passes: SimpleQueue[Pass | None] = SimpleQueue()
        self._waiting: dict[str, asyncio.Future[ShardReport]] = {}
        self._working: asyncio.Task[None] | None = None
        self._progress = Progress()

    async def open(self) -> str:
        """Open the judge; the reason why that cannot be, empty where it is open."""
        try:
            worker = ShardWorker(self._run, self._note)
        except VievalError as error:
            return f"{socket.gethostname()}: {error}"
        self._progress = worker.progress
        passes: Iterator[Pass] = iter(self._passes.get, None)
        self._working = asyncio.create_task(worker.work(passes))
        return ""

    async def judge(self, work: Pass) -> list[ShardReport] | str | None:
        """Judge a pass; how each shard ended, or why this worker cannot go on; None where Ray has started it anew."""
        if self._working is None:
            return None
        loop = asyncio.get_running_loop()
        reports = {shard.name: loop.create_future() for shard in work.shards}
        self._waiting |= reports
        self._passes.put(work)
        all_reports: asyncio.Future[list[ShardReport]] = asyncio.gather(*reports.values())
        ending: set[asyncio.Future[Any]] = {self._working, all_reports}
        await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
        if all_reports.done():
            return list(all_reports.result())
        error = self._working.exception()
        if error is None or isinstance(error, VievalError):
            return f"{socket.gethostname()}: {error or 'it was ended'}"
        raise error

    async def close(self) -> Progress:
        """Let go of what is under way; the counts."""
        if self._working:
            self._working.cancel()
            await asyncio.wait([self._working])
        return self._progress

    def _note(self, report: ShardReport) -> None:
        future = self._waiting.pop(report.shard.name, None)
        if future and not future.done():
            future.set_result(report)


def work_on_ray(run: ShardRun, queue: PassQueue, on_rows: Callable[[int], None], cluster: Cluster) -> list[str]:
    """Have all passes of a queue judged; lines on what that cost, and on workers that died or stopped.

    Args:
        run: what is judged, and by whom; its budget is shared out.
        queue: the passes.
        on_rows: called with numbers of rows that have their verdicts.
        cluster: where.

    Raises:
        VievalError: Ray is not installed or cannot be reached, no worker can go on, or a file that a worker wrote is
            not seen here.
    """
    ray = _ray()
    _connect(ray, cluster.address)
    try:
        gpus = int(ray.cluster_resources().get("GPU", 0)) if run.measures else 0
        workers = cluster.workers or gpus or len([node for node in ray.nodes() if node["Alive"]])
        budget = None if run.budget is None else max(run.budget // workers, 1)
        kind = ray.remote(ShardActor).options(
            num_cpus=1, num_gpus=int(bool(gpus)), max_restarts=-1, max_task_retries=0, max_concurrency=_PASSES + 2
        )
        driver = _Driver(ray, replace(run, budget=budget), queue, on_rows)
        driver.actors = [kind.remote(driver.run) for _ in range(workers)]
        try:
            driver.drive()
        finally:
            driver.close()
        return lines_on_workers(driver.progresses, driver.died, driver.stopped.values())
    finally:
        ray.shutdown()


@dataclass
class _Driver:
    """The driver of actors.

    An actor is opening until its first call returns, then open; when it died it is opened again, or has stopped.
    """

    #: The module.
    ray: Any
    #: What workers are told.
    run: ShardRun
    #: The passes.
    queue: PassQueue
    #: Called with numbers of rows that have their verdicts.
    on_rows: Callable[[int], None]
    #: The actors, by number.
    actors: list[Any] = field(default_factory=list)
    #: Calls under way: the actor and the pass, None for its opening.
    awaited: dict[Any, tuple[int, Pass | None]] = field(default_factory=dict)
    #: Numbers of actors whose judge is open.
    open_actors: set[int] = field(default_factory=set)
    #: Deaths of each since it last wrote a shard.
    deaths: Counter[int] = field(default_factory=Counter)
    #: Deaths of all.
    died: int = 0
    #: Reasons of those that stopped.
    stopped: dict[int, str] = field(default_factory=dict)
    #: Counts of those that were closed.
    progresses: list[Progress] = field(default_factory=list)

    def drive(self) -> None:
        """Hand out passes until none is left."""
        for number in range(len(self.actors)):
            self._open(number)
        while not self.queue.is_closed:
            self._hand_out()
            if self.queue.is_done and not any(work for _, work in self.awaited.values()):
                return
            if len(self.stopped) == len(self.actors):
                raise VievalError(next(reversed(self.stopped.values())))
            for call in self.ray.wait(list(self.awaited), num_returns=1, timeout=1)[0]:
                self._take(call, *self.awaited.pop(call))

    def close(self) -> None:
        """End all actors; those that are open let go of what they have under way."""
        closing = [self.actors[number].close.remote() for number in self.open_actors]
        if closing:
            for call in self.ray.wait(closing, num_returns=len(closing), timeout=_ENDING)[0]:
                with suppress(self.ray.exceptions.RayActorError):
                    self.progresses.append(self.ray.get(call))
        for actor in self.actors:
            self.ray.kill(actor)

    def _open(self, number: int) -> None:
        self.awaited[self.actors[number].open.remote()] = number, None

    def _hand_out(self) -> None:
        held_passes = Counter(number for number, work in self.awaited.values() if work)
        for _ in range(_PASSES):
            for number in sorted(self.open_actors):
                if held_passes[number] < _PASSES and (work := self.queue.take()):
                    held_passes[number] += 1
                    self.awaited[self.actors[number].judge.remote(work)] = number, work

    def _take(self, call: Any, number: int, work: Pass | None) -> None:
        """Take note of how a call ended: an actor's opening, or a pass."""
        try:
            answer = self.ray.get(call)
        except self.ray.exceptions.RayActorError as error:
            self._note_death(number, work, str(error))
            return
        if isinstance(answer, list):
            for report in answer:
                self._note(number, report)
        elif answer is None:
            if number in self.open_actors:
                self.open_actors.discard(number)
                self._open(number)
        elif answer:
            self.stopped[number] = answer
            self.open_actors.discard(number)
        else:
            self.open_actors.add(number)
        if work:
            self.queue.give_back(work)  # what is left of it, where the actor stopped

    def _note(self, number: int, report: ShardReport) -> None:
        if isinstance(report, Written):
            self.deaths[number] = 0
            _require_seen(open_folder(self.run.folder), report)
            self.on_rows(report.shard.rows)
        self.queue.note(report)

    def _note_death(self, number: int, work: Pass | None, reason: str) -> None:
        """Have what an actor had not finished judged by another, and the actor opened where Ray starts it again."""
        if work:
            self.queue.give_back(work)
        if number not in self.open_actors and work:
            return  # its other call, whose end told of the same death
        self.open_actors.discard(number)
        self.deaths[number] += 1
        self.died += 1
        if self.deaths[number] == MOST_DEATHS:
            self.stopped[number] = f"it died {MOST_DEATHS} times in a row ({' '.join(reason.split())[:200]})"
            return
        time.sleep(0.1 * self.deaths[number])
        self._open(number)


def _require_seen(folder: ShardFolder, written: Written) -> None:
    """VievalError where a file that a worker wrote does not come to be seen here."""
    end = time.monotonic() + _PATIENCE
    while not folder.holds(written.shard.name):
        if time.monotonic() > end:
            raise VievalError(
                f"{folder.name}: a worker wrote a file there that is not seen here; name a folder that all nodes share"
            )
        time.sleep(0.2)


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise VievalError(f"--ray needs Ray; {install_advice('ray')}") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    try:
        ray.init(address=address or None, include_dashboard=None, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        reason = " ".join(str(error).split())[:200]
        raise VievalError(f"--ray {address or 'here'}: no cluster can be reached ({reason})") from None
