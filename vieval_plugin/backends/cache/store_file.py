"""The file that replies are kept in, private to the user, and files beside it for those that
come while it is locked.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import secrets
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

from vieval_plugin.text.errors import VievalError, docs_url
from vieval_plugin.text.escaping import announce
from vieval_plugin.text.untrusted import real
from vieval_plugin.text.yaml_json import JsonObject

SCHEMA = 3
TURN = 1.0  # seconds that SQLite waits for another process's turn, and with it all of this process
PATIENCE = 60.0  # seconds to wait for it where nothing else can be done
_SILENT_WAIT = 3.0
_MAGIC = b"SQLite format 3\0"
_WAL = 2
_TABLES = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE replies (key TEXT PRIMARY KEY, model TEXT NOT NULL, reply TEXT NOT NULL, "
    "stored REAL NOT NULL, checksum TEXT NOT NULL, run INTEGER NOT NULL) WITHOUT ROWID",
    (
        "CREATE TABLE claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL) "
        "WITHOUT ROWID"
    ),
    f"INSERT INTO about VALUES ('schema', '{SCHEMA}'), ('run', '0')",
)

_Result = TypeVar("_Result")
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)
_opening = threading.Lock()
#: Device and inode of each store that this process has opened.
_opened_files: set[tuple[int, int]] = set()


class NoLocks(VievalError):
    """The folder of a store is on a file system without locks, which SQLite needs."""


def connect(path: Path) -> sqlite3.Connection:
    """Open the file, or make it; what is already there and is not a store is not
    touched.

    Raises:
        VievalError: the file is something else, of another version, stays locked, or cannot be
            used.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path = real(path)  # SQLite puts its files beside what a link leads to
        return wait_turn(path, lambda: _opened(path))
    except (sqlite3.Error, OSError) as error:
        _require_locks(path)
        raise _unusable(path, str(error)) from None


def _require_locks(path: Path) -> None:
    """NoLocks where a file beside the store cannot be locked; another file, as closing the
    store's own would unlock it.
    """
    try:
        import fcntl
    except ImportError:
        return
    with suppress(OSError), tempfile.TemporaryFile(dir=path.parent) as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                raise NoLocks(
                    f"{path}: the file system does not support locks ({error.strerror}); set "
                    "store.path to a local file"
                ) from None


def wait_turn(path: Path, act: Callable[[], _Result]) -> _Result:
    """The result of `act`, tried until no other process has the store locked; VievalError if
    that does not happen.
    """
    started = time.monotonic()
    announced = False
    while True:
        try:
            return act()
        except sqlite3.OperationalError as error:
            if not is_locked(error):
                raise
            _require_locks(path)
        waited = time.monotonic() - started
        if waited > PATIENCE:
            raise VievalError(
                f"{locked(path)} for more than {PATIENCE:g} s; stop that process, or "
                "set store.path to another file"
            )
        if not announced and waited > _SILENT_WAIT:
            announced = True
            announce(f"{locked(path)}; waiting up to {PATIENCE:g} s")
        time.sleep(0.02)


def locked(path: Path) -> str:
    """The words for a store that another process is writing."""
    return f"{path}: locked by another process"


def is_locked(error: sqlite3.Error) -> bool:
    """Return whether an error says that another process has its turn."""
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def _opened(path: Path) -> sqlite3.Connection:
    with _opening:
        # to close a file drops all locks that this process has on it, those of its other
        # connections too; another process would then remove the log that they write
        if _identity(path) not in _opened_files:
            _refuse_others(path)
            # SQLite gives the files beside it (-wal, -shm) the mode of this one
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        database = _connection(path)
        _opened_files.add(_identity(path))
    return database


