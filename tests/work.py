"""Bounds of work that hold on a busy machine too, where seconds do not."""

import asyncio
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest

#: A process of its own, with what it printed as text.
run_process = partial(subprocess.run, capture_output=True, text=True, check=False)


@contextmanager
def calls_at_most(limit):
    """Fail once the code inside, in this thread, has made more than `limit` calls of functions."""
    made = 0

    def count(frame, event, argument):
        nonlocal made
        made += event in ("call", "c_call")
        if made > limit:
            sys.setprofile(before)
            pytest.fail(f"more than {limit:,} calls of functions")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)


def free_ports(count):
    """Ports of this machine that nobody listens at now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for opened in sockets:
            opened.bind(("127.0.0.1", 0))
        return [opened.getsockname()[1] for opened in sockets]


def waits_asked_for(monkeypatch):
    """List of the seconds that code in the running event loop asks to sleep for, which it does."""
    loop, sleep, seconds = asyncio.get_running_loop(), asyncio.sleep, []

    async def noting(delay, *result):
        if asyncio.get_running_loop() is loop:
            seconds.append(delay)
        return await sleep(delay, *result)

    monkeypatch.setattr(asyncio, "sleep", noting)
    return seconds


def until(happened, seconds=600):
    """Wait for `happened()`, for ten minutes at most; `asyncio.to_thread` does so beside a loop."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, f"it did not happen within {seconds} s"
        time.sleep(0.01)
