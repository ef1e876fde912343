"""The run loop of all clients: each client's jobs in their order, the clients in turn, so many
under way at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass

from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Status
from vieval_plugin.records import unjudged
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.text.errors import VievalError

_log = logging.getLogger("vieval")


@dataclass(frozen=True)
class KeyedJob:
    """A sample or contest and its judge."""

    #: Jobs of one key have one outcome.
    key: Hashable
    judged: Judged
    #: By whom.
    judge: PreparedJudge
    #: Number of the verdict among several on the same.
    repeat: int = 0


@dataclass(eq=False)
class _Queued:
    """A job that waits or is under way."""

    job: KeyedJob
    outcome: asyncio.Future[Outcome]
    #: Requests that wait for it.
    waiters: int = 0


async def outcome_or_failure(judging: Awaitable[Outcome]) -> Outcome:
    """The outcome of a judgement; one that raises is a failure of its own, and no end of the
    server.
    """
    try:
        return await judging
    except VievalError as error:
        return Outcome(unjudged(Status.API_ERROR, str(error)))
    except Exception as error:
        _log.exception("judging failed")
        return Outcome(
            unjudged(Status.TOOL_ERROR, f"judging failed: {type(error).__name__}")
        )


class RunLoop:
    """Judges jobs by `judge`, `live` at a time, in the event loop that it is used in.

    A job that is asked for while the same is waiting or under way is judged once. One that nobody
    waits for any more is dropped if it has not begun, and judged to its end if it has, so that its
    answers are stored.
    """

    # States of a job: waiting (in `_by_key` and in a client's queue), running (in `_by_key` and a
    # task of `_running`), and done (in neither; its future has the outcome). Waiting jobs without
    # waiters are dropped when their turn comes.

    def __init__(
        self,
        judge: Callable[[KeyedJob], Awaitable[Outcome]],
        live: int,
    ) -> None:
        self._judge = judge
        self._live = live
        self._clients: deque[deque[_Queued]] = deque()
        self._by_key: dict[Hashable, _Queued] = {}
        self._running: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        """Jobs that have not begun."""
        return len(self._by_key) - len(self._running)

    @property
    def under_way(self) -> int:
        """Jobs that have begun."""
        return len(self._running)

    async def outcomes(self, jobs: Sequence[KeyedJob], timeout: float) -> list[Outcome]:
        """The outcomes of a client's jobs, in order; those that take longer than so many seconds
        have failed.
        """
        queue: deque[_Queued] = deque()
        queued = [self._queued(job, queue) for job in jobs]
        self._clients.append(queue)
        self._begin()
        try:
            if queued:
                await asyncio.wait(
                    {entry.outcome for entry in queued},
                    timeout=max(timeout, 0.0),
                )
        finally:
            for entry in queued:
                entry.waiters -= 1
        late = Outcome(
            unjudged(
                Status.API_ERROR,
                f"not judged within {timeout:.0f} s, the time limit of this client",
            )
        )
        return [
            entry.outcome.result() if entry.outcome.done() else late for entry in queued
        ]

    async def close(self) -> None:
        """Start no more work, and end running work."""
        self._clients.clear()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _queued(self, job: KeyedJob, queue: deque[_Queued]) -> _Queued:
        entry = self._by_key.get(job.key)
        if entry is None:
            entry = _Queued(job, asyncio.get_running_loop().create_future())
            self._by_key[job.key] = entry
            queue.append(entry)
        entry.waiters += 1
        return entry

    def _begin(self) -> None:
        while len(self._running) < self._live and (entry := self._next()) is not None:
            task = asyncio.ensure_future(self._run(entry))
            self._running.add(task)
            task.add_done_callback(self._finish)

    def _next(self) -> _Queued | None:
        """The next job of the client whose turn it is; abandoned ones are dropped on
        the way.
        """
        while self._clients:
            client = self._clients.popleft()
            while client and not client[0].waiters:
                del self._by_key[client.popleft().job.key]
            if client:
                entry = client.popleft()
                self._clients.append(client)
                return entry
        return None

    async def _run(self, entry: _Queued) -> None:
        try:
            outcome = await outcome_or_failure(self._judge(entry.job))
        finally:
            self._by_key.pop(entry.job.key, None)
        entry.outcome.set_result(outcome)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._begin()
