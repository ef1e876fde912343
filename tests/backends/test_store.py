"""Test the store of replies: its file, its clock, and what happens while another locks it."""

import json
import math
import os
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from functools import partial

import pytest

from tests.refusals import refusal, refuses
from tests.tables import table
from vieval_plugin import Image
from vieval_plugin.backends.cache import store, store_file
from vieval_plugin.backends.cache.store import (
    Store,
    key_of,
    parse_stored,
    question,
    to_stored,
)
from vieval_plugin.backends.cache.store_file import checksum
from vieval_plugin.judges.protocol import (
    Chat,
    Likelihood,
    Measurement,
    Message,
    Probabilities,
    Text,
)
from vieval_plugin.text.errors import VievalError

REPLIES = [Text("é \ud83d"), Text("a", 1, None), Text("a", cut=True)]
REPLIES += [Text("", None, None), Probabilities((0.1, 0.0), (0.1, 1 / 3))]


@pytest.mark.parametrize("reply", [*REPLIES, Measurement(-1e300)])
def test_replies_come_back_to_the_last_digit_for_the_next_who_opens_it(reply, tmp_path):
    path = tmp_path / "new folder" / "replies.sqlite"
    store = Store(path)
    assert store.get("k") is None
    store.add("k", "m", reply)
    assert store.get("k") == parse_stored(to_stored(reply)) == reply
    store.close()
    assert Store(path).get("k") == reply


def test_the_first_reply_under_a_key_stays_and_is_the_one_to_use(path):
    one, other = Store(path), Store(path)
    assert one.add("k", "m", Text("first")) == Text("first")
    assert other.add("k", "m", Text("second")) == Text("first")
    assert one.get("k") == other.get("k") == Text("first")


PAIRS = [(math.nan, 1.0), (0.5, 1.5), (-0.1, 0.5), (0.6, 0.5), (True, True)]
NEVER = [Measurement(value) for value in (math.nan, math.inf, True)]
NEVER += [Probabilities((low,), (high,)) for low, high in [*PAIRS, ("0.5", "0.5")]]
NEVER += [Probabilities((0.5, 0.5), (0.5,)), Text("a", -1), Text("a", True)]


@pytest.mark.parametrize("reply", [*NEVER, Text("a", cut=1), Text(None)], ids=str)
def test_numbers_that_cannot_be_never_enter(reply, path):
    store = Store(path)
    with pytest.raises(ValueError, match=r".+"):
        store.add("k", "m", reply)
    assert store.get("k") is None


def test_a_key_follows_from_what_is_asked_in_any_order_of_its_parts():
    digest = lambda image: str(image.source)

    def key(*parts, path="label"):
        return key_of(question(Chat((Message("user", parts),), (path,)), digest))

    def likelihood(word):
        ask = Likelihood((Message("user", ("x",)),), (word,), ("l",))
        return key_of(question(ask, digest))

    one, two = Image(b"one"), Image(b"two")
    assert key_of({"a": 1, "b": [2]}) == key_of({"b": [2], "a": 1})
    orders = (one, two, "x"), (two, one, "x"), (one, "x", two), (one, "x"), ("x",)
    assert len({key(*parts) for parts in orders}) == 5
    assert key("x") == key("x", path="another label")
    asked = Message("user", ("x",))
    others = (Message("system", ("x",)),), (asked, Message("assistant", ("x",)))
    chats = [Chat(messages, ("l",)) for messages in ((asked,), *others)]
    chats.append(Chat((asked,), ("l",), {"type": "object"}))
    assert len({key_of(question(chat, digest)) for chat in chats}) == 4
    assert len({likelihood("Yes"), likelihood("No"), key("x")}) == 3
    key("half a character: \ud83d")


def test_info_export_and_clear(path):
    store, found_out = Store(path), "schemas one http://x/v1"
    for key, model in (("b", "one"), ("a", "one"), ("c", "two")):
        store.add(key, model, Text(key))
    store.remember(found_out, "enforced")
    counts = [(model, count) for model, count, _, _ in store.info()]
    assert counts == [("one", 2), ("two", 1)]
    assert all(0 < first <= last <= time.time() for _, _, first, last in store.info())
    rows = [(row["key"], row["model"], row["reply"]["text"]) for row in store.export()]
    assert rows == [("a", "one", "a"), ("b", "one", "b"), ("c", "two", "c")]
    assert (store.clear(""), store.clear("one")) == (0, 2)
    # what was found out about servers may be out of date
    assert store.remembered(found_out) is None
    assert [row["key"] for row in store.export()] == ["c"]
    assert store.clear() == 1
    store.close()
    assert Store(path).info() == []


