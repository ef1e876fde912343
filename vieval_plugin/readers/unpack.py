"""Safe unpacking of untrusted archives: regular files inside the folder, limited in
number and size.

Where a member may lie is checked by `tarfile`'s own data filter. Sizes are checked here: those that
headers declare, and those of what is decompressed.

What is unpacked is gathered in a folder beside the target and moved there once all of it has been
read, so that no file is ever half-written and an archive that is refused leaves nothing behind.
"""

from __future__ import annotations

import gzip
import io
import os
import secrets
import shutil
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from vieval_plugin.text.errors import VievalError, unwritable

#: Bytes that tarfile may read of a member's headers, extended ones included.
_HEADER = 2**20
_MOST_RATIO = 100  # of what is decompressed to the archive; that of zeros is 1,000


@dataclass(frozen=True)
class Limits:
    """Limits on the content of an archive."""

    members: int = 20_000
    #: Bytes of a file.
    file: int = 64 * 2**20
    #: Bytes in all, decompressed and written.
    total: int = 4 * 2**30


def unpack(
    archive: Path,
    target: Path,
    limits: Limits = Limits(),
) -> int:
    """Unpacks a .tar.gz into the folder `target` and returns the number of files; a file that is
    there is replaced.

    A leading folder of the target's own name is left out. VievalError, in one line, for an archive
    that is malformed, too large, or holds a link, a device or a name outside the folder; then
    nothing has changed.
    """
    if not hasattr(tarfile, "data_filter"):
        raise VievalError(
            f"{archive}: safe unpacking requires Python 3.11.4 or later; update Python"
        )
    for unfinished in target.parent.glob(f"{target.name}.*.part"):
        shutil.rmtree(unfinished, ignore_errors=True)
    token = secrets.token_hex(4)
    staged = target.with_name(f"{target.name}.{token}.part")
    try:
        source = archive.open("rb")
    except OSError as error:
        raise VievalError(
            f"cannot read {archive}: {error.strerror}; download it again"
        ) from None
    try:
        staged.mkdir(parents=True)
        with source:
            files = _gather(source, staged, target.name, limits)
        for file in files:
            path = target / file.relative_to(staged)
            path.parent.mkdir(parents=True, exist_ok=True)
            file.replace(path)
    except _Refused as refused:
        raise VievalError(
            f"{archive}: {refused}; download it again from its source"
        ) from None
    except OSError as error:
        raise unwritable(target, error, "choose another folder") from None
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return len(files)


class _Refused(Exception):
    """Reason that an archive is not unpacked."""


class _Bounded(gzip.GzipFile):
    """The decompressed archive; `_Refused` past so many bytes in all, or past so many of one
    member's headers.
    """

    #: Bytes in all.
    total = 0
    #: Bytes that may still be read of the headers at hand; None while a file's content is read.
    header: int | None = _HEADER

    def read(self, size: int | None = -1) -> bytes:
        limit = _HEADER if self.header is None else self.header
        if size is None or not 0 <= size <= limit:
            raise _Refused("has a header larger than 1 MiB")
        body = super().read(size)
        if self.header is not None:
            self.header -= len(body)
        if self.tell() > self.total:
            raise self.too_much
        return body

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if offset > self.total:
            raise self.too_much
        return super().seek(offset, whence)

    @property
    def too_much(self) -> _Refused:
        mebibytes = self.total / 2**20
        return _Refused(f"contains more than {mebibytes:g} MiB")


def _gather(
    archive: IO[bytes],
    staged: Path,
    name: str,
    limits: Limits,
) -> list[Path]:
    """Writes the archive's files below `staged` and returns their paths."""
    files = dict[Path, None]()
    try:
        bounded = _Bounded(fileobj=archive)
        size = os.fstat(archive.fileno()).st_size
        bounded.total = min(limits.total, max(limits.file, _MOST_RATIO * size))
        with tarfile.open(fileobj=bounded, mode="r:") as tar:
            for number, member in enumerate(tar):
                bounded.header = None
                if number >= limits.members:
                    raise _Refused(f"contains more than {limits.members} members")
                path = _path_of(member, staged, name)
                if member.size > limits.file:
                    raise _Refused(
                        f"{_member_name(member)} is larger than {limits.file / 2**20:g} MiB"
                    )
                if member.isreg():
                    files[path] = None
                    _write(tar, member, path)
                bounded.header = _HEADER
        bounded.header = None
        while bounded.read(_HEADER):  # to the end, where the checksum is
            pass
    except (
        tarfile.TarError,
        EOFError,
        zlib.error,
        gzip.BadGzipFile,
        RecursionError,
        ValueError,
    ) as error:
        reason = str(error) or type(error).__name__
        raise _Refused(
            f"is not a complete .tar.gz file ({' '.join(reason.split())})"
        ) from None
    return list(files)


def _write(
    tar: tarfile.TarFile,
    member: tarfile.TarInfo,
    path: Path,
) -> None:
    body = tar.extractfile(member)
    assert body is not None  # a plain file has one
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            shutil.copyfileobj(body, file)
    except (FileExistsError, IsADirectoryError, NotADirectoryError):
        raise _Refused(f"{_member_name(member)} is both a file and a folder") from None


def _path_of(
    member: tarfile.TarInfo,
    staged: Path,
    name: str,
) -> Path:
    """Path at which a member is written below `staged`; `_Refused` for anything but a
    plain file or folder, or a path that would lead elsewhere.
    """
    # holes are larger on disk than in the archive
    if member.issparse() or not (member.isreg() or member.isdir()):
        raise _Refused(f"{_member_name(member)} is not a regular file")
    parts = PurePosixPath(member.name).parts
    inner = PurePosixPath(*(parts[1:] if parts[:1] == (name,) else parts))
    elsewhere = _Refused(f"{_member_name(member)} is outside the folder")
    # The filter mends a leading slash where it should refuse; the others mean a folder or drive on
    # some systems only.
    if inner.is_absolute() or any(c in member.name for c in "\\:\0"):
        raise elsewhere
    if not inner.parts and not member.isdir():
        raise _Refused(f"{_member_name(member)} has no file name")
    try:
        tarfile.data_filter(member.replace(name=str(inner), deep=False), str(staged))
    except tarfile.FilterError:
        raise elsewhere from None
    return staged / inner


def _member_name(member: tarfile.TarInfo) -> str:
    text = ascii(member.name)
    if len(text) <= 60:
        return text
    return f"{text[:57]}..."
