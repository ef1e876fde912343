"""Answers `Measure` asks in batches, through the store; each measurement is made once.

What measures is an `Instrument`: this machine's processors for metrics of pixels, a network for
those of a scorer. Asks are looked at in threads, and those that wait together go to their
instrument together.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Protocol, TypeVar

from tqdm import tqdm

from vieval_plugin.backends.cache.store import Store, key_of
from vieval_plugin.backends.concurrency import DaemonPool, cores, gather_or_cancel
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.metrics.pixel_metrics import measure, size_findings
from vieval_plugin.backends.reply_checks import checked, final
from vieval_plugin.images import digest
from vieval_plugin.judges.protocol import (
    Failure,
    Measure,
    Measurement,
    Reply,
    Status,
    ToolResult,
    UseTool,
)
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.versions import versions_of

T = TypeVar("T")
_CLOSING = 5.0  # seconds; what computes on when a run ends early is not waited for
_AHEAD = 2  # so many batches are looked at and not yet measured, at most


@dataclass(frozen=True)
class PreparedMeasure:
    """An ask that was looked at."""

    #: Its key in the store.
    key: str
    #: The input of the instrument.
    content: Any
    #: Equal for what may go into one batch.
    batch_key: Hashable = None
    #: Findings for the verdict.
    notes: tuple[str, ...] = ()


class Instrument(Protocol):
    """Something that measures."""

    #: Most asks that it takes at once.
    batch: int

    @property
    def by(self) -> str:
        """Its name."""

    def look(self, ask: Any) -> PreparedMeasure:
        """Prepare a measurement, in any thread; VievalError for an image that cannot be read."""

    def compute(self, contents: Sequence[Any]) -> list[Reply]:
        """The measurements of a batch in order, always made in the same thread."""

    def close(self) -> None:
        """Let go of connections, in that thread."""


class PixelInstrument:
    """Metrics of pixels on this machine's processors."""

    by = "measurements on this machine"  # what `vieval cache info` calls them
    batch = 64

    def __init__(self, pool: Executor) -> None:
        self._pool = pool

    def look(self, ask: Measure) -> PreparedMeasure:
        return PreparedMeasure(
            _key(ask),
            ask,
            notes=size_findings(ask),
        )

    def compute(self, contents: Sequence[Measure]) -> list[Reply]:
        return list(self._pool.map(measure, contents))

    def close(self) -> None:
        pass


