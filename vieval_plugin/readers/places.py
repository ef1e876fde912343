"""Places of files on disk or in object storage, whose keys come from the environment."""

from __future__ import annotations

import errno
import os
import posixpath
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from vieval_plugin.text.errors import VievalError, install_advice
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.untrusted import has_scheme, isfile

#: File by which a folder is one of shards.
PLAN = "plan.json"
#: The beginning of an address of object storage.
REMOTE = re.compile(r"(s3|gs|gcs):/+")
_READ_AT_ONCE = 16 << 10  # bytes at the end of a parquet file, which hold most footers
_BUCKET = re.compile(
    r"(anonymous@)?[A-Za-z0-9][A-Za-z0-9._-]*"
)  # public data of gs:// is read as anonymous@BUCKET
# bytes at the end of a parquet file: the length of its footer, and a word that says what it is
_FOOTER = 8
_LONGEST_REASON = 300


@dataclass(frozen=True)
class Place:
    """A file or folder on a disk or in object storage; as a text its path, or its address
    without options.
    """

    #: Path in the file system.
    path: str
    #: File system of pyarrow.
    system: Any = field(compare=False, repr=False)
    #: Beginning of its address in object storage, such as `s3://`; empty on a disk.
    scheme: str = ""
    #: Options at the end of that address, such as `?region=eu-west-1`.
    query: str = ""

    def __str__(self) -> str:
        if self.scheme:
            return f"{self.scheme}{quote(self.path)}"
        return self.path

    @property
    def address(self) -> str:
        """The text that `place_at` makes this place of."""
        return f"{self}{self.query}"

    def below(self, name: str) -> Place:
        """The place of a file or folder in this folder."""
        return Place(
            posixpath.join(self.path, name),
            self.system,
            self.scheme,
            self.query,
        )


def location_of(path: str | Path) -> str:
    """The location that a user names, as `place_at` takes it: an address of object storage, or an
    absolute path.

    Raises:
        VievalError: it is an address of another scheme.

    >>> location_of(Path("s3://bucket/verdicts"))
    's3://bucket/verdicts'
    """
    text = str(path)
    match = REMOTE.match(text)
    if match:
        return f"{match[1]}://{text[match.end() :]}"
    if has_scheme(text):
        address = redacted(text).partition("?")[0]
        raise VievalError(
            "object storage addresses must begin with s3://, gs:// or gcs://, got "
            f"{address}; or use a local path"
        )
    return str(Path(text).absolute())


def is_shards(path: Path) -> bool:
    """Return whether a folder is one of shards; whatever is in object storage is."""
    location = location_of(path)
    return "://" in location or isfile(Path(location) / PLAN)


def shown_location(path: str | Path) -> str:
    """A location as a user can paste it into a shell: a path as it is, an address with its options
    and in quotes.

    >>> shown_location(Path("s3://bucket/run?region=here&scheme=http")), shown_location("out/run")
    ("'s3://bucket/run?region=here&scheme=http'", 'out/run')
    """
    if REMOTE.match(str(path)):
        return shlex.quote(location_of(path))
    return str(path)


def arrow(reader: str = "reading parquet files") -> Any:
    """Import pyarrow with its parquet files and file systems; VievalError on what needs it
    where it is not installed.
    """
    try:
        import pyarrow
        import pyarrow.fs
        import pyarrow.parquet
    except ImportError:
        raise VievalError(
            f"{reader} requires pyarrow; {install_advice('tables')}"
        ) from None
    return pyarrow


def place_of(path: Path) -> Place:
    """The place of a file or folder on a disk; VievalError where pyarrow is not installed."""
    return Place(
        str(path),
        arrow(f"reading {path}").fs.LocalFileSystem(),
    )


def place_at(location: str, options: str = "") -> Place:
    """The place at a location by `location_of`.

    Args:
        location: an absolute path, or an address.
        options: of S3, in the form of a query, which the place is opened with beside its own.

    Raises:
        VievalError: it is no address, holds keys, or leads to no service that can be reached.
    """
    match = REMOTE.match(location)
    if not match:
        return place_of(Path(location))
    name, _, query = location.partition("?")
    bucket = name[match.end() :].partition("/")[0]
    if not _BUCKET.fullmatch(bucket):
        raise VievalError(
            f"{match[0]}...: the address must be {match[0]}BUCKET/FOLDER without "
            "keys; set keys in the environment"
        )
    systems = arrow(f"reading {name}").fs
    parameters = "&".join(filter(None, (query, options)))
    uri = f"{name}?{parameters}".rstrip("?")
    try:
        system, path = systems.FileSystem.from_uri(uri)
    except Exception as error:
        raise VievalError(
            f"{name}: cannot open object storage ({reason_of(error)})"
        ) from None
    user = "anonymous@" if bucket.startswith("anonymous@") else ""
    scheme = f"{match[1]}://{user}"
    query_suffix = f"?{query}" if query else ""
    return Place(
        path.rstrip("/"),
        system,
        scheme,
        query_suffix,
    )


@contextmanager
def reading(place: Place) -> Iterator[None]:
    """A place while it is read; VievalError naming it where the system or the service refuses."""
    try:
        yield
    except VievalError:
        raise
    except Exception as error:
        raise VievalError(f"cannot read {place}: {reason_of(error)}") from None


def reason_of(error: Exception) -> str:
    """The reason of an error in one line without secrets."""
    text = str(error)
    if isinstance(error, OSError) and error.errno:
        text = os.strerror(error.errno)
    return redacted(" ".join(text.split()))[:_LONGEST_REASON] or type(error).__name__


def size_of(place: Place) -> int:
    """The size of a file in bytes; VievalError where it is not there, or is none."""
    with reading(place):
        info = place.system.get_file_info(place.path)
        if info.type == arrow().fs.FileType.NotFound:
            raise FileNotFoundError(errno.ENOENT, "")
    if not info.is_file:
        raise VievalError(f"{place}: not a regular file")
    return int(info.size)


def parquet_footer(place: Place) -> bytes:
    """The footer of a parquet file, with its length and the word at the end;
    VievalError if it cannot be read.
    """
    with reading(place), place.system.open_input_file(place.path) as file:
        size = file.size()

        def last(count: int) -> bytes:
            start = max(size - count, 0)
            return bytes(file.read_at(min(size, count), start))

        end = last(_READ_AT_ONCE)
        length_bytes = end[-_FOOTER:][:4]
        length = int.from_bytes(length_bytes, "little") + _FOOTER
        if length <= len(end):
            return end[-length:]
        return last(length)