def test_a_store_of_another_version_is_left_alone(path):
    store = Store(path)
    store.add("k", "m", Text("x"))
    store.remember("schema", "77")
    store.close()
    before = path.read_bytes()
    refuses(r"replies.sqlite: .* must have schema 3, got 77", Store, path)
    assert path.read_bytes() == before


def test_a_store_that_fails_in_the_middle_is_an_error_for_the_users_eyes(path):
    store = Store(path)
    with sqlite3.connect(path) as other:
        other.execute("DROP TABLE replies")
    adding = lambda: store.add("k", "m", Text("x"))
    for work in (lambda: store.get("k"), adding, store.info, store.clear):
        refuses("replies.sqlite: the reply cache failed", work)


def in_processes(*works):
    """Do each in a process of its own, at the same time; whether all went well."""
    begin, children = time.time() + 0.02, []
    for work in works:
        if not (child := os.fork()):
            code = 1
            try:
                while time.time() < begin:
                    pass
                work()
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    return [os.waitpid(child, 0)[1] for child in children] == [0] * len(works)


def test_processes_make_and_write_a_store_at_once(path):
    def writing(own):
        def write():
            store = Store(path)
            for i in range(150):
                store.add(f"{own} {i}", own, Text(own))
                store.add(f"both {i}", own, Text(own))
                assert store.get(f"{own} {i}") == Text(own)

        return write

    assert in_processes(*map(writing, "abcd"))
    store = Store(path)
    assert sum(count for _, count, _, _ in store.info()) == 5 * 150
    assert all(row["reply"]["text"] == row["model"] for row in store.export())


def test_a_turn_that_sqlite_does_not_wait_for_is_waited_for(path, monkeypatch):
    refusals = ["database is locked"] * 3

    class Busy(sqlite3.Connection):
        def execute(self, statement, *values):
            if "journal_mode" in statement and refusals:
                raise sqlite3.OperationalError(refusals.pop())
            return super().execute(statement, *values)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Busy))
    Store(path).add("k", "m", Text("x"))
    assert refusals == []


# the file is the user's alone, and never somebody else's; what is damaged is absent


