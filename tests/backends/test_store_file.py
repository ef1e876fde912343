"""The file of the store: the user's alone, and never somebody else's; what is damaged is absent."""

import os
import sqlite3
import stat
import sys
from contextlib import closing

import pytest

from tests.refusals import refuses
from tests.tables import table
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.cache.store_file import checksum
from vieval_plugin.judges.protocol import Text


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
