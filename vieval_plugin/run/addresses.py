"""Images that a file names by their addresses -> files on this machine, from the hosts that the user allows and no others."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import platformdirs

from vieval_plugin.errors import VievalError
from vieval_plugin.images import examine
from vieval_plugin.judges.protocol import Image, Status
from vieval_plugin.readers.download import Download, fetch_all
from vieval_plugin.run.prepare import unjudged
from vieval_plugin.run.runner import absent_image
from vieval_plugin.run.samples_file import SampleFile
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.untrusted import PORTS, address_of

_HOST = re.compile(r"[^\s/?#@]+")
_MOST_CHARACTERS = 200


def fetch_images(loaded: SampleFile, hosts: Sequence[str], anew: bool = False) -> None:
    """Fetch the images of samples that are decided because they are addresses, and have these samples judged.

    A sample whose image cannot be had keeps a verdict, with the reason. Files are kept in the user's cache, by address.

    Args:
        loaded: the samples, changed in place.
        hosts: those that the user allows, each with its port where that is not the usual one.
        anew: fetch also what was fetched before.

    Raises:
        VievalError: for a host that is no name of one, and where files cannot be kept.
    """
    allowed = {_host(host) for host in hosts}
    files_by_sample = {
        number: {role: _file(address) for role, address in addresses.items()}
        for number, addresses in loaded.addresses.items()
        if all(_allowed(address, allowed) for address in addresses.values())
    }
    jobs = {
        path: Download(address, path, _require_image)
        for number, files in files_by_sample.items()
        for path, address in zip(files.values(), loaded.addresses[number].values(), strict=True)
    }
    for path in jobs if anew else ():
        path.unlink(missing_ok=True)
    failed = asyncio.run(fetch_all(list(jobs.values()), label="Fetching", public=True))
    reasons = {failure.path: failure.reason for failure in failed}
    for number, files in files_by_sample.items():
        sample = loaded.samples[number]
        sample = replace(sample, images={**sample.images, **{role: Image(path) for role, path in files.items()}})
        fetch_problems = [
            f"the image {role} cannot be had from {redacted(loaded.addresses[number][role])[:_MOST_CHARACTERS]}: {reasons[path]}"
            for role, path in files.items()
            if path in reasons
        ]
        loaded.samples[number] = sample
        del loaded.decided[number]
        if reason := next(iter(fetch_problems), "") or absent_image(sample):
            loaded.decided[number] = unjudged(Status.TOOL_ERROR, reason)
    for number in loaded.addresses.keys() - files_by_sample.keys():
        verdict = loaded.decided[number]
        reason = f"{verdict.reason}; --allow-urls HOST has the images of a host fetched"
        loaded.decided[number] = unjudged(Status.TOOL_ERROR, reason)


def _host(named: str) -> tuple[str, int | None]:
    """A host's name and port as the user gives them."""
    address = address_of(f"//{named}")
    if address is None or not _HOST.fullmatch(named):
        raise VievalError(
            f"--allow-urls {redacted(named)[:_MOST_CHARACTERS]!r} is no host; name one such as images.example.com or 127.0.0.1:8000"
        )
    return address.host, address.port


def _allowed(text: str, allowed: set[tuple[str, int | None]]) -> bool:
    address = address_of(text)
    if address is None or address.scheme not in PORTS:
        return False
    usual = address.port == PORTS[address.scheme]
    return (address.host, address.port) in allowed or (usual and (address.host, None) in allowed)


def _file(address: str) -> Path:
    folder = Path(platformdirs.user_cache_dir("vieval")) / "fetched"
    return folder / hashlib.sha256(address.encode(errors="replace")).hexdigest()[:32]


def _require_image(body: bytes) -> None:
    try:
        examine(Image(body), body)
    except VievalError as error:
        raise ValueError(str(error)) from None
