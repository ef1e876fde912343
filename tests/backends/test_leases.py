"""Two processes on one store: a question is asked by one of them, and both use the same reply."""

import asyncio
import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from tests.fake_server import FakeServer, Fault
from tests.one_server import (
    SCHEMA,
    all_of,
    asking,
    chat,
    error,
    faked,
    first,
    saying,
    serving,
)
from tests.work import until
from vieval_plugin.backends.cache import leases, store
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.judges.protocol import Text


def claimed(path):
    with sqlite3.connect(path) as database:
        return [key for (key,) in database.execute("SELECT key FROM claims")]


@asynccontextmanager
async def asking_twice(server, path, **options):
    """Two backends of a server that share a store's file."""
    opened = lambda: asking(server.base_url, store=Store(path), **options)
    one, other = opened(), opened()
    async with one as first, other as second:
        yield first, second


async def test_what_another_asks_is_waited_for_and_not_asked_again(path):
    numbers = itertools.count()
    reply = lambda request: f"answer {next(numbers)}"
    with FakeServer(reply=reply, latency=0.05) as server:
        async with asking_twice(server, path) as (first, second):
            here, there = await asyncio.gather(all_of(first, 40), all_of(second, 40))
        assert server.stats()["requests"] == 40
    assert here == there
    assert len(set(here)) == 40
    assert first.usage.cached + second.usage.cached == 40
    assert claimed(path) == []


async def test_to_wait_for_another_holds_up_nothing_else(path):
    async with faked(latency=0.01, store=Store(path)) as (server, backend):
        theirs = [chat(f"theirs {number}") for number in range(40)]  # more than slots
        for question in theirs:
            assert Store(path).claim(backend._key(question, {}, 0))
        waiting = [asyncio.ensure_future(backend.answer(one)) for one in theirs]
        await asyncio.wait_for(all_of(backend, 40, "ours"), 120)
        assert not any(task.done() for task in waiting)
        assert server.stats()["requests"] == 40
        for task in waiting:
            task.cancel()


async def test_what_another_has_to_try_again_is_waited_for_too(path, monkeypatch):
    """Its tries take longer in all than one may, and than a claim lasts that is not renewed."""
    monkeypatch.setattr(store, "LEASE", 0.5)
    monkeypatch.setattr(leases, "_RENEWAL_INTERVAL", 0.1)
    hanging = first(Fault("hang"), Fault("hang"))
    options = {"timeout": 0.4, "deadline": 0.4}
    with FakeServer(faults=hanging) as server:
        async with asking_twice(server, path, **options) as (one, other):
            here = asyncio.ensure_future(one.answer(chat("x")))
            await asyncio.to_thread(until, lambda: server.stats()["in_flight"])
            assert isinstance(await other.answer(chat("x")), Text)
            assert await here == await other.answer(chat("x"))
    assert (one.usage.calls, other.usage.calls) == (1, 0)


async def test_what_another_failed_at_is_asked_at_once(path):
    """A failure is no reply: whoever waited asks."""
    answers = iter([error(400, "no"), saying({"content": "y"})])
    async with serving(lambda body: next(answers)) as (url, bodies):
        server = SimpleNamespace(base_url=url)
        async with asking_twice(server, path) as (one, other):
            asked = (one.answer(chat("x")), other.answer(chat("x")))
            replies = await asyncio.gather(*asked)
    assert sorted(type(reply).__name__ for reply in replies) == ["Failure", "Text"]
    assert len(bodies) == 2
    assert claimed(path) == []
    assert [row["reply"]["kind"] for row in Store(path).export()] == ["Text"]


async def test_an_empty_answer_is_asked_once_more_and_not_by_the_same_run_again(path):
    with FakeServer(reply=lambda request: " \n") as server:
        for run in (1, 2):
            store = Store(path)
            async with asking(server.base_url, store=store) as backend:
                assert await backend.answer(chat("x")) == Text(" \n", 1, 1, cut=False)
            store.close()
            assert server.stats()["requests"] == run


async def test_an_empty_answer_that_its_limit_cut_is_kept(path):
    cut = saying({"content": None}, "length")
    async with serving(lambda body: cut) as (url, bodies):
        for _ in range(2):
            async with asking(url, store=Store(path)) as backend:
                assert await backend.answer(chat("x")) == Text("", cut=True)
                assert isinstance(await backend.answer(chat("x", max_tokens=9)), Text)
    # the first is tried once more with more room, which the second is given at once
    assert [body["max_tokens"] for body in bodies] == [1024, 4 * 1024, 4 * 9]


