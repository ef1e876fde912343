"""Download published logs from their repositories, each file at a fixed commit and
checked by size and SHA-256.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence, Set
from pathlib import Path
from urllib.parse import quote

from vieval_plugin.benchmarks.benchmark import Prepared, Preparing, known_part
from vieval_plugin.benchmarks.loading.folders import (
    manual_download_lines,
    missing_count_error,
)
from vieval_plugin.readers.download import Download, Failed, fetch_all
from vieval_plugin.results.published.files import (
    NAME,
    PublishedFile,
    published_files,
    sources,
)
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.wording import plural

#: Address of the files; a mirror with the same paths works as well.
HOSTS = {"logs": "https://raw.githubusercontent.com"}


def prepare(root: Path, preparing: Preparing) -> Prepared:
    """Download the logs that the data folder lacks; files that match the published ones
    are kept.

    Args:
        root: the data folder.
        preparing: with names of benchmarks as parts.

    Raises:
        VievalError: a benchmark has no published logs, aiohttp is not installed, or a file
            cannot be written.
    """
    if preparing.count is not None:
        raise missing_count_error(NAME)
    described = sources()
    parts = dict.fromkeys(preparing.parts or described)
    names = [known_part(NAME, described, name) for name in parts]
    address = preparing.hosts.get("logs", HOSTS["logs"]).rstrip("/")
    jobs = {
        name: [
            _download(file, address, root / NAME)
            for file in published_files()
            if file.repository == described[name]["repository"]
        ]
        for name in names
    }
    missing = {
        job.path: job for name in names for job in jobs[name] if not job.is_there()
    }
    downloads = list(missing.values())
    failed = asyncio.run(fetch_all(downloads, label="logs", hosts=[address]))
    is_all = len(failed) == sum(map(len, jobs.values()))
    if failed and is_all and not any(failure.host_answered for failure in failed):
        host = failed[0].host
        reason = f"{host} does not answer ({failed[0].reason})"
        return Prepared(manual_download_lines(NAME, root, reason), False)
    lines = (
        _line(
            name,
            jobs[name],
            missing.keys(),
            failed,
        )
        for name in names
    )
    return Prepared(tuple(lines), not failed)


def _download(
    file: PublishedFile,
    address: str,
    root: Path,
) -> Download:
    def check(body: bytes) -> None:
        difference = file.difference(body)
        if difference:
            raise ValueError(difference)

    # a file is taken for what was published by its content: one of another commit is fetched anew
    return Download(
        f"{address}/{file.repository}/{file.commit}/{quote(file.path)}",
        root / file.place,
        check,
        lambda path: not file.difference(path.read_bytes()),
    )


def _line(
    name: str,
    jobs: Sequence[Download],
    missing: Set[Path],
    failed: Sequence[Failed],
) -> str:
    """Summarise the download of a benchmark for the terminal: complete, or the number
    of missing files by reason.
    """
    paths = {job.path for job in jobs}
    failures = [failure for failure in failed if failure.path in paths]
    total = plural(len(jobs), "file")
    if not failures:
        fetched = len(paths & missing)
        return f"{NAME}/{name}: complete, {total} ({fetched} fetched now)"
    missing_files = f"{len(failures)} of {total} missing"
    counts = Counter(map(_reason, failures))
    if len(counts) > 1:
        reasons = "; ".join(f"{reason}: {n}" for reason, n in counts.most_common())
        missing_files += f" ({reasons})"
    first = failures[0]
    return (
        f"{NAME}/{name}: {missing_files} "
        f"(first: {redacted(first.url)}, {first.reason}); "
        "run the command again to retry"
    )


def _reason(failure: Failed) -> str:
    """Reason that several failed files share; details that differ by file are cut."""
    if failure.host_answered:
        return failure.reason.partition(":")[0]
    return f"{failure.host} does not answer"
