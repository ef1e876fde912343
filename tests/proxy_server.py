"""An HTTP proxy in the test's event loop: requests by whole addresses, and CONNECT tunnels."""

import asyncio
import contextlib
from contextlib import asynccontextmanager

HOST = "127.0.0.1"


@asynccontextmanager
async def proxying(port, answer=b""):
    """A proxy that leads every name to a port of this machine; yields its address and the heads of
    requests.

    With `answer` it gives that to all requests, and leads nowhere.
    """
    heads = []
    tasks = set()

    async def handle(reader, writer):
        tasks.add(asyncio.current_task())
        head = await reader.readuntil(b"\r\n\r\n")
        heads.append(head.decode())
        if answer:
            writer.write(answer)
            await writer.drain()
            writer.close()
            return
        server_reader, server_writer = await asyncio.open_connection(HOST, port)
        if head.startswith(b"CONNECT "):
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            server_writer.write(head)
        with contextlib.suppress(ConnectionError):
            there, back = _copied(reader, server_writer), _copied(server_reader, writer)
            await asyncio.gather(there, back)

    server = await asyncio.start_server(handle, HOST, 0)
    async with server:
        yield f"http://{HOST}:{server.sockets[0].getsockname()[1]}", heads
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _copied(reader, writer):
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()
