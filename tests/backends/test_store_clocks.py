"""Test the store under clocks that run ahead, run behind and jump."""

import sqlite3
import time

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from tests.one_server import all_of, chat, faked
from vieval_plugin.backends.cache import leases, store
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.judges.protocol import Text

HOUR, YEAR = 3600.0, 365 * 86400.0
JUMPS = (-YEAR, -HOUR, -1.0, 0.0, 1.0, HOUR, YEAR)


@pytest.fixture
def clock(monkeypatch):
    """Set the wall clock so many seconds off; clocks that only go forward stay as they are."""
    begun, offset = time.time(), [0.0]
    monkeypatch.setattr(store.time, "time", lambda: begun + offset[0])
    return lambda seconds: offset.__setitem__(0, seconds)


@pytest.mark.parametrize("ahead", JUMPS)
def test_a_fresh_run_replaces_whatever_the_clock_printed(path, clock, ahead):
    clock(ahead)
    old = Store(path)
    for key in ("k", "kept"):
        old.add(key, "m", Text(f"old {key}"))
    old.remember("schemas m http://x", "not enforced")
    clock(0.0)
    fresh = Store(path, max_age=0)
    assert [fresh.get("k"), fresh.remembered("schemas m http://x")] == [None, None]
    assert fresh.add("k", "m", Text("new")) == Text("new")
    assert fresh.add("k", "m", Text("newer")) == Text("new")  # which is this run's
    assert fresh.get("k") == Text("new")
    kept = Store(path)
    assert (kept.get("k"), kept.get("kept")) == (Text("new"), Text("old kept"))


@pytest.mark.parametrize("jump", JUMPS)
def test_a_clock_that_jumps_in_a_fresh_run_asks_nothing_of_it_again(path, clock, jump):
    Store(path).add("old", "m", Text("old"))
    fresh = Store(path, max_age=0)
    fresh.add("k", "m", Text("new"))
    clock(jump)
    assert fresh.get("k") == Text("new")
    assert fresh.add("k", "m", Text("newer")) == Text("new")
    assert fresh.get("old") is None


def test_a_reply_that_another_process_stores_in_a_fresh_run_is_of_it(path):
    plain, fresh = Store(path), Store(path, max_age=0)
    plain.add("k", "m", Text("x"))
    assert fresh.get("k") == Text("x")
    assert Store(path, max_age=0).get("k") is None


def test_to_ask_anew_again_and_again_goes_by_no_clock(path, clock):
    kept = Store(path)
    for turn in range(3):
        clock(-turn * HOUR)
        kept.ask_anew()
        assert kept.get("k") is None
        assert kept.add("k", "m", Text(f"{turn}")) == Text(f"{turn}")


AGES = [(-HOUR, False), (-59.0, True), (0.0, True), (1.0, False)]


@pytest.mark.parametrize(("stored_at", "known"), [*AGES, (HOUR, False), (YEAR, False)])
def test_an_age_counts_backwards_only(path, clock, stored_at, known):
    clock(stored_at)
    Store(path).add("k", "m", Text("old"))
    clock(0.0)
    aged = Store(path, max_age=60.0)
    wanted = Text("old" if known else "new")
    assert (aged.get("k") == Text("old")) is known
    assert aged.add("k", "m", Text("new")) == wanted
    # without an age no time counts
    assert Store(path).get("k") == wanted


LEASES = [(-YEAR, True), (-HOUR, True), (HOUR, True), (YEAR, True)]


@pytest.mark.parametrize(("ahead", "is_void"), [*LEASES, (store.LEASE / 2, False)])
def test_a_lease_of_another_time_is_void(path, clock, ahead, is_void):
    clock(ahead)
    assert Store(path).claim("k")
    clock(0.0)
    assert Store(path).claim("k") is is_void
    assert not Store(path).claim("k")


def test_void_leases_are_gone_when_a_store_is_opened(path, clock):
    clock(YEAR)
    Store(path).claim("k")
    clock(0.0)
    Store(path)
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT COUNT(*) FROM claims").fetchone() == (0,)


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
