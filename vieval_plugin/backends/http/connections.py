"""Connections to servers that are used again only while nothing waits on them that nobody asked for."""

from __future__ import annotations

from typing import Any


def connector() -> Any:
    """A connector of aiohttp without a limit of its own.

    aiohttp hands a connection out again although something came in on it meanwhile, and takes that for the answer to the
    next request. A reply that comes later still, when the next request is under way, cannot be told from its answer in
    HTTP/1.1.
    """
    import aiohttp

    class Connector(aiohttp.TCPConnector):
        async def connect(self, req: Any, traces: Any, timeout: Any) -> aiohttp.connector.Connection:
            while True:
                connection = await super().connect(req, traces, timeout)
                if connection.protocol is None or not connection.protocol.should_close:
                    return connection
                connection.close()

    return Connector(limit=0, ttl_dns_cache=300)
