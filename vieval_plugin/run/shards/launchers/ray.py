"""Workers on a cluster, placed and started again by Ray: actors with an open judge each.

An actor is handed passes once it is there, two at a time, so that its next shard is always open.
Nodes may join and go: what an actor had not finished when it died goes back to the queue. Ray's
core is all that is used.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from vieval_plugin.run.progress import Progress
from vieval_plugin.run.shards.folder import ShardFolder, open_folder
from vieval_plugin.run.shards.launchers.slots import (
    POLL,
    Slot,
    WorkerDied,
    share_budget,
    work_in_slots,
)
from vieval_plugin.run.shards.passes import Pass, PassQueue, ShardReport, Written
from vieval_plugin.run.shards.worker import ShardRun, ShardWorker
from vieval_plugin.text.errors import VievalError, install_advice, line_of

_PASSES = 2  # that an actor has: one that it judges, and the next
_PATIENCE = (
    20.0  # seconds in which a file that was written elsewhere is to be seen here
)
_ENDING = 10.0


@dataclass(frozen=True)
class Cluster:
    """The part of a cluster that is used."""

    #: Its address; empty for the one that runs here, or a new one.
    address: str = ""
    #: Number of workers; None for one a node, or one a GPU where the judge measures by a network.
    workers: int | None = None


class ShardActor:
    """A worker in a process that Ray started. What cannot go on is returned, as an error's text,
    and not raised.
    """

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
        passes = iter(self._passes.get, None)
        self._working = asyncio.create_task(worker.work(passes))
        return ""

    async def judge(self, work: Pass) -> list[ShardReport] | str:
        """Judge a pass; how each shard ended, or why this worker cannot go on."""
        loop = asyncio.get_running_loop()
        reports = {shard.name: loop.create_future() for shard in work.shards}
        self._waiting |= reports
        self._passes.put(work)
        all_reports = asyncio.gather(*reports.values())
        assert self._working is not None
        ending: set[asyncio.Future[Any]] = {self._working, all_reports}
        await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
        if all_reports.done():
            return list(all_reports.result())
        error = self._working.exception()
        if error is None or isinstance(error, VievalError):
            return f"{socket.gethostname()}: {error or 'the worker stopped'}"
        raise error

    async def close(self) -> Progress:
        """Let go of running work; the counts."""
        if self._working:
            self._working.cancel()
            await asyncio.wait([self._working])
        return self._progress

    def _note(self, report: ShardReport) -> None:
        future = self._waiting.pop(report.shard.name, None)
        if future and not future.done():
            future.set_result(report)


def work_on_ray(
    run: ShardRun,
    queue: PassQueue,
    on_rows: Callable[[int], None],
    cluster: Cluster,
) -> list[str]:
    """`work_in_slots` by actors on a cluster, which share the run's budget.

    Raises:
        VievalError: Ray is not installed or cannot be reached, no worker can go on, or a file that
            a worker wrote is not seen here.
    """
    ray = _ray()
    _connect(ray, cluster.address)
    try:
        gpus = int(ray.cluster_resources().get("GPU", 0)) if run.measures else 0
        workers = cluster.workers or gpus or sum(node["Alive"] for node in ray.nodes())
        run = share_budget(run, workers)
        kind = ray.remote(ShardActor).options(
            num_cpus=1,
            num_gpus=int(bool(gpus)),
            max_concurrency=_PASSES + 2,
        )
        slots = [
            _OnRay(
                run,
                queue,
                on_rows,
                ray=ray,
                kind=kind,
            )
            for _ in range(workers)
        ]
        return work_in_slots(slots, queue)
    finally:
        ray.shutdown()


@dataclass(kw_only=True)
class _OnRay(Slot):
    """A slot whose worker is an actor."""

    #: The module.
    ray: Any
    #: Class of actors, with what each takes of a node.
    kind: Any
    actor: Any = None

    def serve(self) -> None:
        time.sleep(0.1 * self.deaths_in_a_row)
        self.actor = self.kind.remote(self.run)
        try:
            self._hand_out()
        except self.ray.exceptions.RayError as error:
            raise WorkerDied(line_of(error)) from None

    def end(self) -> None:
        """End the actor, and what it has under way."""
        if self.actor is not None:
            self.ray.kill(self.actor)
            self.actor = None

    def _hand_out(self) -> None:
        """Hand passes to the actor, two at a time, once its judge is open."""
        opening = self.actor.open.remote()
        while not self.ray.wait([opening], timeout=POLL)[
            0
        ]:  # where a node was lost there may be no room for it
            if self.queue.is_done or self.queue.is_closed:
                return
        if problem := self.ray.get(opening):
            raise VievalError(problem)
        calls: dict[Any, Pass] = {}
        while not self.queue.is_closed:
            if len(calls) < _PASSES and (work := self.queue.take()):
                self.passes.append(work)
                calls[self.actor.judge.remote(work)] = work
            if not calls and self.queue.is_done:
                self.progress += self.ray.get(
                    self.actor.close.remote(), timeout=_ENDING
                )
                return
            if not calls:
                time.sleep(POLL)
                continue
            for call in self.ray.wait(list(calls), timeout=POLL)[0]:
                answer = self.ray.get(call)
                if isinstance(answer, str):
                    raise VievalError(answer)
                for report in answer:
                    self.note(report)
                self.passes.remove(calls.pop(call))

    def note(self, report: ShardReport) -> None:
        """Record how a shard ended, once its file is seen here."""
        if isinstance(report, Written):
            _require_seen(open_folder(self.run.folder), report)
        super().note(report)


def _require_seen(folder: ShardFolder, written: Written) -> None:
    """Raise VievalError if a file that a worker wrote does not come to be seen here."""
    end = time.monotonic() + _PATIENCE
    while not folder.holds(written.shard.name):
        if time.monotonic() > end:
            raise VievalError(
                f"{folder.name}: a file that a worker wrote there is not visible "
                "here; use a folder that all nodes share"
            )
        time.sleep(0.2)


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise VievalError(f"--ray requires Ray; {install_advice('ray')}") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    try:
        ray.init(
            address=address or None,
            include_dashboard=None,
            log_to_driver=False,
            logging_level="ERROR",
        )
    except (
        ConnectionError,
        ValueError,
        RuntimeError,
        TimeoutError,
        ray.exceptions.RayError,
    ) as error:
        raise VievalError(
            f"--ray {address or 'here'}: cannot reach a Ray cluster ({line_of(error)}); if it "
            "requires a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
        ) from None
