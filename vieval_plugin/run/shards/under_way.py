"""Notes on which rows a worker has under way, by which a row that ends its worker is found.

A worker keeps a file for each shard that it has open, and holds a lock on it as long as it lives, which the system lets
go however it ends. A file without a lock is a death, and what it has under way are the rows that may be to blame.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_SUFFIX = ".rows"
_DEATHS = 2
"""So many deaths with a row under way make it one that is tried alone."""


class RowsUnderWay:
    """The note on a shard that this process has open; `close` it in the end, whatever came of it."""

    def __init__(self, folder: Path, shard: str) -> None:
        self._path = folder / f"{shard}.{secrets.token_hex(6)}{_SUFFIX}"
        self._file = self._path.open("xb", buffering=0)
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(self._file, fcntl.LOCK_EX)

    def begin(self, row: int) -> None:
        """Note that a row is under way."""
        self._note(b"+%d\n" % row)

    def end(self, row: int) -> None:
        """Note that it is not any more."""
        self._note(b"-%d\n" % row)

    def close(self) -> None:
        """Remove the note."""
        self._file.close()
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _note(self, line: bytes) -> None:
        with contextlib.suppress(OSError):  # of a full disk, which is told of where verdicts are written
            self._file.write(line)


def suspects(folder: Path, shard: str) -> set[int]:
    """The rows of a shard that were under way when two workers or more died."""
    deaths: Counter[int] = Counter()
    for note in _notes(folder, shard):
        if not _is_held(note):
            deaths.update(_left(note))
    return {row for row, times in deaths.items() if times >= _DEATHS}


def is_open(folder: Path, shard: str) -> bool:
    """Return whether a worker that lives has a shard open."""
    return any(map(_is_held, _notes(folder, shard)))


def open_shards(folder: Path) -> set[str]:
    """The shards that workers who live have open."""
    return {note.name.partition(".")[0] for note in _notes(folder) if _is_held(note)}


def forget_deaths(folder: Path, done: Container[str], shard: str = "") -> None:
    """Remove the notes that dead workers left on shards that are done: on all of those, or on one."""
    for note in _notes(folder, shard):
        if note.name.partition(".")[0] in done and not _is_held(note):
            with contextlib.suppress(OSError):
                note.unlink()


def _notes(folder: Path, shard: str = "") -> Iterator[Path]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIX) and entry.name.startswith(shard):
                yield Path(entry.path)


def _is_held(note: Path) -> bool:
    """Return whether somebody has the lock on a note."""
    if fcntl is None:
        return False
    try:
        with note.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _left(note: Path) -> set[int]:
    """The rows that a note has as begun and not as ended."""
    rows: Counter[int] = Counter()
    with contextlib.suppress(OSError, ValueError):
        for line in note.read_bytes().splitlines():
            rows[int(line[1:])] += 1 if line[:1] == b"+" else -1
    return {row for row, times in rows.items() if times > 0}