class Batcher:
    """Answers asks by the instrument that each names; from the store where it has them.

    `find` gives the scorer of an ask that needs one; `tools` are the image tools whose results are
    stored, by name.
    """

    def __init__(
        self,
        usage: Usage,
        store: Store | None = None,
        bar: bool = False,
        find: Callable[[Any, Usage], Instrument] | None = None,
        tools: Mapping[str, Instrument] | None = None,
    ) -> None:
        self._usage = usage
        self._store = store
        self._bar = bar
        self._find = find
        self._tools = tools or {}
        self._pool = DaemonPool(cores(), "measure")
        # networks have threads of their own below each that calls them
        self._worker = DaemonPool(1, "instrument")
        self._pixel_instrument = PixelInstrument(self._pool)
        self._instruments: dict[tuple[str, str], Instrument] = {}
        self._queue: _Queue | None = None

    def measure(self, asks: Sequence[Measure | UseTool]) -> list[Reply]:
        """The replies to asks, in order.

        Raises:
            VievalError: there is no such metric or scorer, or a package it needs is not installed.
        """
        return asyncio.run(self._all(asks)) if asks else []

    async def measure_soon(self, ask: Measure | UseTool) -> Reply:
        """The reply to one ask, made together with others that wait at the same time."""
        self._queue = self._queue or _Queue(self._store_replies, self._worker)
        return await self._reply(self._queue, ask)

    def close(self) -> None:
        """Start no more work."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        instruments = [*self._instruments.values(), *self._tools.values()]
        closing = [self._worker.submit(instrument.close) for instrument in instruments]
        wait(closing, timeout=_CLOSING)
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def _all(self, asks: Sequence[Measure | UseTool]) -> list[Reply]:
        queue = _Queue(self._store_replies, self._worker)  # of this event loop
        with tqdm(
            total=len(asks),
            desc="Measuring",
            unit="image",
            disable=not self._bar,
        ) as progress_bar:

            async def reply_with_progress(ask: Measure | UseTool) -> Reply:
                reply = await self._reply(queue, ask)
                progress_bar.update()
                return reply

            return await gather_or_cancel(reply_with_progress(ask) for ask in asks)

    async def _reply(self, queue: _Queue, ask: Measure | UseTool) -> Reply:
        instrument = await self._instrument(ask)
        async with queue.room(instrument):
            try:
                prepared = await run_in_pool(
                    self._pool,
                    partial(instrument.look, ask),
                )
            except VievalError as error:
                return Failure(Status.TOOL_ERROR, str(error))
            reply: Reply | None = self._store.get(prepared.key) if self._store else None
            if reply is not None:
                self._usage.cached += 1
            else:
                reply = await queue.reply(instrument, prepared)
                self._usage.measured += 1
        # which weights they were is in the key, and what they were called here need not be what
        # they were called then
        by = "" if instrument is self._pixel_instrument else instrument.by
        if isinstance(reply, ToolResult):
            return replace(reply, by=by)
        if isinstance(reply, Measurement):
            return replace(reply, by=by, notes=prepared.notes)
        return reply

    async def _instrument(self, ask: Measure | UseTool) -> Instrument:
        if isinstance(ask, UseTool):
            if ask.tool in self._tools:
                return self._tools[ask.tool]
            name = ask.tool, "colors" if ask.arguments["colored"] else ""
        else:
            name = ask.metric, ask.backbone
            if not ask.backbone:
                return self._pixel_instrument
        if self._find is None:
            raise VievalError(
                f"{name[0]} requires a scorer, which this run does not have; use --model "
                "vieval_scorer (lmms-eval) or `vieval score`"
            )
        find = self._find

        def open_once() -> None:
            # by the worker, one after another: all asks of a name share an instrument, or they
            # would share no batch
            if name not in self._instruments:
                self._instruments[name] = find(ask, self._usage)

        if name not in self._instruments:
            await run_in_pool(self._worker, open_once)
        return self._instruments[name]

    def _store_replies(
        self,
        instrument: Instrument,
        batch: Sequence[PreparedMeasure],
        raw_replies: Iterable[Reply],
    ) -> list[Reply]:
        """Replies as they are handed on, after they were stored; the store is used from the
        loop's thread alone.
        """
        replies = []
        for prepared, raw_reply in zip(batch, raw_replies, strict=True):
            reply = checked(raw_reply)
            if self._store and final(reply):
                reply = self._store.add(
                    prepared.key,
                    instrument.by,
                    reply,
                )
            replies.append(reply)
        return replies


class _Queue:
    """The asks that wait for instruments in one event loop; what is asked for twice at once is
    measured once.
    """

    # States of an ask: looked at (it has room), waiting (in `_waiting` and `_under_way`), in a
    # batch (in `_under_way` alone), measured (in neither). One task works as long as asks wait, a
    # batch at a time.

    def __init__(
        self,
        keep: Callable[
            [
                Instrument,
                Sequence[PreparedMeasure],
                Iterable[Reply],
            ],
            list[Reply],
        ],
        worker: Executor,
    ) -> None:
        self._keep = keep
        self._worker = worker
        self._waiting: list[tuple[Instrument, PreparedMeasure]] = []
        self._under_way: dict[str, asyncio.Future[Reply]] = {}
        self._rooms: dict[Instrument, asyncio.Semaphore] = {}
        self._working: asyncio.Task[None] | None = None

    def room(self, instrument: Instrument) -> asyncio.Semaphore:
        """A semaphore that keeps the number of asks that are looked at and not yet measured
        within bounds, for memory.
        """
        return self._rooms.setdefault(
            instrument, asyncio.Semaphore(_AHEAD * instrument.batch)
        )

    async def reply(self, instrument: Instrument, prepared: PreparedMeasure) -> Reply:
        if prepared.key not in self._under_way:
            self._under_way[prepared.key] = asyncio.get_running_loop().create_future()
            self._waiting.append((instrument, prepared))
            if self._working is None or self._working.done():
                self._working = asyncio.ensure_future(self._work())
            return await self._under_way[prepared.key]
        reply = await self._under_way[prepared.key]
        if not (isinstance(reply, Failure) and reply.status is Status.TOOL_ERROR):
            return reply
        # it names the files of who asked first, and equal files may be called otherwise
        raw_replies = await run_in_pool(
            self._worker, partial(instrument.compute, [prepared.content])
        )
        return self._keep(instrument, [prepared], raw_replies)[0]

    async def _work(self) -> None:
        await asyncio.sleep(0)
        while self._waiting:
            instrument, batch = self._next_batch()
            futures = [self._under_way[prepared.key] for prepared in batch]
            try:
                raw_replies = await run_in_pool(
                    self._worker,
                    partial(
                        instrument.compute, [prepared.content for prepared in batch]
                    ),
                )
                for future, reply in zip(
                    futures,
                    self._keep(instrument, batch, raw_replies),
                    strict=True,
                ):
                    if not future.done():
                        future.set_result(reply)
            except Exception as error:
                for future in futures:
                    if not future.done():
                        future.set_exception(error)
            for prepared in batch:
                del self._under_way[prepared.key]

    def _next_batch(self) -> tuple[Instrument, list[PreparedMeasure]]:
        """The first that waits, and as many as fit into one batch with it."""
        instrument, first = self._waiting[0]
        batch: list[PreparedMeasure] = []
        waiting = []
        for candidate, prepared in self._waiting:
            fits = candidate is instrument and prepared.batch_key == first.batch_key
            if fits and len(batch) < instrument.batch:
                batch.append(prepared)
            else:
                waiting.append((candidate, prepared))
        self._waiting = waiting
        return instrument, batch


async def run_in_pool(pool: Executor, call: Callable[[], T]) -> T:
    """The result of a call in a thread or process of the pool."""
    return await asyncio.get_running_loop().run_in_executor(pool, call)


def _key(ask: Measure) -> str:
    """Everything a measurement depends on: the metric and the packages that compute it, images
    by digest, texts.
    """
    images = {role: digest(image) for role, image in ask.images.items()}
    return key_of(
        {
            "metric": ask.metric,
            "by": _versions(),
            "images": images,
            "texts": json.dumps(dict(ask.texts)),
        }
    )


@cache
def _versions() -> str:
    return ", ".join(
        map(" ".join, versions_of("scikit-image", "numpy", "scipy", "pillow").items())
    )