GIVEN_UP = {"deadline": 0.1, "retries": 0, "patience": 0.3}


@pytest.mark.parametrize(("lease", "options"), [(0.5, {}), (1000.0, GIVEN_UP)])
async def test_what_another_never_answers_is_asked_in_the_end(
    path, monkeypatch, lease, options
):
    """After its claim has expired, or longer than an answer may take."""
    monkeypatch.setattr(store, "LEASE", lease)
    async with faked(store=Store(path), **options) as (_, backend):
        begun = time.monotonic()
        Store(path).claim(backend._key(chat("x"), {}, 0))
        assert isinstance(await asyncio.wait_for(backend.answer(chat("x")), 120), Text)
        assert time.monotonic() - begun > min(lease, 0.5) - 0.1


CLAIMED = """
import os, sys
from pathlib import Path
from vieval_plugin.backends.cache.store import Store
assert Store(Path(sys.argv[1])).claim("k")
os.kill(os.getpid(), 9)
"""


def test_claims_of_a_process_that_is_gone_are_dropped_when_a_store_is_opened(path):
    command = [sys.executable, "-c", CLAIMED, str(path)]
    subprocess.run(command, check=False, timeout=600)
    assert claimed(path) == ["k"]
    store = Store(path)
    assert claimed(path) == []
    assert store.claim("k")
    assert not Store(path).claim("k")  # this one lives


async def test_a_run_that_is_ended_gives_up_its_claims_and_leaves_nothing_running(path):
    before, store = asyncio.all_tasks(), Store(path)
    async with faked(latency=30, store=store) as (_, backend):
        asks = [chat(f"x{i}", schema=SCHEMA) for i in range(5)]
        waiting = [asyncio.ensure_future(backend.answer(ask)) for ask in asks]
        await asyncio.to_thread(until, lambda: claimed(path))
        for task in waiting:
            task.cancel()
    assert claimed(path) == []
    store.close()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert asyncio.all_tasks() == before


def scoring(samples_file, url, out):
    command = [sys.executable, "-m", "vieval_plugin", "score", samples_file]
    command += ["--model", "fake", "--base-url", url, "--out", out]
    return subprocess.Popen(map(str, command), stderr=subprocess.PIPE, text=True)


def test_two_processes_on_one_store_ask_once_and_agree(store, samples_file, tmp_path):
    numbers = itertools.count()

    def reply(request):
        scores = divmod(next(numbers), 11)
        return json.dumps({"score": scores, "reasoning": f"answer {scores}"})

    outs = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    with FakeServer(reply=reply, latency=0.3, schema_support="rejected") as server:
        for process in [scoring(samples_file, server.base_url, out) for out in outs]:
            _, said = process.communicate(timeout=600)
            assert process.returncode == 0, said
        assert server.stats()["statuses"]["200"] == 12
    one, two = (map(json.loads, out.read_text().splitlines()) for out in outs)
    for row, other in zip(one, two, strict=True):
        assert (row["uid"], row["scores"]) == (other["uid"], other["scores"])


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_nothing_of_tasks(store, samples_file, tmp_path, sent):
    with FakeServer(latency=30) as server:
        process = scoring(samples_file, server.base_url, tmp_path / "v.jsonl")
        until(lambda: server.stats()["in_flight"])
        os.kill(process.pid, sent)
        _, said = process.communicate(timeout=600)
    assert "never retrieved" not in said
    assert "Traceback" not in said


async def test_who_waits_for_another_process_says_so_once(path, monkeypatch, capsys):
    monkeypatch.setattr(store, "LEASE", 1.0)
    monkeypatch.setattr(leases, "_SILENT_WAIT", 0.3)
    async with faked(store=Store(path)) as (_, backend):
        assert isinstance(await backend.answer(chat("x")), Text)
        # who does not wait says nothing
        assert capsys.readouterr().err == ""
        for number in range(3):
            Store(path).claim(backend._key(chat(f"question {number}"), {}, 0))
        replies = await all_of(backend, 3)
    assert all(isinstance(reply, Text) for reply in replies)
    printed = capsys.readouterr().err
    assert printed.count("waiting for another process") == 1
    assert "replies.sqlite" in printed
