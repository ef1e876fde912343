"""Test as many connections as a process may have."""

import contextlib
import resource
import socket

import pytest

from tests.pictures import plain
from tests.serve.serving import row, serve_process
from tests.work import until

pytestmark = pytest.mark.slow
GUARD = 120.0


def test_ten_thousand_connections_that_say_nothing():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 10_500 if hard == resource.RLIM_INFINITY else min(10_500, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    process = serve_process("--reward", "r=sharpness")
    try:
        with process as (server, running), contextlib.ExitStack() as opened:
            running.get("/health")
            place = ("127.0.0.1", running.port)
            for _ in range(min(10_000, wanted - 400)):
                opened.enter_context(socket.create_connection(place, timeout=GUARD))
            asked = {"samples": [row(plain("red"), kind="tig")]}
            status, answer = running.post("/v1/judge", asked)
            assert (status, answer["failed"]) == (200, [])
            until(lambda: running.metrics()["vieval_connections_open"] <= 1)
            assert server.poll() is None
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
