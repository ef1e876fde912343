"""Replies that came while another process had the store locked: lines of a file beside it, until they are in the store."""

from __future__ import annotations

import glob
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from vieval_plugin.backends.cache.store_file import checksum

_COLUMNS = {"key": str, "model": str, "reply": str, "stored": float, "checksum": str, "run": int}


class Spool:
    """Rows of the store by key that wait to be in it. A process that is killed leaves them to the next."""

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(f"{store.name}.spool-{os.getpid()}-{secrets.token_hex(4)}")
        self.rows: dict[str, Mapping[str, Any]] = {}
        self._files = {self.path}

    def add(self, row: Mapping[str, Any]) -> None:
        """Keep a row, in the file before this returns; OSError where it cannot be written."""
        with open(os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write(f"\n{json.dumps(row)}")  # on a line of its own even after half a line
        self.rows[row["key"]] = row

    def take(self, path: Path) -> None:
        """Take over what another process left."""
        self._files.add(path)
        for row in _rows(path):
            self.rows.setdefault(row["key"], row)

    def clear(self) -> None:
        """Remove what is in the store now."""
        self.rows.clear()
        for path in self._files:
            with suppress(OSError):
                path.unlink()
        self._files = {self.path}


def left_behind(store: Path) -> list[Path]:
    """The files that other processes left beside a store."""
    return sorted(store.parent.glob(f"{glob.escape(store.name)}.spool-*"))


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """The rows of a file; half a row and one that was changed are passed over."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return
    for line in lines:
        with suppress(ValueError, RecursionError):
            row = json.loads(line)
            is_row = isinstance(row, dict) and {name: type(value) for name, value in row.items()} == _COLUMNS
            if is_row and row["checksum"] == checksum(row["key"], row["model"], row["reply"]):
                yield row
