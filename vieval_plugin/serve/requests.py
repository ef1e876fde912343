"""Bodies of requests, read within bounds: their bytes, their parts, and how long they may take."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from aiohttp import web
from aiohttp.helpers import parse_mimetype

from vieval_plugin.serve.options import MIB, Bounds
from vieval_plugin.serve.protocols.protocol import Body, RequestRefused

_MOST_PARTS = 4096
_LONGEST_HEADER = 8192  # of a part, all its lines
_LONGEST_BOUNDARY = 70  # RFC 2046, section 5.1.1
_REQUEST_PART = "request"
_PARAMETER = re.compile(r';\s*([a-z]+)=("(?:[^"\\]|\\.)*"|[^\s;"]+)', re.IGNORECASE)


#: Counts further bytes of a request; `RequestRefused` where it, or all together, have too many.
Reserve: TypeAlias = Callable[[int], None]


@dataclass
class Bodies:
    """The bodies of all requests that are in memory."""

    #: How many bytes one, and all together, may have.
    bounds: Bounds
    #: How many they have.
    bytes_open: int = 0

    async def read(self, request: web.Request, reserve: Reserve) -> Body:
        """The body of a request; `RequestRefused` for one that is too large, too slow, or packed.

        Of several parts the JSON is that called `request`, and all others are files by their names.
        `reserve` counts the bytes as long as they are kept.
        """
        if "Content-Encoding" in request.headers:
            raise RequestRefused(
                415,
                "compressed bodies are not supported; send the body uncompressed",
            )
        if (request.content_length or 0) > self.bounds.body:
            raise self.too_large()
        try:
            async with asyncio.timeout(self.bounds.body_seconds):
                content = bytearray()
                while chunk := await request.content.readany():
                    reserve(len(chunk))
                    content += chunk
        except TimeoutError:
            raise RequestRefused(
                408,
                f"the body did not arrive within {self.bounds.body_seconds:g} s",
            ) from None
        if not request.content_type.startswith("multipart/"):
            return Body(bytes(content))
        boundary = parse_mimetype(request.headers["Content-Type"]).parameters.get(
            "boundary",
            "",
        )
        files = await asyncio.to_thread(
            _parts_of,
            bytes(content),
            boundary.encode(errors="surrogateescape"),
        )
        if _REQUEST_PART not in files:
            raise RequestRefused(400, f"the body must have a part {_REQUEST_PART!r}")
        return Body(files.pop(_REQUEST_PART), files)

    @contextmanager
    def reserved(self) -> Iterator[Reserve]:
        """A counter of the bytes of one request, which are given back at its end."""
        number = 0

        def reserve(size: int) -> None:
            nonlocal number
            number += size
            self.bytes_open += size
            if number > self.bounds.body:
                raise self.too_large()
            if self.bytes_open > self.bounds.bodies:
                raise RequestRefused(
                    503,
                    "too many request bodies in memory; retry later",
                    retry_after=2,
                )

        try:
            yield reserve
        finally:
            self.bytes_open -= number

    def too_large(self) -> RequestRefused:
        """Make the refusal of a body that is larger than one may be."""
        return RequestRefused(
            413,
            f"the body is larger than {self.bounds.body // MIB} MiB; send fewer images",
        )


def _parts_of(content: bytes, boundary: bytes) -> dict[str, bytes]:
    """The parts of a body of several (RFC 2046, section 5.1.1), by name; `RequestRefused` for
    too many, or a broken one.
    """
    if not 0 < len(boundary) <= _LONGEST_BOUNDARY:
        raise RequestRefused(
            400,
            "cannot read the multipart body: Content-Type must have a boundary of 1 to 70 "
            "characters",
        )
    line = b"--" + boundary
    delimiter = b"\r\n" + line
    files: dict[str, bytes] = {}
    begin = 0 if content.startswith(line) else content.find(delimiter) + 2
    for number in range(_MOST_PARTS + 1):
        begin += len(line)
        if content.startswith(b"--", begin):
            return files
        header = content.find(b"\r\n\r\n", begin, begin + _LONGEST_HEADER)
        end = content.find(delimiter, header + 4)
        if -1 in (header, end):
            raise RequestRefused(
                400,
                f"cannot read the multipart body: part {number} has no header or no end",
            )
        files[_name_of(content[begin:header], number)] = content[header + 4 : end]
        begin = end + 2
    raise RequestRefused(
        413,
        f"the body has more than {_MOST_PARTS} parts; send several requests",
    )


def _name_of(header: bytes, number: int) -> str:
    """The name of a part in its header."""
    for line in header.decode(errors="replace").split("\r\n"):
        if line.lower().startswith("content-disposition:"):
            parameters = {key.lower(): value for key, value in _PARAMETER.findall(line)}
            if name := str(parameters.get("name", "")).strip('"'):
                return name
    raise RequestRefused(400, f"part {number} of the body has no name")
