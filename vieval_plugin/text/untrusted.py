"""Paths, addresses, names and waits that others wrote: asked about without an exception,
whatever they hold.
"""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from os.path import (
    exists as exists,
)  # which raise nothing for zero bytes, circles of links and names of any length
from os.path import isdir as isdir
from os.path import isfile as isfile
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

#: The most characters of what names a sample, an image model, a category and the like.
LONGEST_NAME = 1000

#: The schemes that a server is called by, with the ports that need not be named.
PORTS = {"http": 80, "https": 443}
# of a drive such as C:/ the name has one letter; of a Path one slash is left
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


@dataclass(frozen=True)
class ParsedAddress:
    """Address without user, password and query."""

    #: Address as it is called.
    url: str
    #: Scheme, such as https.
    scheme: str
    host: str
    #: The scheme's own where the text names none.
    port: int | None
    #: Path on the server.
    path: str

    @property
    def origin(self) -> tuple[str, str, int | None]:
        """The server that the address is of."""
        return self.scheme, self.host, self.port

    @property
    def server(self) -> str:
        """Host and port in words, without the scheme's own port."""
        host = self.host
        if ":" in self.host:
            host = f"[{self.host}]"
        has_own_port = self.port in (None, PORTS.get(self.scheme))
        if has_own_port:
            return host
        return f"{host}:{self.port}"


def address_of(text: str, base: str = "") -> ParsedAddress | None:
    """The address that a text is, from another where it is relative; None for other
    texts.

    >>> address_of("http://[::1"), address_of("b.png", "https://me:pw@host/a").server
    (None, 'host')
    """
    try:
        url = urljoin(base, text)
        parts = urlsplit(url)
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return None
    if not parts.hostname:
        return None
    return ParsedAddress(
        url,
        parts.scheme,
        parts.hostname,
        port,
        parts.path,
    )


def has_scheme(text: str | Path) -> bool:
    """Return whether a text or a path made of one is an address, of whatever scheme.

    >>> has_scheme("s3://bucket/a"), has_scheme(Path("s3://bucket/a")), has_scheme("C:/a"), has_scheme("a/s3:b")
    (True, True, False, False)
    """
    return bool(_SCHEME.match(str(text)))


def path_of(text: str | Path, folder: Path = Path()) -> Path:
    """The path that a text names, from a folder; `~nobody`, a user that there is not, is a name
    like any other.
    """
    return folder / os.path.expanduser(text)


def real(path: Path) -> Path:
    """The path that links lead to, as far as they lead anywhere."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:  # a zero byte
        return path.absolute()


def is_below(path: Path, folder: Path) -> bool:
    """Check that a path lies in a folder, once all links are followed."""
    return real(path).is_relative_to(real(folder))


def overlong(*names: str) -> str:
    """The first of some names that is too long to be shown in a table, in words; empty where
    none is.
    """
    name = next((name for name in names if len(name) > LONGEST_NAME), "")
    if not name:
        return ""
    return (
        f"{name[:20]!r}... must have at most {LONGEST_NAME} characters, got {len(name)}"
    )


def is_encodable(value: Any) -> bool:
    """Return whether no text in JSON values has half of a character (a lone surrogate), which
    can be written nowhere.
    """
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def retry_after(header: str | None) -> float | None:
    """The seconds that a Retry-After header asks for, 0 or more; None where it says nothing
    readable.

    It holds a number (RFC 9110 has whole ones, servers send fractions too) or an HTTP date.

    >>> retry_after("1.5")
    1.5
    >>> retry_after("Wed, 21 Oct 2015 07:28:00 GMT")
    0.0
    >>> retry_after("soon")
    """
    text = (header or "").strip()
    try:
        seconds = float(text)
    except ValueError:
        seconds = _until(text)
    if math.isfinite(seconds):
        return max(seconds, 0.0)
    return None


def _until(date: str) -> float:
    """Seconds from now to a date; NaN if it is invalid."""
    try:
        then = parsedate_to_datetime(date)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    if (
        then.tzinfo is None
    ):  # as RFC 5322 writes a time without a zone that is known, which is UTC
        then = then.replace(tzinfo=UTC)
    return (then - datetime.now(UTC)).total_seconds()
