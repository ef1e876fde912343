"""Bodies of requests, read within bounds: their bytes, their parts, and how long they may take."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import BodyPartReader, web
from aiohttp.http_exceptions import HttpProcessingError

from vieval_plugin.serve.options import MIB, Bounds
from vieval_plugin.serve.protocols.protocol import Body

_MOST_PARTS = 4096
_REQUEST_PART = "request"


class RequestRefused(Exception):
    """A request that is not judged: the HTTP status that says so, and the reason in one line.

    `retry_after` are seconds after which it may come again, None for never.
    """

    def __init__(self, status: int, reason: str, retry_after: int | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.retry_after = status, reason, retry_after


@dataclass
class Bodies:
    """The bodies of all requests that are in memory: how many bytes, of so many that may be."""

    bounds: Bounds
    bytes_open: int = 0

    async def read(self, request: web.Request, reserve: Reserved) -> Body:
        """The body of a request; `RequestRefused` for one that is too large, too slow, or packed.

        `reserve` counts its bytes as long as they are kept.
        """
        if "Content-Encoding" in request.headers:
            raise RequestRefused(415, "a body that is compressed is not read: send it as it is")
        if (request.content_length or 0) > self.bounds.body:
            raise self.too_large()
        try:
            async with asyncio.timeout(self.bounds.body_seconds):
                if request.content_type.startswith("multipart/"):
                    return await self._parts(request, reserve)
                return Body(await self._whole(request.content.readany, reserve))
        except TimeoutError:
            raise RequestRefused(408, f"the body did not come within {self.bounds.body_seconds:g} s") from None

    @contextmanager
    def reserved(self) -> Iterator[Reserved]:
        """A count of the bytes of one request, given back at its end."""
        reserve = Reserved(self)
        try:
            yield reserve
        finally:
            self.bytes_open -= reserve.number

    async def _whole(self, read: Any, reserve: Reserved) -> bytes:
        content = bytearray()
        while chunk := await read():
            reserve.add(len(chunk))
            content += chunk
        return bytes(content)

    async def _parts(self, request: web.Request, reserve: Reserved) -> Body:
        """The parts of a body: the JSON is that called `request`, all others are files by their names."""
        files: dict[str, bytes] = {}
        try:
            async for part in await request.multipart():
                if not isinstance(part, BodyPartReader) or not part.name:
                    raise RequestRefused(400, "a part of the body has no name, or has parts of its own")
                if len(files) >= _MOST_PARTS:
                    raise RequestRefused(413, f"the body has more than {_MOST_PARTS} parts")
                files[part.name] = await self._whole(part.read_chunk, reserve)
        except (ValueError, AssertionError, HttpProcessingError) as error:
            raise RequestRefused(
                400, f"the parts of the body cannot be read ({' '.join(str(error).split())[:100]})"
            ) from None
        if _REQUEST_PART not in files:
            raise RequestRefused(400, f"the body has no part called {_REQUEST_PART}")
        return Body(files.pop(_REQUEST_PART), files)

    def too_large(self) -> RequestRefused:
        """Make the refusal of a body that is larger than one may be."""
        return RequestRefused(
            413, f"the body is larger than {self.bounds.body // MIB} MiB; send fewer images a request"
        )


@dataclass
class Reserved:
    """The bytes that one request holds."""

    bodies: Bodies
    number: int = 0

    def add(self, size: int) -> None:
        """Count further bytes; `RequestRefused` where this request, or all together, have too many."""
        self.number += size
        self.bodies.bytes_open += size
        if self.number > self.bodies.bounds.body:
            raise self.bodies.too_large()
        if self.bodies.bytes_open > self.bodies.bounds.bodies:
            raise RequestRefused(503, "the server holds as many bodies as it may; come back", retry_after=2)
