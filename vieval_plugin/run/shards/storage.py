"""Places where a folder of shards may lie: a file system that all workers see, or object storage.

A file is there whole or not at all: on a disk it is written under another name and renamed, and to
object storage it is put in one go from memory, under its own name, by a stream that is closed only
where all of it was taken.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from vieval_plugin.media.files import (
    cache_folder,
    create_whole,
    require_writable,
    write_whole,
)
from vieval_plugin.readers.places import (
    REMOTE,
    Place,
    parquet_footer,
    place_at,
    place_of,
    reading,
    reason_of,
)
from vieval_plugin.text.errors import VievalError

_STALE = 3600.0  # seconds after which an unfinished file is nobody's any more
_TRIAL = "trial"
_ONE_REQUEST = "allow_delayed_open=true"


@dataclass(frozen=True)
class Disk:
    """A folder on a file system: files by their names in it; VievalError where the system
    refuses.
    """

    #: The folder.
    path: Path

    @property
    def name(self) -> str:
        """The name of the place in messages."""
        return str(self.path)

    def prepare(self, name: str) -> None:
        """Find out whether a file of this name could be written."""
        require_writable(self.path / name)
        for unfinished in self.path.glob("*/*.part"):
            with contextlib.suppress(OSError):
                if unfinished.stat().st_mtime < time.time() - _STALE:
                    unfinished.unlink()

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if missing."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise VievalError(
                f"cannot read {self.path / name}: {error.strerror}"
            ) from None

    def footer(self, name: str) -> bytes:
        """The footer of a parquet file."""
        return parquet_footer(place_of(self.path / name))

    def create(self, name: str, content: bytes) -> bool:
        """Write a file that does not exist yet; False if it exists."""
        return create_whole(self.path / name, content)

    def write(self, name: str, content: bytes) -> None:
        """Write a file, or replace it."""
        path = self.path / name
        write_whole(path, content, synced=True)
        with contextlib.suppress(
            OSError, AttributeError
        ):  # the name too is to be on the disk; not every system can
            descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with contextlib.suppress(OSError):
            (self.path / name).unlink(missing_ok=True)

    def holds(self, name: str) -> bool:
        """Return whether a file is there."""
        return (self.path / name).exists()

    def sizes(self, folder: str) -> Mapping[str, int]:
        """The names of the files in a folder, with their sizes in bytes."""
        try:
            with os.scandir(self.path / folder) as entries:
                return {
                    entry.name: entry.stat().st_size
                    for entry in entries
                    if entry.is_file()
                }
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise VievalError(
                f"cannot read {self.path / folder}: {error.strerror}"
            ) from None


@dataclass(frozen=True)
class ObjectStorage:
    """A folder in a bucket, with the same functions; VievalError where the service refuses."""

    folder: Place

    @property
    def name(self) -> str:
        return str(self.folder)

    def prepare(self, name: str) -> None:
        self.write(_TRIAL, b"")
        self.remove(_TRIAL)

    def read(self, name: str) -> bytes | None:
        file = self.folder.below(name)
        with reading(file):
            try:
                with file.system.open_input_file(file.path) as stream:
                    return bytes(stream.read())
            except FileNotFoundError:
                return None

    def footer(self, name: str) -> bytes:
        return parquet_footer(self.folder.below(name))

    def create(self, name: str, content: bytes) -> bool:
        if self.holds(name):
            return False
        self.write(name, content)
        return True

    def write(self, name: str, content: bytes) -> None:
        file = self.folder.below(name)
        try:
            stream = file.system.open_output_stream(file.path)
            stream.write(content)
            stream.close()  # not by `with`, which would put half of it there where writing fails
        except OSError as error:
            raise VievalError(f"cannot write {file}: {reason_of(error)}") from None

    def remove(self, name: str) -> None:
        with contextlib.suppress(OSError):
            self.folder.system.delete_file(self.folder.below(name).path)

    def holds(self, name: str) -> bool:
        file = self.folder.below(name)
        with reading(file):
            return bool(file.system.get_file_info(file.path).is_file)

    def sizes(self, folder: str) -> Mapping[str, int]:
        from pyarrow import fs

        location = self.folder.below(folder)
        with reading(location):
            entries = location.system.get_file_info(
                fs.FileSelector(location.path, allow_not_found=True)
            )
        return {info.base_name: info.size for info in entries if info.is_file}


Storage: TypeAlias = Disk | ObjectStorage


def storage_at(location: str) -> tuple[Storage, Path]:
    """The storage at a place, and a folder on this machine for what lies beside it; VievalError
    for a wrong address.
    """
    if not REMOTE.match(location):
        return Disk(Path(location)), Path(location)
    from pyarrow import fs

    folder = place_at(location)
    if folder.scheme == "s3://" and "allow_delayed_open" in fs.S3FileSystem.__doc__:
        folder = place_at(
            location, _ONE_REQUEST
        )  # what is small enough is put in one request then, and not in parts
    digest = hashlib.sha256(str(folder).encode()).hexdigest()
    return ObjectStorage(folder), cache_folder() / "shards" / digest[:16]
