"""A store that another process keeps locked: the run goes on, says so, and loses no reply."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from tests.refusals import refusal
from vieval_plugin.backends.cache import store, store_file
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.judges.protocol import Text
from vieval_plugin.text.errors import VievalError


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


def test_a_run_under_a_lock_leaves_its_replies(path, locked, hasty, capsys):
    kept = Store(path)
    free = locked()
    kept.add("k", "m", Text("x"))
    kept.close()
    (spool,) = spools(path)
    assert spool in capsys.readouterr().err
    free()
    assert Store(path).get("k") == Text("x")
    assert spools(path) == []


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


def test_a_fresh_run_replaces_by_what_it_had_to_lay_aside_too(path, locked, hasty):
    Store(path).add("k", "m", Text("old"))
    fresh = Store(path, max_age=0)
    free = locked()
    assert fresh.get("k") is None
    fresh.add("k", "m", Text("new"))
    assert fresh.get("k") == Text("new")
    fresh.close()
    # what only reads is not kept out
    assert Store(path).get("k") == Text("old")
    free()
    assert Store(path).get("k") == Text("new")


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
