"""Connections of the server: so many at once, and none that is held open without a request."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from vieval_plugin.serve.options import Bounds

_SWEEP = 0.5
_NOT_HTTP = (HttpProcessingError, web.RequestPayloadError)
_log = logging.getLogger("vieval.serve")


class Connections:
    """The open connections of a server of aiohttp; called, it makes the protocol of the next.

    aiohttp waits for the headers of a request as long as a client likes. Here a connection that has
    sent no whole header within `header_seconds` is closed, and one that says nothing between two
    requests after `idle_seconds`. Where there are as many as may be, the oldest that has asked for
    nothing yet makes room for the next.
    """

    def __init__(self, server: web.Server, bounds: Bounds) -> None:
        self._server = server
        self._bounds = bounds
        self.open: dict[Connection, None] = {}  # the oldest first
        self._sweeping = asyncio.ensure_future(self._sweep())

    def __call__(self) -> asyncio.Protocol:
        return Connection(self, self._server, self._bounds)

    def has_room(self) -> bool:
        """Return whether one more may be open, after room was made for it where that is needed
        and can be.
        """
        if len(self.open) >= self._bounds.connections:
            for connection in self.open:
                if connection.has_asked_nothing():
                    self._cut(connection)
                    return True
            return False
        return True

    async def close(self) -> None:
        """Close no more of them."""
        self._sweeping.cancel()
        await asyncio.gather(self._sweeping, return_exceptions=True)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP)
            for connection in list(self.open):
                if connection.is_overdue():
                    self._cut(connection)

    def _cut(self, connection: Connection) -> None:
        self.open.pop(connection, None)
        connection.force_close()
        if connection.transport is not None:
            connection.transport.abort()


class Connection(web.RequestHandler):
    """A connection, which knows since when it waits for a header."""

    # States, by `_waits_since`, `_answered_at` and `_requests`:
    # - waiting for the first header: `_waits_since` is set, and too long for one is
    # `header_seconds`;
    # - in requests: `_requests` are open, pipelined ones too, and neither time is set;
    # - between requests: `_answered_at` is set; bytes of a next header set `_waits_since` again.
    # One for which there was no room stays unknown to aiohttp, and is closed at once.

    def __init__(
        self,
        connections: Connections,
        server: web.Server,
        bounds: Bounds,
    ) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=bounds.idle_seconds,
            access_log=None,  # type: ignore[arg-type]  # aiohttp's own way of switching it off
            auto_decompress=False,
            lingering_time=2.0,
        )
        self._connections = connections
        self._bounds = bounds
        self._waits_since: float | None = None
        self._answered_at: float | None = None
        self._requests = 0
        self._is_known = (
            False  # to aiohttp, which is told nothing of one that there was no room for
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not self._connections.has_room() and isinstance(
            transport,
            asyncio.Transport,
        ):
            transport.abort()
            return
        self._connections.open[self] = None
        self._is_known = True
        self._waits_since = time.monotonic()
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.open.pop(self, None)
        if self._is_known:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_known:
            if not self._requests and self._waits_since is None:
                self._waits_since = time.monotonic()
            super().data_received(data)

    def handle_error(self, *args: Any, **options: Any) -> web.StreamResponse:
        """Answer in one line, with none of what came."""
        status = super().handle_error(*args, **options).status
        reason = "malformed HTTP request" if status == 400 else "internal server error"
        response = web.json_response({"error": reason}, status=status)
        response.force_close()
        return response

    def log_exception(self, *args: Any, **options: Any) -> None:
        """Log invalid HTTP in one line, as anybody may send it, and all else with its
        traceback.
        """
        error = options.get("exc_info")
        if isinstance(error, _NOT_HTTP):
            _log.warning("malformed HTTP request: %s", type(error).__name__)
        else:
            super().log_exception(*args, **options)

    def begin_request(self) -> None:
        """Note that a whole header has come."""
        self._requests += 1
        self._waits_since = self._answered_at = None

    def end_request(self) -> None:
        """Note that a request is answered."""
        self._requests -= 1
        self._answered_at = time.monotonic()

    def has_asked_nothing(self) -> bool:
        """Return whether no request has begun or been answered on it."""
        return self._waits_since is not None and self._answered_at is None

    def is_overdue(self) -> bool:
        """Return whether a header takes too long that has begun or never did, or an
        answer that no client reads.
        """
        now = time.monotonic()
        if (
            self._waits_since is not None
            and now - self._waits_since > self._bounds.header_seconds
        ):
            return True
        return (
            self._answered_at is not None
            and now - self._answered_at > 2 * self._bounds.idle_seconds
        )


def connection_of(request: web.BaseRequest) -> Connection:
    """The connection that a request came on."""
    assert isinstance(request.protocol, Connection)
    return request.protocol
