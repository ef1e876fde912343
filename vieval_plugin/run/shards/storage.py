"""Places where a folder of shards may lie: a file system that all workers see, or object storage.

A file is there whole or not at all: on a disk it is written under another name and renamed, and to object storage it is
put in one go from memory, under its own name, by a stream that is closed only where all of it was taken.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import platformdirs

from vieval_plugin.errors import VievalError
from vieval_plugin.media.files import create_whole, require_writable, write_whole
from vieval_plugin.run.shards.inputs import READ_AT_ONCE, footer_length, parquet_footer
from vieval_plugin.run.shards.schema import arrow

_REMOTE = re.compile(r"(s3|gs|gcs):/+")
_STALE = 3600.0  # seconds after which an unfinished file is nobody's any more
_TRIAL = "trial"
_ONE_REQUEST = "allow_delayed_open=true"


class Storage(Protocol):
    """Files by their names below a place; VievalError from all of them where the system or the service refuses."""

    @property
    def name(self) -> str:
        """The name of the place in messages."""

    def prepare(self, name: str) -> None:
        """Find out whether a file of this name could be written."""

    def read(self, name: str) -> bytes | None:
        """The content of a file; None where there is none."""

    def footer(self, name: str) -> bytes:
        """The footer of a parquet file."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a file that is not there yet; False where it is."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file, or replace it."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    def holds(self, name: str) -> bool:
        """Return whether a file is there."""

    def sizes(self, folder: str) -> Mapping[str, int]:
        """The names of the files in a folder, with their sizes in bytes."""


@dataclass(frozen=True)
class Disk:
    """A folder on a file system."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path)

    def prepare(self, name: str) -> None:
        require_writable(self.path / name)
        for left in self.path.glob("*/*.part"):
            with contextlib.suppress(OSError):
                if left.stat().st_mtime < time.time() - _STALE:
                    left.unlink()

    def read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise VievalError(f"{self.path / name}: cannot be read ({error.strerror})") from None

    def footer(self, name: str) -> bytes:
        return parquet_footer(self.path / name)

    def create(self, name: str, content: bytes) -> bool:
        return create_whole(self.path / name, content)

    def write(self, name: str, content: bytes) -> None:
        path = self.path / name
        write_whole(path, content, synced=True)
        with contextlib.suppress(OSError, AttributeError):  # the name too is to be on the disk; not every system can
            descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def remove(self, name: str) -> None:
        with contextlib.suppress(OSError):
            (self.path / name).unlink(missing_ok=True)

    def holds(self, name: str) -> bool:
        return (self.path / name).exists()

    def sizes(self, folder: str) -> Mapping[str, int]:
        try:
            with os.scandir(self.path / folder) as entries:
                return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise VievalError(f"{self.path / folder}: cannot be read ({error.strerror})") from None


@dataclass(frozen=True)
class ObjectStorage:
    """A prefix in a bucket, by one of pyarrow's file systems, which take keys from the environment."""

    name: str
    system: Any
    prefix: str

    def prepare(self, name: str) -> None:
        self.write(_TRIAL, b"")
        self.remove(_TRIAL)

    def read(self, name: str) -> bytes | None:
        try:
            with self.system.open_input_file(self._path(name)) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._refused(name, "read", error) from None

    def footer(self, name: str) -> bytes:
        try:
            with self.system.open_input_file(self._path(name)) as file:
                size = file.size()
                end = file.read_at(min(size, READ_AT_ONCE), max(size - READ_AT_ONCE, 0))
                length = footer_length(end)
                return bytes(end[-length:] if length <= len(end) else file.read_at(length, max(size - length, 0)))
        except OSError as error:
            raise self._refused(name, "read", error) from None

    def create(self, name: str, content: bytes) -> bool:
        if self.holds(name):
            return False
        self.write(name, content)
        return True

    def write(self, name: str, content: bytes) -> None:
        try:
            stream = self.system.open_output_stream(self._path(name))
            stream.write(content)
            stream.close()  # not by `with`, which would put half of it there where writing fails
        except OSError as error:
            raise self._refused(name, "written", error) from None

    def remove(self, name: str) -> None:
        with contextlib.suppress(OSError):
            self.system.delete_file(self._path(name))

    def holds(self, name: str) -> bool:
        return bool(self._info(self._path(name)).is_file)

    def sizes(self, folder: str) -> Mapping[str, int]:
        from pyarrow import fs

        try:
            found = self.system.get_file_info(fs.FileSelector(self._path(folder), allow_not_found=True))
        except OSError as error:
            raise self._refused(folder, "read", error) from None
        return {info.base_name: info.size for info in found if info.is_file}

    def _info(self, path: str) -> Any:
        try:
            return self.system.get_file_info(path)
        except OSError as error:
            raise self._refused(path, "read", error) from None

    def _path(self, name: str) -> str:
        return f"{self.prefix}/{name}"

    def _refused(self, name: str, what: str, error: OSError) -> VievalError:
        reason = " ".join(str(error).split())[:300]
        return VievalError(f"{self.name}/{name}: cannot be {what} ({reason})")


def location_of(named: str | Path) -> str:
    """The place that a user names, as `storage_at` takes it: an address of object storage, or an absolute path.

    >>> location_of(Path("s3://bucket/verdicts"))
    's3://bucket/verdicts'
    """
    text = str(named)
    match = _REMOTE.match(text)
    return f"{match[1]}://{text[match.end() :]}" if match else str(Path(text).absolute())


def storage_at(location: str) -> tuple[Storage, Path]:
    """The storage at a place, and a folder on this machine for what lies beside it; VievalError for a wrong address."""
    if not _REMOTE.match(location):
        return Disk(Path(location)), Path(location)
    arrow()
    from pyarrow import fs

    name, _, query = location.partition("?")
    try:
        system, prefix = fs.FileSystem.from_uri(location)
        if location.startswith("s3:") and "allow_delayed_open" in fs.S3FileSystem.__doc__:
            # what is small enough is put in one request then, and not in parts
            system, prefix = fs.FileSystem.from_uri(f"{name}?{'&'.join(filter(None, (query, _ONE_REQUEST)))}")
    except (OSError, ValueError, NotImplementedError) as error:
        raise VievalError(f"{name}: no place in object storage ({' '.join(str(error).split())[:200]})") from None
    beside = Path(platformdirs.user_cache_dir("vieval")) / "shards" / hashlib.sha256(name.encode()).hexdigest()[:16]
    return ObjectStorage(name, system, prefix), beside
