"""Concurrent work: awaitables that all end together, and threads that outlive the main thread."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeAlias, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def cores() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


async def gather_or_cancel(work: Iterable[Awaitable[T]]) -> list[T]:
    """Results of all awaitables, in order. The first exception cancels the others and is raised
    when they have stopped.
    """
    tasks = [asyncio.ensure_future(awaitable) for awaitable in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def gather_all(work: Iterable[Awaitable[T]]) -> list[T]:
    """Results of all awaitables, in order; the first exception is raised when all have ended."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results  # type: ignore[return-value]  # none of them is an exception


class SharedTasks:
    """Deduplicate concurrent tasks of one event loop by key: later callers wait for the
    running task.

    Those that ended are forgotten, or with `keeps` remembered for whoever asks later.
    """

    def __init__(self, keeps: bool = False) -> None:
        self._keeps = keeps
        self._tasks: dict[Hashable, asyncio.Task[Any]] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._tasks

    async def result(
        self,
        key: Hashable,
        work: Callable[P, Coroutine[Any, Any, T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """The result or exception of a key's work, which continues if a waiting caller is
        cancelled.
        """
        if key not in self._tasks:
            self._tasks[key] = asyncio.ensure_future(work(*args, **kwargs))
            if not self._keeps:
                self._tasks[key].add_done_callback(partial(self._forget, key))
        task = self._tasks[key]
        # a task that ended costs no turn of the event loop
        result: T = task.result() if task.done() else await asyncio.shield(task)
        return result

    def _forget(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(key, None)
        if not task.cancelled():
            # whoever waited may have been cancelled first, and asyncio logs errors that
            # are never retrieved
            task.exception()

    async def close(self) -> None:
        """Cancel all tasks and wait for their end."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


_Jobs: TypeAlias = "SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]"


class DaemonPool(ThreadPoolExecutor):
    """A pool of daemon threads, each started when there is work for it.

    The standard pool refuses work as soon as the main thread has ended, when other
    threads may still be judging and what is closed at the end of the program is still
    to be closed. This pool accepts such work and waits for it at exit.
    """

    def __init__(self, threads: int | None = None, name: str = "pool") -> None:
        self._max_threads = threads or min(32, cores() + 4)
        self._name = name
        super().__init__(
            self._max_threads, name
        )  # an event loop takes executors of that class alone
        self._jobs: _Jobs = SimpleQueue()
        self._free_threads = threading.Semaphore(0)
        self._change = threading.Lock()
        self._is_shut_down = False
        self._daemons: list[threading.Thread] = []
        self._process = os.getpid()
        weakref.finalize(self, self._jobs.put, None).atexit = False
        _pools.add(self)

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        future: Future[T] = Future()
        with self._change:
            if self._is_shut_down:
                raise RuntimeError(f"the thread pool {self._name} is closed")
            if (
                not self._free_threads.acquire(blocking=False)
                and len(self._daemons) < self._max_threads
            ):
                thread = threading.Thread(
                    target=_work,
                    args=(self._jobs, self._free_threads),
                    name=f"{self._name}_{len(self._daemons)}",
                    daemon=True,
                )
                thread.start()
                self._daemons.append(thread)
            self._jobs.put((future, partial(fn, *args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._change:
            self._is_shut_down = True
            while cancel_futures and (job := _next(self._jobs)) is not None:
                job[0].cancel()
            self._jobs.put(None)
        if wait:
            for thread in self._daemons:
                thread.join()


def _next(jobs: _Jobs) -> tuple[Future[Any], Callable[[], Any]] | None:
    try:
        return jobs.get_nowait()
    except Empty:
        return None


def _work(jobs: _Jobs, free_threads: threading.Semaphore) -> None:
    while (job := jobs.get()) is not None:
        _run(*job)
        del job  # what it holds is not to be kept until the next comes
        free_threads.release()
    jobs.put(None)  # for the next thread


def _run(future: Future[Any], call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:
        future.set_exception(error)
        del future  # which the error's traceback would hold, and it the error
    else:
        future.set_result(result)


def _wait_for_all() -> None:
    """Wait for all threads, as libraries crash if the interpreter ends while they run."""
    for pool in list(_pools):
        if pool._process == os.getpid():
            pool.shutdown(cancel_futures=True)


_pools: weakref.WeakSet[DaemonPool] = weakref.WeakSet()
# finalizers are called from the last to the first, and this one comes before any that uses a pool
weakref.finalize(DaemonPool, _wait_for_all)