def everything_below(folder):
    files = folder.rglob("*")
    return {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


def change(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


@pytest.mark.parametrize("mode", ["DELETE", "WAL", "WAL, open"])
def test_somebody_elses_database_is_refused_untouched(path, mode):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(f"PRAGMA journal_mode={mode.removesuffix(', open')}")
    other.execute("CREATE TABLE about (subject TEXT)")  # by that name, but not ours
    if "open" not in mode:
        other.close()
    before = everything_below(path.parent)
    line = "cannot use .*replies.sqlite .*belongs to another program.*set store.path"
    refuses(line, Store, path)
    after = everything_below(path.parent)
    assert after.keys() == before.keys()
    assert after[path] == before[path]
    other.close()


THESIS = b"my thesis, chapter one\n" * 99


@pytest.mark.parametrize("content", [THESIS, b"x", b"SQLite format 3\x00 and no more"])
def test_any_other_file_is_refused_untouched(path, content):
    path.write_bytes(content)
    before = everything_below(path.parent)
    refuses(r"cannot use .* as the reply cache .* set store.path", Store, path)
    refuses("cannot use .* as the reply cache", Store, path / "replies.sqlite")
    assert everything_below(path.parent) == before


@pytest.mark.skipif(sys.platform == "win32", reason="no such files")
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_refused_at_once(path, make):
    make(path)
    refuses("cannot use .* as the reply cache", Store, path)


def test_an_empty_file_and_an_empty_database_become_stores(path):
    path.touch()
    Store(path).close()
    path.unlink()
    sqlite3.connect(path).execute("VACUUM").close()
    Store(path).add("k", "m", Text("x"))


def mode_of(file):
    return stat.S_IMODE(file.stat().st_mode)


@pytest.mark.skipif(sys.platform == "win32", reason="no modes")
@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_a_new_store_is_the_users_alone_and_keeps_a_mode_that_they_gave_it(path, mask):
    before = os.umask(mask)
    try:
        store = Store(path)
        store.add("k", "m", Text("x"))
        modes = {file.name: mode_of(file) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    names = (f"replies.sqlite{end}" for end in ("", "-wal", "-shm"))
    assert modes == dict.fromkeys(names, 0o600)
    store.close()
    path.chmod(0o660)
    Store(path).add("l", "m", Text("x"))
    assert mode_of(path) == 0o660


@pytest.mark.parametrize(*table("damaged_rows.jsonl"))
def test_a_damaged_row_is_absent_and_said_once_and_replaced(path, damage, capsys):
    store = Store(path)
    for key in ("k", "other", "unread"):
        store.add(key, "m", Text(f"right {key}"))
    others = "UPDATE replies SET checksum = 'x' WHERE key IN ('other', 'unread')"
    change(path, damage, others)
    assert [store.get("k"), store.get("other")] == [None, None]
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "replies.sqlite: ignoring damaged replies" in said
    for key in ("k", "unread"):
        assert store.add(key, "m", Text("new")) == Text("new")
        assert Store(path).get(key) == Text("new")


@pytest.mark.parametrize(*table("rows_of_wrong_types.jsonl"))
def test_a_row_of_the_wrong_types_is_absent_though_its_checksum_is_right(path, text):
    store = Store(path)
    row = ("k", "m", text, 1.0, checksum("k", "m", text), 0)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("INSERT INTO replies VALUES (?, ?, ?, ?, ?, ?)", row)
    assert store.get("k") is None


def test_a_file_that_was_cut_is_one_line(path):
    store = Store(path)
    for number in range(400):
        store.add(f"{number}", "m", Text("x" * 500))
    store.close()
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    reading = lambda: [Store(path).get(f"{number}") for number in range(400)]
    failed = r"replies.sqlite:? .*(reply cache failed|as the reply cache)"
    refuses(failed, reading)


HOUR, YEAR = 3600.0, 365 * 86400.0
JUMPS = (-YEAR, -HOUR, -1.0, 0.0, 1.0, HOUR, YEAR)


@pytest.fixture
def clock(monkeypatch):
    """Set the wall clock so many seconds off; clocks that only go forward stay as they are."""
    begun, offset = time.time(), [0.0]
    monkeypatch.setattr(store.time, "time", lambda: begun + offset[0])
    return lambda seconds: offset.__setitem__(0, seconds)


@pytest.mark.parametrize("jump", JUMPS)
def test_a_fresh_run_replaces_whatever_the_clock_printed(path, clock, jump):
    clock(jump)
    old = Store(path)
    for key in ("k", "kept"):
        old.add(key, "m", Text(f"old {key}"))
    old.remember("schemas m http://x", "not enforced")
    clock(0.0)
    fresh = Store(path, max_age=0)
    assert [fresh.get("k"), fresh.remembered("schemas m http://x")] == [None, None]
    assert fresh.add("k", "m", Text("new")) == Text("new")
    clock(jump)  # which asks nothing of this run again, nor of another at the same time
    assert fresh.add("k", "m", Text("newer")) == Text("new")
    Store(path).add("theirs", "m", Text("x"))
    found = [fresh.get(key) for key in ("k", "theirs", "kept")]
    assert found == [Text("new"), Text("x"), None]
    kept = Store(path)
    assert (kept.get("k"), kept.get("kept")) == (Text("new"), Text("old kept"))
    assert Store(path, max_age=0).get("theirs") is None


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
    kept = Store(path)
    with closing(sqlite3.connect(path)) as database:
        [(count,)] = database.execute("SELECT COUNT(*) FROM claims")
    # void leases are gone when a store is opened
    assert count == (not is_void)
    assert kept.claim("k") is is_void
    assert not Store(path).claim("k")


@pytest.fixture
def locked(path):
    """Lock the store as a process does that writes and does not end; the answer frees it."""
    Store(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:

        def lock():
            other.execute("BEGIN IMMEDIATE")
            return lambda: other.execute("COMMIT")

        yield lock


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(store_file, "TURN", 0.05)
    monkeypatch.setattr(store_file, "PATIENCE", 0.3)
    monkeypatch.setattr(store, "LOCK_RETRY_DELAY", 0.05)


def spools(path):
    return sorted(file.name for file in path.parent.glob("*.spool-*"))


def test_replies_are_stored_once_the_store_is_free(path, locked, hasty, capsys):
    kept = Store(path)
    kept.add("before", "m", Text("before"))
    free = locked()
    replies = {f"{number}": Text(f"reply {number}") for number in range(5)}
    for key, reply in replies.items():
        assert kept.add(key, "m", reply) == reply
    assert kept.get("before") == Text("before")
    assert kept.get("3") == kept.add("3", "m", Text("another")) == replies["3"]
    printed = capsys.readouterr().err
    assert printed.count("replies.sqlite: locked by another process") == 1
    free()
    time.sleep(0.1)
    kept.add("after", "m", Text("after"))
    assert spools(path) == []
    other = Store(path)
    assert {key: other.get(key) for key in replies} == replies


KILLED = """
import os, sys
from pathlib import Path
from vieval_plugin.backends.cache import store_file
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.judges.protocol import Text
store_file.TURN = 0.05
store = Store(Path(sys.argv[1]))
print("open", flush=True)
input()
store.add("k", "m", Text("x"))
store.add("l", "m", Text("y"))
os.kill(os.getpid(), 9)
"""
CHANGED = {"key": "changed", "model": "m", "reply": "5", "stored": 1.0}


def test_so_does_one_that_is_killed(path, locked):
    command = [sys.executable, "-c", KILLED, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stdout.readline() == "open\n"
        free = locked()
        process.communicate("\n", timeout=60)
    (spool,) = path.parent.glob("*.spool-*")
    assert spool.stat().st_mode & 0o077 == 0
    with spool.open("a") as file:
        row = json.dumps({**CHANGED, "checksum": "0", "run": 0})
        file.write(f'\n{row}\n[]\n{{"key": "cut", "mod')  # by a full disk
    free()
    reopened = Store(path)
    assert (reopened.get("k"), reopened.get("l")) == (Text("x"), Text("y"))
    assert (reopened.get("changed"), reopened.get("cut")) == (None, None)
    assert spools(path) == []


def test_a_fresh_run_under_a_lock_leaves_its_replies(path, locked, hasty, capsys):
    Store(path).add("k", "m", Text("old"))
    fresh = Store(path, max_age=0)
    free = locked()
    assert fresh.get("k") is None
    fresh.add("k", "m", Text("new"))
    assert fresh.get("k") == Text("new")
    fresh.close()
    (spool,) = spools(path)
    assert spool in capsys.readouterr().err
    # what only reads is not kept out
    assert Store(path).get("k") == Text("old")
    free()
    assert Store(path).get("k") == Text("new")
    assert spools(path) == []


def test_what_was_laid_aside_before_is_not_the_answer(path, locked, hasty):
    kept = Store(path)
    free = locked()
    kept.add("k", "m", Text("old"))
    free()
    time.sleep(0.1)
    kept.ask_anew()
    assert kept.get("k") is None


def test_a_store_that_is_locked_when_it_is_opened_is_one_line(path, locked, hasty):
    locked()
    line = refusal(Store, path, max_age=0)
    assert "replies.sqlite: locked by another process " in line
    assert "store.path" in line
    assert "disk" not in line


def test_a_store_that_is_full_says_nothing_of_locks(path, hasty):
    kept = Store(path)
    kept._database.execute("PRAGMA max_page_count=8")
    with pytest.raises(VievalError, match="reply cache failed .*free disk space"):
        [kept.add(f"{number}", "m", Text("x" * 4000)) for number in range(99)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_spools_of_a_store_behind_a_link_lie_beside_the_store(tmp_path, hasty):
    real, link = tmp_path / "real" / "r.sqlite", tmp_path / "link.sqlite"
    real.parent.mkdir()
    link.symlink_to(real)
    kept = Store(link)
    with closing(sqlite3.connect(real, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        kept.add("k", "m", Text("x"))
        other.execute("COMMIT")
    kept.close()
    assert Store(real).get("k") == Text("x")


def test_two_stores_of_a_process_keep_the_locks_of_each_other(tmp_path):
    """Another process that closes last would remove the log under them."""
    path = tmp_path / "replies.sqlite"
    stores = [Store(path), Store(path)]
    script = "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute('{}'); d.close()"
    script = script.format("SELECT count(*) FROM replies")
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    assert path.with_name("replies.sqlite-wal").exists()
    for opened in stores:
        opened.close()
