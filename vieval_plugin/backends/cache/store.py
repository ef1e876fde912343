"""Replies kept on disk as they arrive, so that answered questions are not asked again.

SQLite in WAL mode: a process may be killed at any moment, and several may share a file. Only
answers are kept, never failures.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import socket
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

from vieval_plugin.backends.cache import store_file
from vieval_plugin.backends.cache.store_file import (
    Spool,
    checksum,
    is_locked,
    left_behind,
    locked,
)
from vieval_plugin.backends.reply_checks import Answer, Question, fault
from vieval_plugin.judges.protocol import (
    Box,
    Chat,
    Image,
    Measurement,
    Message,
    Probabilities,
    Text,
    ToolResult,
)
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import announce
from vieval_plugin.text.untrusted import real
from vieval_plugin.text.yaml_json import JsonObject

#: Seconds that a process may ask a question before it has to claim it again; one that was killed
#: holds others up so long.
LEASE = 15.0
#: Seconds until a store that was found locked is written to again.
LOCK_RETRY_DELAY = 4.0

# a clock says how old a reply is, and no more: what is asked anew goes by run numbers. A reply of
# the future has no age
_COUNTS = (
    "run >= :since AND (:max_age IS NULL OR stored BETWEEN :now - :max_age AND :now)"
)
# a row without a run is of the one that asked anew last
_UPSERT = (
    "INSERT INTO replies VALUES (:key, :model, :reply, :stored, :checksum, "
    "coalesce(:run, (SELECT value FROM about WHERE name = 'run'))) ON CONFLICT "
    "(key) DO UPDATE SET model = excluded.model, reply = excluded.reply, stored = "
    f"excluded.stored, checksum = excluded.checksum, run = excluded.run WHERE NOT ({_COUNTS})"
)
_IS_STORED = f"SELECT 1 FROM replies WHERE key = :key AND {_COUNTS}"
# twice, because who waits for its turn to write has looked at the clock before
_VOID = "until NOT BETWEEN :now AND :now + 2 * :lease"

_FORGET = "DELETE FROM about WHERE name NOT IN ('schema', 'run')"
_Result = TypeVar("_Result")
_KINDS: Mapping[str, Callable[..., Answer]] = {
    kind.__name__: kind for kind in (Text, Probabilities, Measurement, ToolResult)
}


def key_of(parts: JsonObject) -> str:
    """The key of a question: a hash of everything its answer depends on (model, parameters,
    messages, image digests).
    """
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def question(ask: Question, digest: Callable[[Image], str]) -> JsonObject:
    """The content of a question, for its key: messages with images by `digest`, and the schema
    or the continuations.
    """
    messages = [[message.role, _parts(message, digest)] for message in ask.messages]
    if isinstance(ask, Chat):
        return {"messages": messages, "schema": ask.schema}
    return {
        "messages": messages,
        "continuations": ask.continuations,
        "definition": ask.definition,
    }


def _parts(message: Message, digest: Callable[[Image], str]) -> list[Any]:
    """The parts of a message, with images by their digests."""
    return [
        {"image": digest(part)} if isinstance(part, Image) else part
        for part in message.parts
    ]


def to_stored(reply: Answer) -> str:
    """An answer as JSON; ValueError for one with values that none can have."""
    if problem := fault(reply):
        raise ValueError(problem)
    values = {"kind": type(reply).__name__, **vars(reply)}
    # notes are of what was shown this time, and `by` says what it was called
    for name in ("notes", "by"):
        values.pop(name, None)
    return json.dumps(values, allow_nan=False, default=asdict)


def parse_stored(text: str) -> Answer:
    """The inverse of `to_stored`; ValueError for any other value."""
    try:
        document = json.loads(text)
        kind = _KINDS[document.pop("kind")]
        if boxes := document.get("boxes"):
            document["boxes"] = [Box(**box) for box in boxes]
        for name, value in document.items():
            if isinstance(value, list):
                document[name] = tuple(value)
        reply = kind(**document)
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no reply: {error}") from None
    if problem := fault(reply):
        raise ValueError(problem)
    return reply


class Store:
    """A file of replies by key; the model is kept beside each to list and clear by.

    With `max_age`, what is older than so many seconds, or of the future, is as if absent, and
    replaced; with 0 what was stored before the file was opened. While another process has the file
    locked, replies go into a file beside it.
    """

    # States of the file, as this process sees it:
    # - free: each write is made at once, and what is in the spool goes in before it;
    # - locked by another process until `_locked_until`: no write waits for it, replies go into the
    # spool, and a lease is
    #   had where nobody else holds one; a write that must be made (`_write`) waits for its turn.
    # States of a question: nobody's, leased (a row of `claims` until its time is up), stored (a row
    # of `replies`).

    def __init__(self, path: Path, max_age: float | None = None) -> None:
        """Open or create the file. VievalError if it is not a store, of another
        version, or cannot be written.
        """
        self.path = path
        self._database = store_file.connect(path)
        self._since = 0
        self._max_age = max_age or None
        self._owner = f"{socket.gethostname()} {os.getpid()} {secrets.token_hex(4)}"
        self._spool = Spool(real(path))
        self._locked_until = -math.inf
        self._damage_announced = self._lock_announced = False
        for file in left_behind(real(path)):
            self._spool.take(file)
        self._drop_dead_leases()
        if max_age == 0:
            self.ask_anew()
            self._forget()

    def get(self, key: str) -> Answer | None:
        """The reply stored under a key, or None."""
        rows = self._rows(
            f"SELECT model, reply, checksum FROM replies WHERE key = :key AND {_COUNTS}",
            {"key": key, **self._bounds()},
        )
        if rows:
            return self._read(key, *rows[0])
        row = self._spool.rows.get(key)
        if row and row["run"] >= self._since:
            return parse_stored(row["reply"])
        return None

    def add(self, key: str, model: str, reply: Answer) -> Answer:
        """Store a reply and return the one to use: the first under a key stays, so that two
        processes have the same.

        ValueError for a reply with values that none can have.
        """
        text = to_stored(reply)
        row = {
            "key": key,
            "model": model,
            "reply": text,
            "stored": time.time(),
            "checksum": checksum(key, model, text),
            "run": None,
        }
        for _ in range(2):
            row_count = self._write_unless_locked(_UPSERT, {**row, **self._bounds()})
            if row_count:
                return reply
            if (earlier := self.get(key)) is not None:
                return earlier
            if row_count is None:
                self._spool_row({**row, "run": self._run()})
                return reply
            # it was damaged, and is gone now that it was looked at
        return reply

    def ask_anew(self) -> None:
        """Count what was stored before this moment as absent from now on."""
        self._write("UPDATE about SET value = value + 1 WHERE name = 'run'")
        self._since = self._run()

    def claim(self, key: str) -> bool:
        """Take the lease of a question; return whether it was free and no reply is stored."""
        lease = {"key": key, "owner": self._owner, **self._bounds(), **_lease()}
        claimed = self._write_unless_locked(
            "INSERT INTO claims SELECT :key, :owner, :now + :lease WHERE NOT EXISTS "
            f"({_IS_STORED}) ON CONFLICT (key) DO UPDATE "
            f"SET owner = excluded.owner, until = excluded.until WHERE {_VOID}",
            lease,
        )
        if claimed is not None:
            return bool(claimed)
        is_leased = f"SELECT 1 FROM claims WHERE key = :key AND NOT ({_VOID})"
        return not self._rows(f"{is_leased} UNION ALL {_IS_STORED}", lease)

    def renew_leases(self) -> None:
        """Extend the leases of this process."""
        self._write_unless_locked(
            "UPDATE claims SET until = :now + :lease WHERE owner = :owner",
            {"owner": self._owner, **_lease()},
        )

    def release(self, keys: Iterable[str]) -> None:
        """Give up leases: what is stored needs none, and what failed may be asked by another."""
        self._write_unless_locked(
            "DELETE FROM claims WHERE key = :key AND owner = :owner",
            *[{"key": key, "owner": self._owner} for key in keys],
        )

    def remembered(self, name: str) -> str | None:
        """A fact noted about a server or the store."""
        rows = self._rows("SELECT value FROM about WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def remember(self, name: str, value: str) -> None:
        """Note a fact, such as whether a server enforces schemas."""
        self._write_unless_locked(
            "INSERT OR REPLACE INTO about VALUES (:name, :value)",
            {"name": name, "value": value},
        )

    def info(self) -> list[tuple[str, int, float, float]]:
        """Per model: its name, number of replies, time of the first and of the last."""
        return list(
            self._rows(
                "SELECT model, COUNT(*), MIN(stored), MAX(stored) FROM replies GROUP BY model "
                "ORDER BY model"
            )
        )

    def export(self) -> Iterator[JsonObject]:
        """Replies of the store, by key."""
        for (key,) in self._rows("SELECT key FROM replies ORDER BY key"):
            for model, reply, stored, check in self._rows(
                "SELECT model, reply, stored, checksum FROM replies WHERE key = ?",
                (key,),
            ):
                if self._read(key, model, reply, check):
                    yield {
                        "key": key,
                        "model": model,
                        "reply": json.loads(reply),
                        "stored": stored,
                    }

    def clear(self, model: str | None = None) -> int:
        """Delete the replies of a model, or all; returns their number."""
        self._forget()
        deleted = self._write(
            "DELETE FROM replies WHERE :model IS NULL OR model = :model",
            {"model": model},
        )
        self._write("VACUUM")
        return deleted

    def forget(self, model: str | None = None) -> int:
        """Delete the facts about servers of a model, or of all, but no reply; returns their
        number.
        """
        return self._write(
            f"{_FORGET} AND (:model IS NULL OR instr(name, ' ' || :model || ' ') > 0)",
            {"model": model},
        )

    def keep_newest(self, number: int) -> None:
        """Keep only the newest replies; the others are deleted a few at a time, which blocks no
        other process.
        """
        rows = self._rows(
            "SELECT stored FROM replies ORDER BY stored DESC LIMIT 1 OFFSET ?",
            (number,),
        )
        while rows and self._write(
            (
                "DELETE FROM replies WHERE key IN (SELECT key FROM replies WHERE stored <= "
                ":stored LIMIT 1000)"
            ),
            {"stored": rows[0][0]},
        ):
            pass

    def close(self) -> None:
        try:
            self._locked_until = -math.inf
            self._write_unless_locked(
                "DELETE FROM claims WHERE owner = :owner", {"owner": self._owner}
            )
            if self._spool.rows:
                count = len(self._spool.rows)
                replies = "reply" if count == 1 else "replies"
                announce(
                    f"{locked(self.path)}; saved {count} {replies} to {self._spool.path} "
                    "for the next run"
                )
        finally:
            self._database.close()

    def _run(self) -> int:
        """The number of the run that last asked anew."""
        return int(self.remembered("run") or 0)

    def _bounds(self) -> dict[str, float | None]:
        """The values of `_COUNTS`."""
        return {
            "since": self._since,
            "max_age": self._max_age,
            "now": time.time(),
        }

    def _forget(self) -> None:
        """Delete what was found out about servers: it may be out of date too, and costs one
        call.
        """
        self._write(_FORGET)

    def _read(self, key: str, model: str, text: str, check: str) -> Answer | None:
        """The reply of a row; a damaged one is deleted, and the first is reported."""
        try:
            if checksum(key, model, text) == check:
                return parse_stored(text)
        except (AttributeError, TypeError, ValueError):
            pass
        if not self._damage_announced:
            self._damage_announced = True
            announce(f"{self.path}: ignoring damaged replies")
        self._write_unless_locked(
            "DELETE FROM replies WHERE key = :key AND checksum = :checksum",
            {"key": key, "checksum": check},
        )
        return None

    def _drop_dead_leases(self) -> None:
        """Give up what processes claimed that were killed, as far as can be told: those of this
        machine.
        """
        self._write_unless_locked(
            f"DELETE FROM claims WHERE {_VOID}",
            _lease(),
        )
        owners = [
            str(owner) for (owner,) in self._rows("SELECT DISTINCT owner FROM claims")
        ]
        self._write_unless_locked(
            "DELETE FROM claims WHERE owner = :owner",
            *[{"owner": owner} for owner in owners if _is_dead(owner)],
        )

    def _spool_row(self, row: JsonObject) -> None:
        """Keep a reply beside the store until the store is free."""
        try:
            self._spool.add(row)
        except OSError as error:
            raise self._failed(error) from None
        if not self._lock_announced:
            self._lock_announced = True
            announce(
                f"{locked(self.path)}; saving replies to {self._spool.path} until "
                "it is unlocked"
            )

    def _write_unless_locked(self, statement: str, *values: JsonObject) -> int | None:
        """Run a statement for each of some values; how many rows it changed, None while another
        has the store locked.
        """
        if not values or time.monotonic() < self._locked_until:
            return None if values else 0
        try:
            if self._spool.rows:
                # what is of an earlier run is replaced, as it would have been then
                bounds = self._bounds()
                self._run_transaction(
                    [
                        (
                            _UPSERT,
                            {
                                **bounds,
                                "since": row["run"],
                                **row,
                            },
                        )
                        for row in self._spool.rows.values()
                    ]
                )
                self._spool.clear()
            if len(values) == 1:
                return self._database.execute(statement, values[0]).rowcount
            return self._run_transaction([(statement, row) for row in values])
        except sqlite3.Error as error:
            if not is_locked(error):
                raise self._failed(error) from None
        self._locked_until = time.monotonic() + LOCK_RETRY_DELAY
        return None

    def _run_transaction(self, statements: Iterable[tuple[str, JsonObject]]) -> int:
        """Run statements in one transaction; how many rows they changed."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            row_count = 0
            for statement, values in statements:
                row_count += self._database.execute(statement, values).rowcount
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
        return row_count

    def _write(self, statement: str, values: JsonObject | None = None) -> int:
        """Run a statement as soon as no other process has the store locked; how many rows it
        changed.
        """
        return self._wait_turn(
            lambda: self._database.execute(statement, values or {}).rowcount
        )

    def _rows(
        self, statement: str, values: JsonObject | Sequence[Any] = ()
    ) -> list[Any]:
        return self._wait_turn(
            lambda: self._database.execute(statement, values).fetchall()
        )

    def _wait_turn(self, act: Callable[[], _Result]) -> _Result:
        try:
            return store_file.wait_turn(self.path, act)
        except sqlite3.Error as error:
            raise self._failed(error) from None

    def _failed(self, error: Exception) -> VievalError:
        name = quote(str(self.path))
        remedy = f"run `mv {name} {quote(f'{self.path}.old')}` to start a new one"
        if "full" in str(error) or "No space" in str(error):
            remedy = "free disk space"
        return VievalError(
            f"{self.path}: the reply cache failed ({error}); {remedy}, or set store.path to "
            "another file"
        )


def _lease() -> dict[str, float]:
    return {"now": time.time(), "lease": LEASE}


def _is_dead(owner: str) -> bool:
    """Return whether the process that took a lease is known to be gone."""
    host, _, process = owner.partition(" ")
    number = process.partition(" ")[0]
    is_local = os.name == "posix" and host == socket.gethostname()
    if not is_local or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass
    return False
