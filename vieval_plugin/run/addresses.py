"""Downloads of images that samples refer to by URL, from allowed hosts only."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from vieval_plugin.images import examine
from vieval_plugin.judges.protocol import Image, Sample, Status
from vieval_plugin.media.files import cache_folder
from vieval_plugin.readers.absent_images import absence
from vieval_plugin.readers.download import Download, fetch_all, is_private
from vieval_plugin.readers.samples import SampleRow, SampleSource
from vieval_plugin.records import unjudged
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.untrusted import PORTS, address_of

_HOST = re.compile(r"[^\s/?#@]+")
_MOST_CHARACTERS = 200
_AT_ONCE = 32
_PER_HOST = 8
#: Any host with a public address.
ANY = "*"
Hosts: TypeAlias = Set[tuple[str, int | None]]


def fetch_source_images(
    source: SampleSource,
    hosts: Sequence[str],
    anew: bool = False,
) -> SampleSource:
    """Download the images that rows refer to by URL; return the source with the local
    files.

    A sample whose image cannot be had keeps a verdict, with the reason. Files are kept in the
    user's cache, by address.

    Args:
        source: the samples.
        hosts: those that the user allows, each with its port where that is not the usual one.
        anew: fetch also what was fetched before.

    Raises:
        VievalError: for a host that is no name of one, and where files cannot be kept.
    """
    folder = cache_folder() / "fetched"
    allowed = allowed_hosts(hosts)
    reasons = _fetch(
        source,
        allowed,
        folder,
        anew,
        label="Fetching",
    )
    return replace(
        source,
        read=lambda: (_fetch_row(row, allowed, folder, reasons) for row in source),
    )


def fetched_rows(
    rows: Sequence[SampleRow],
    allowed: Hosts,
    folder: Path,
) -> list[SampleRow]:
    """Rows with images from allowed hosts downloaded into a folder."""
    reasons = _fetch(
        rows,
        allowed,
        folder,
        concurrency=_AT_ONCE,
        per_host=_PER_HOST,
    )
    return [_fetch_row(row, allowed, folder, reasons) for row in rows]


def _fetch(
    rows: Iterable[SampleRow],
    allowed: Hosts,
    folder: Path,
    anew: bool = False,
    **options: Any,
) -> dict[Path, str]:
    """Download the images of rows into a folder; return the reasons of failures by
    file.
    """
    allowed_rows = (row for row in rows if _all_allowed(row, allowed))
    addresses = {
        _file(folder, address): address
        for row in allowed_rows
        for address in row.addresses.values()
    }
    for path in addresses if anew else ():
        path.unlink(missing_ok=True)
    downloads = [
        Download(address, path, _require_image) for path, address in addresses.items()
    ]
    failed = (
        asyncio.run(fetch_all(downloads, public=True, **options)) if downloads else []
    )
    return {failure.path: failure.reason for failure in failed}


def _all_allowed(row: SampleRow, allowed: Hosts) -> bool:
    return all(is_allowed(address, allowed) for address in row.addresses.values())


def _fetch_row(
    row: SampleRow,
    allowed: Hosts,
    folder: Path,
    reasons: Mapping[Path, str],
) -> SampleRow:
    """A row with its downloaded images; `reasons` has the failures by file."""
    if not row.addresses or not isinstance(row.sample, Sample):
        return row
    if not _all_allowed(row, allowed):
        reason = (
            f"{row.verdict.reason if row.verdict else ''}; pass --allow-urls "
            "HOST to download images from that host"
        )
        return replace(row, verdict=unjudged(Status.TOOL_ERROR, reason))
    files = {role: _file(folder, address) for role, address in row.addresses.items()}
    images = dict(row.sample.images)
    for role, path in files.items():
        images[role] = Image(path, row.addresses[role])
    sample = replace(row.sample, images=images)
    failed_role = next((role for role, path in files.items() if path in reasons), None)
    if failed_role is None:
        return replace(row, sample=sample, verdict=absence(sample))
    address = redacted(row.addresses[failed_role])[:_MOST_CHARACTERS]
    reason = reasons[files[failed_role]]
    return replace(
        row,
        sample=sample,
        verdict=unjudged(
            Status.TOOL_ERROR,
            f"cannot download the {failed_role} image from {address}: {reason}",
        ),
    )


def allowed_hosts(names: Sequence[str]) -> Hosts:
    """Allowed hosts, each with its port unless it is the default; VievalError for an
    invalid host.
    """
    return frozenset(_host(host) for host in names)


def _host(name: str) -> tuple[str, int | None]:
    """Name and port of a host; `*` means any host with a public address."""
    if name == ANY:
        return ANY, None
    address = address_of(f"//{name}")
    if address is None or not _HOST.fullmatch(name):
        raise VievalError(
            "--allow-urls must be a host such as images.example.com or "
            f"127.0.0.1:8000, got {redacted(name)[:_MOST_CHARACTERS]!r}"
        )
    return address.host, address.port


def is_allowed(text: str, allowed: Hosts) -> bool:
    """Return whether a text is an address of a host that the user allows."""
    address = address_of(text)
    if address is None or address.scheme not in PORTS:
        return False
    if (ANY, None) in allowed and not is_private(
        address.host
    ):  # names that lead to private ones are refused later
        return True
    return (address.host, address.port) in allowed or (
        address.port == PORTS[address.scheme] and (address.host, None) in allowed
    )


def _file(folder: Path, address: str) -> Path:
    digest = hashlib.sha256(address.encode(errors="replace"))
    return folder / digest.hexdigest()[:32]


def _require_image(body: bytes) -> None:
    try:
        examine(Image(body), body)
    except VievalError as error:
        raise ValueError(str(error)) from None
