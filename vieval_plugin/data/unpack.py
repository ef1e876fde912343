"""Unpacks an archive that a stranger made: plain files only, none outside its folder, of bounded number and size.

What is unpacked is gathered in a folder beside the target and moved there once all of it has been read, so that no file is
ever half-written and an archive that is refused leaves nothing behind.
"""

from __future__ import annotations

import gzip
import io
import secrets
import shutil
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from vieval_plugin.errors import VievalError

_HEADER = 2**20  # bytes; what tarfile reads at once, extended headers included


@dataclass(frozen=True)
class Limits:
    """How much an archive may hold: `members` of it, bytes of one file, and bytes in all once decompressed."""

    members: int = 20_000
    file: int = 64 * 2**20
    total: int = 4 * 2**30


def unpack(archive: Path, target: Path, limits: Limits = Limits()) -> int:
    """Unpacks a .tar.gz into the folder `target` and returns the number of files; a file that is there is replaced.

    A leading folder of the target's own name is left out. VievalError, in one line, for an archive that is malformed, too
    large, or holds a link, a device or a name outside the folder; then nothing has changed.
    """
    for left in target.parent.glob(f"{target.name}.*.part"):
        shutil.rmtree(left, ignore_errors=True)
    staged = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    try:
        source = archive.open("rb")
    except OSError as error:
        raise VievalError(f"{archive}: cannot be read ({error.strerror}); fetch it again") from None
    try:
        staged.mkdir(parents=True)
        with source:
            files = _gather(source, staged, target.name, limits)
        for file in files:
            place = target / file.relative_to(staged)
            place.parent.mkdir(parents=True, exist_ok=True)
            file.replace(place)
    except _Refused as refused:
        raise VievalError(f"{archive}: {refused}; fetch it again from where it is published") from None
    except OSError as error:
        raise VievalError(
            f"{target}: cannot be written ({error.strerror}); make room or choose another folder"
        ) from None
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return len(files)


class _Refused(Exception):
    """Why an archive is not unpacked."""


class _Bounded(io.RawIOBase):
    """The decompressed archive; raises `_Refused` past so many bytes in all or for a header that is huge by itself."""

    def __init__(self, stream: gzip.GzipFile, total: int) -> None:
        self._stream, self._total = stream, total

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _HEADER:
            raise _Refused("holds a header of more than 1 MiB")
        body = self._stream.read(size)
        if self.tell() > self._total:
            raise _Refused(self._large())
        return body

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or offset > self._total:
            raise _Refused(self._large())
        return self._stream.seek(offset)

    def tell(self) -> int:
        return self._stream.tell()

    def _large(self) -> str:
        return f"holds more than {self._total / 2**20:g} MiB"


def _gather(archive: IO[bytes], staged: Path, name: str, limits: Limits) -> list[Path]:
    """Writes the archive's files below `staged` and returns their paths."""
    files: dict[Path, None] = {}
    try:
        bounded = _Bounded(gzip.GzipFile(fileobj=archive), limits.total)
        with tarfile.open(fileobj=bounded, mode="r:") as tar:
            for number, member in enumerate(tar):
                if number >= limits.members:
                    raise _Refused(f"holds more than {limits.members} members")
                place = staged.joinpath(*_parts(member, name))
                if member.isdir():
                    continue
                if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
                    raise _Refused(f"{_shown(member)} is no plain file")
                if member.size > limits.file:
                    raise _Refused(f"{_shown(member)} is larger than {limits.file / 2**20:g} MiB")
                files[place] = None
                _write(tar, member, place)
        while bounded.read(_HEADER):  # to the end, where the checksum is
            pass
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, RecursionError, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise _Refused(f"is no whole .tar.gz ({' '.join(reason.split())})") from None
    return list(files)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    body = tar.extractfile(member)
    assert body is not None  # a plain file has one
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("wb") as file:
            shutil.copyfileobj(body, file, 2**16)
    except (FileExistsError, IsADirectoryError, NotADirectoryError):
        raise _Refused(f"{_shown(member)} is both a file and a folder") from None


def _parts(member: tarfile.TarInfo, name: str) -> tuple[str, ...]:
    """The parts of a member's path below the target; `_Refused` where it would lead elsewhere."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or any(c in member.name for c in ("\\", ":", "\0")):
        raise _Refused(f"{_shown(member)} does not lie below the folder")
    parts = path.parts[1:] if path.parts[:1] == (name,) else path.parts
    if not parts and not member.isdir():
        raise _Refused(f"{_shown(member)} has no name of its own")
    return parts


def _shown(member: tarfile.TarInfo) -> str:
    text = ascii(member.name)
    return text if len(text) <= 60 else f"{text[:57]}..."
