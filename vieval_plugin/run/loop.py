"""An event loop in its own thread, for calls from scripts, notebooks and any thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from vieval_plugin.backends.concurrency import DaemonPool
from vieval_plugin.text.errors import VievalError

T = TypeVar("T")
CLOSED = (
    "the judge was closed while it was judging; run it again, and close it when it is "
    "done"
)
# seconds; what was interrupted is waited for, so that nothing goes on behind the caller's back
_ENDING = 10.0


class LoopThread:
    """A running event loop; use as `with`, or `close` it. `at_end` is the last that it does, to
    close what is open in it.
    """

    def __init__(self, at_end: Callable[[], Awaitable[None]] | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._at_end = at_end
        self._loop.set_default_executor(DaemonPool(name="blocking"))
        self.closing = False
        self._change = (
            threading.RLock()
        )  # whoever lets go of the last reference closes, which may be anywhere
        self._thread = threading.Thread(target=self._run, name="vieval", daemon=True)
        self._thread.start()

    def __enter__(self) -> LoopThread:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start work in the loop; the future may be waited for from any thread. VievalError once
        it is closed.
        """
        with self._change:
            if not self.closing:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        raise VievalError(CLOSED)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the result of work; an interruption such as Ctrl-C ends the work
        first.
        """
        finished = threading.Event()

        async def run_and_signal() -> T:
            try:
                return await work
            finally:
                finished.set()

        try:
            future = self.begin(run_and_signal())
        except VievalError:
            work.close()
            raise
        try:
            return future.result()
        except BaseException:
            if future.cancel():
                finished.wait(_ENDING)
            raise

    def close(self) -> None:
        """Cancel running work, run `at_end`, and stop the thread."""
        with self._change:
            if not self.closing:
                self.closing = True
                self._loop.call_soon_threadsafe(self._loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(_ENDING)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._end())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    async def _end(self) -> None:
        await asyncio.sleep(0)  # what has just begun is to know that it is cancelled
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._at_end is not None:
            await self._at_end()


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` that also works where a loop is running already, as in a notebook.

    >>> async def one() -> int:
    ...     return 1
    >>> async def inside() -> int:
    ...     return run(one())
    >>> run(inside())
    1
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:

        async def set_daemon_pool() -> T:
            asyncio.get_running_loop().set_default_executor(DaemonPool(name="blocking"))
            return await work

        return asyncio.run(set_daemon_pool())
    with LoopThread() as loop:
        return loop.call(work)
