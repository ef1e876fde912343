"""Notes on which rows a worker has under way, by which a row that ends its worker is found.

A worker keeps a file for each shard that it has open, and holds a lock on it as long as it lives,
which the system lets go however it ends. A file without a lock is a death, and what it has under
way are the rows that may be to blame.

A row is in one of three states: judged beside others; after two deaths with it under way a suspect,
which is judged when its worker has nothing else under way; after two deaths while it was alone
fatal, and not judged again.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path

from vieval_plugin.run.shards.plan import Shard
from vieval_plugin.text.errors import unwritable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_SUFFIX = ".rows"
# the byte of a row that is under way alone; less is the number of its prompts under way beside
# others
_ALONE = 255
#: So many deaths with a row under way make it a suspect, and so many while it was alone fatal.
DEATHS = 2


class RowsUnderWay:
    """The note on a shard that this process has open: one byte per row, mapped into
    memory, as there are thousands a second.

    `close` it in the end, whatever came of it. VievalError where it cannot be written.
    """

    def __init__(self, folder: Path, shard: Shard) -> None:
        self._path = folder / f"{shard.name}.{secrets.token_hex(6)}{_SUFFIX}"
        self._first = shard.first
        try:
            self._file = self._path.open("xb+", buffering=0)
            self._file.write(
                bytes(shard.rows)
            )  # and not only a length: a full disk is to be told of here
        except OSError as error:
            raise unwritable(self._path, error, "choose another --out") from None
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(self._file, fcntl.LOCK_EX)
        self._rows = mmap.mmap(self._file.fileno(), shard.rows)

    def begin(self, row: int, alone: bool) -> None:
        """Note that a row is under way, and whether nothing else is."""
        index = row - self._first
        if alone:
            self._rows[index] = _ALONE
            self._rows.flush()
        else:
            self._rows[index] = min(self._rows[index] + 1, _ALONE - 1)

    def end(self, row: int) -> None:
        """Note that it is not any more."""
        index = row - self._first
        prompts = self._rows[index]
        self._rows[index] = 0 if prompts == _ALONE else max(prompts - 1, 0)

    def close(self) -> None:
        """Remove the note."""
        self._rows.close()
        self._file.close()
        with contextlib.suppress(OSError):
            self._path.unlink()


def suspect_and_fatal_rows(folder: Path, shard: Shard) -> tuple[set[int], set[int]]:
    """The rows of a shard that were under way when two workers or more died, and those that were
    so alone.
    """
    deaths = Counter[int]()
    deaths_alone = Counter[int]()
    for note in _notes(folder, shard.name):
        if _is_held(note):
            continue
        with contextlib.suppress(OSError):
            for row, prompts in enumerate(note.read_bytes(), shard.first):
                deaths[row] += prompts > 0
                deaths_alone[row] += prompts == _ALONE
    suspects, fatal = (
        {row for row, n in counts.items() if n >= DEATHS}
        for counts in (deaths, deaths_alone)
    )
    return suspects, fatal


def is_open(folder: Path, shard: str) -> bool:
    """Return whether a worker that lives has a shard open."""
    return any(map(_is_held, _notes(folder, shard)))


def open_shards(folder: Path) -> set[str]:
    """The shards that workers who live have open."""
    return {note.name.partition(".")[0] for note in _notes(folder) if _is_held(note)}


def forget_deaths(
    folder: Path,
    written: Container[str],
    shard: str = "",
) -> None:
    """Remove the notes that dead workers left on shards that are done: on all of those, or on
    one.
    """
    for note in _notes(folder, shard):
        if note.name.partition(".")[0] in written and not _is_held(note):
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
