"""A server from its start to its end: it opens the judges, listens, and finishes
running work when it is stopped.
"""

from __future__ import annotations

import asyncio
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from aiohttp import web

from vieval_plugin.backends.cache.store import Store
from vieval_plugin.config import Backbone, Config
from vieval_plugin.rewards.reward import Reward
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.session import Session
from vieval_plugin.serve.app import Front, application
from vieval_plugin.serve.connections import Connections
from vieval_plugin.serve.options import ServeOptions
from vieval_plugin.serve.requests import Bodies
from vieval_plugin.serve.security import Guard
from vieval_plugin.serve.service import Service
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import say
from vieval_plugin.text.wording import plural

_TRIM_INTERVAL = 600.0
_BACKLOG = 1024
_DESCRIPTORS = 256  # of files, the store and the backbones' servers


@dataclass(frozen=True)
class ServerSetup:
    """Setup of a server: its rewards, options and rules."""

    #: Rewards that it serves.
    rewards: Sequence[Reward]
    #: Options of judges, backbones and the store.
    current: Config
    #: Backbone of the judges, None for the one that the options name.
    backbone: Backbone | None
    #: Rules on who may call.
    guard: Guard
    #: Options of the server itself.
    options: ServeOptions


def _runner(front: Front) -> web.AppRunner:
    return web.AppRunner(
        application(front),
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=1.0,
    )


def _limit_connections(options: ServeOptions) -> ServeOptions:
    """Allow no more connections than this process may have files open."""
    descriptor_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _DESCRIPTORS
    connections = max(1, min(options.bounds.connections, descriptor_limit))
    return replace(options, bounds=replace(options.bounds, connections=connections))


@asynccontextmanager
async def listening(setup: ServerSetup) -> AsyncIterator[tuple[int, Front]]:
    """A server that listens within the block: its port, and what its requests have to do with.

    Raises:
        VievalError: the port is taken, or the judges cannot be opened.
    """
    options = _limit_connections(setup.options)
    progress = Progress()
    async with Session(
        setup.current,
        setup.backbone,
        progress,
        any(
            term.judge.asks_a_model for reward in setup.rewards for term in reward.terms
        ),
    ) as session:
        service = Service(setup.rewards, session, progress, options)
        front = Front(
            service,
            setup.guard,
            options,
            Bodies(options.bounds),
        )
        runner = _runner(front)
        await runner.setup()
        assert runner.server is not None
        connections = Connections(runner.server, options.bounds)
        front.connections = lambda: len(connections.open)
        try:
            server = await _opened(connections, options)
            starting = asyncio.ensure_future(
                service.fault(setup.rewards, options.bounds.drain_seconds)
            )
            trimming = asyncio.ensure_future(
                _trim(setup.current.store_path(), options.store_replies)
            )
            try:
                yield int(server.sockets[0].getsockname()[1]), front
            finally:
                front.stopping = True
                server.close()
                for task in (starting, trimming):
                    task.cancel()
                await asyncio.gather(starting, trimming, return_exceptions=True)
                await _drained(front, options.bounds.drain_seconds)
        finally:
            await connections.close()
            await service.close()
            await runner.cleanup()
            front.pool.shutdown(wait=False, cancel_futures=True)


async def serve(setup: ServerSetup, announce: Callable[[int], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce` is called with the port as soon as the server
    listens.
    """
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with listening(setup) as (port, front):
        announce(port)
        await stopped.wait()
        seconds = front.options.bounds.drain_seconds
        say(
            f"vieval: stopping; waiting up to {seconds:g} s for "
            f"{plural(front.requests, 'open request')}",
            file=sys.stderr,
        )


async def _opened(connections: Connections, options: ServeOptions) -> asyncio.Server:
    try:
        return await asyncio.get_running_loop().create_server(
            connections,
            options.host,
            options.port,
            backlog=_BACKLOG,
        )
    except OSError as error:
        raise VievalError(
            f"cannot listen on {options.host} port {options.port}: {error.strerror}; "
            "pass another --host or --port"
        ) from None


async def _drained(front: Front, timeout: float) -> None:
    """Wait until no request is open and nothing is judged any more, but no longer than
    the given number of seconds.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            while front.requests or front.service.loop.under_way:
                await asyncio.sleep(0.05)


async def _trim(path: Path | None, max_replies: int) -> None:
    """Keep the store bounded: now and then the oldest replies above a number are deleted, beside
    the event loop.
    """

    def keep_newest(path: Path) -> None:
        with closing(Store(path)) as store:
            store.keep_newest(max_replies)

    while path is not None:
        await asyncio.sleep(_TRIM_INTERVAL)
        await asyncio.to_thread(keep_newest, path)