def _identity(path: Path) -> tuple[int, int]:
    """Device and inode of a file; (0, 0) if it does not exist."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_dev, status.st_ino


def _connection(path: Path) -> sqlite3.Connection:
    """Connect to a file that is a store or empty, and create missing tables."""
    database = sqlite3.connect(
        path,
        timeout=TURN,
        isolation_level=None,
        check_same_thread=False,
    )
    # what cannot be decoded is for the checksum to find
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    try:
        database.execute("PRAGMA journal_mode=WAL")
        # a killed process loses nothing under NORMAL; a machine that loses power may lose the last
        # replies
        database.execute("PRAGMA synchronous=NORMAL")
        _make(database, path)
    except BaseException:
        database.close()
        raise
    return database


def checksum(key: str | bytes, model: str | bytes, reply: str | bytes) -> str:
    """A checksum that is stored with a reply to detect damage."""
    parts = [
        part.encode("utf-8", "replace") if isinstance(part, str) else part
        for part in (key, model, reply)
    ]
    return hashlib.blake2b(b"\n".join(parts), digest_size=8).hexdigest()


def _unusable(path: Path, reason: str) -> VievalError:
    return VievalError(
        f"cannot use {path} as the reply cache ({reason}); set store.path to another "
        "file"
    )


def _refuse_others(path: Path) -> None:
    """Raise VievalError for a file that is not a store of a version we know, looked at
    without writing anything.
    """
    if not path.exists():
        return
    if not path.is_file():
        raise _unusable(path, "not a file")
    with path.open("rb") as file:
        head = file.read(20)
    if not head:
        return
    if not head.startswith(_MAGIC):
        raise _unusable(path, "not a SQLite database")
    # in WAL mode to read would make files beside it, unless they are there or it is said that
    # nobody writes
    has_log = path.with_name(f"{path.name}-wal").exists()
    no_writer = head[18] == _WAL and not has_log
    address = f"{path.as_uri()}?mode=ro{'&immutable=1' if no_writer else ''}"
    with closing(sqlite3.connect(address, uri=True, timeout=TURN)) as database:
        _has_tables(database, path)


def _has_tables(database: sqlite3.Connection, path: Path) -> bool:
    """Return whether a database is a store of this version, or nothing yet; VievalError for any
    other.
    """
    names = {
        name
        for (name,) in database.execute(
            "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
        )
    }
    if not names:
        return False
    try:
        row = database.execute(
            "SELECT value FROM about WHERE name = 'schema'"
        ).fetchone()
    except sqlite3.OperationalError as error:
        if "no such" not in str(error):
            raise
        row = None
    if row is None or "replies" not in names:
        raise _unusable(path, "it belongs to another program")
    if row[0] != str(SCHEMA):
        page = docs_url("reference/results.md#reports-and-the-reply-cache")
        raise VievalError(
            f"{path}: the reply cache must have schema {SCHEMA}, got {row[0]}; run `mv "
            f"{quote(str(path))} {quote(f'{path}.old')}` to start a new one; see {page}"
        )
    return True


def _make(database: sqlite3.Connection, path: Path) -> None:
    """Create missing tables, all or nothing."""
    if _has_tables(database, path):
        return
    database.execute("BEGIN IMMEDIATE")
    try:
        if not _has_tables(database, path):  # another process may have been first
            for statement in _TABLES:
                database.execute(statement)
        database.execute("COMMIT")
    except BaseException:
        database.execute("ROLLBACK")
        raise


_COLUMNS = {
    "key": str,
    "model": str,
    "reply": str,
    "stored": float,
    "checksum": str,
    "run": int,
}


class Spool:
    """Replies by key that came while another process had the store locked, as lines of a file
    beside it.

    A process that is killed leaves them to the next.
    """

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(
            f"{store.name}.spool-{os.getpid()}-{secrets.token_hex(4)}"
        )
        self.rows: dict[str, JsonObject] = {}
        self._files = {self.path}

    def add(self, row: JsonObject) -> None:
        """Keep a row, in the file before this returns; OSError where it cannot be written."""
        appending = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        descriptor = os.open(self.path, appending, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(
                f"\n{json.dumps(row)}"
            )  # on a line of its own even after half a line
        self.rows[row["key"]] = row

    def take(self, path: Path) -> None:
        """Take over the files of another process."""
        self._files.add(path)
        for row in _rows(path):
            self.rows.setdefault(row["key"], row)

    def clear(self) -> None:
        """Remove replies that are now in the store."""
        self.rows.clear()
        for path in self._files:
            with suppress(OSError):
                path.unlink()
        self._files = {self.path}


def left_behind(store: Path) -> list[Path]:
    """The files that other processes left beside a store."""
    return sorted(store.parent.glob(f"{glob.escape(store.name)}.spool-*"))


def _rows(path: Path) -> Iterator[JsonObject]:
    """The rows of a file; half a row and one that was changed are passed over."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return
    for line in lines:
        with suppress(ValueError, RecursionError):
            row = json.loads(line)
            if _is_row(row) and row["checksum"] == checksum(
                row["key"],
                row["model"],
                row["reply"],
            ):
                yield row


def _is_row(row: Any) -> bool:
    if not isinstance(row, dict):
        return False
    return {name: type(value) for name, value in row.items()} == _COLUMNS
