"""Fills a data folder with ImagenHub: ratings, conditions and images from the places where their
authors put them.

The result is laid out as `samples.py` beside this reads it, which is the museum's own layout.
Everything is resumable: what is there is kept, and what cannot be had is told and does not stop the
rest.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Prepared, Preparing
from vieval_plugin.benchmarks.imagenhub.conditions import (
    Fetch,
    FileKindReport,
    Hosts,
    address,
    fetch_conditions,
)
from vieval_plugin.benchmarks.imagenhub.ratings import read_ratings
from vieval_plugin.benchmarks.imagenhub.tasks import (
    NAME,
    TASKS,
    museum_folder,
    ratings_folder,
    task_info,
)
from vieval_plugin.benchmarks.loading.folders import (
    manual_download_lines,
    missing_count_error,
)
from vieval_plugin.images import begins_as_image, examine
from vieval_plugin.judges.protocol import Image
from vieval_plugin.readers.download import Download, Failed, fetch_all
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.wording import plural

PUBLIC = Hosts()


def prepare(root: Path, preparing: Preparing) -> Prepared:
    """Run `fill` for `vieval prepare`: the outcome of each kind of file in lines for a terminal.

    Raises:
        VievalError: as `fill`, and for a count of frames.
    """
    if preparing.count is not None:
        raise missing_count_error(NAME)
    reports = fill(
        root,
        Hosts(**preparing.hosts),
        preparing.parts,
        preparing.images,
    )
    failed = [failure for report in reports for failure in report.failed]
    is_all = len(failed) == sum(report.total for report in reports)
    if failed and is_all and not any(failure.host_answered for failure in failed):
        hosts = ", ".join(dict.fromkeys(failure.host for failure in failed))
        reason = f"{hosts} does not answer ({failed[0].reason})"
        return Prepared(manual_download_lines(NAME, root, reason), False)
    return Prepared(tuple(summary_lines(reports)), not failed)


def fill(
    root: Path,
    hosts: Hosts = PUBLIC,
    parts: Sequence[str] | None = None,
    images: bool = True,
    retries: int = 4,
    timeout: float = 60,
) -> list[FileKindReport]:
    """Fetches what the data folder `root` lacks of ImagenHub; returns the outcomes, part by part.

    A part whose ratings cannot be had has nothing else: they say what else to fetch.

    Args:
        root: the data folder.
        hosts: where the sources are.
        parts: codes such as `tie`, all seven by default.
        images: without them only ratings and conditions are fetched: enough for recorded verdicts.
        retries, timeout: as in `fetch_all`.

    Raises:
        VievalError: an unknown part, aiohttp is not installed, a file cannot be written. Whatever
            else is missing is in what is returned.
    """
    selected = list(TASKS if parts is None else dict.fromkeys(parts))
    for task in selected:
        task_info(task)
    fetch = partial(
        fetch_all,
        retries=retries,
        timeout=timeout,
        hosts=(hosts.ratings, hosts.hub, hosts.museum),
    )

    async def fill_all() -> list[FileKindReport]:
        jobs = {task: _ratings(root, hosts, task) for task in selected}
        ratings = await _fetch_kind("ratings", jobs, fetch)
        uids: dict[str, list[str]] = {}
        reports = [_read_uids(root, rating_report, uids) for rating_report in ratings]
        reports += await asyncio.gather(
            *(
                fetch_conditions(root, hosts, task, rated, fetch)
                for task, rated in uids.items()
            )
        )
        if images:
            jobs = {
                task: _images(root, hosts, task, rated) for task, rated in uids.items()
            }
            fetch_images = partial(fetch, label="images")
            reports += await _fetch_kind("images", jobs, fetch_images)
        return reports

    reports = asyncio.run(fill_all())
    return sorted(reports, key=lambda report: selected.index(report.part))


def summary_lines(reports: Sequence[FileKindReport]) -> list[str]:
    """Outcome of filling for a terminal: one line per kind of file or, where files are
    missing, one line per reason.
    """
    lines = []
    for kind in reports:
        name = f"{NAME}/{kind.part}"
        if kind.note:
            lines.append(f"{name}: {kind.note}")
        for reason in dict.fromkeys(failed.reason for failed in kind.failed):
            alike = [failed for failed in kind.failed if failed.reason == reason]
            missing = (
                f"{len(alike)} of {kind.total} {kind.kind} missing (first: "
                f"{redacted(alike[0].url)}, {reason})"
            )
            lines.append(f"{name}: {missing}; run the command again to retry")
        if not kind.failed:
            lines.append(
                f"{name}: {kind.kind} complete, {plural(kind.total, 'file')} "
                f"({kind.downloaded_count} fetched now)"
            )
    return lines


async def _fetch_kind(
    kind: str, jobs: Mapping[str, Sequence[Download]], fetch: Fetch
) -> list[FileKindReport]:
    """Fetches the files of several tasks in one go, so that they share one limit and one
    progress bar.
    """
    present = {
        task: sum(job.is_there() for job in task_jobs)
        for task, task_jobs in jobs.items()
    }
    all_jobs = list(chain.from_iterable(jobs.values()))
    failed = {failure.path: failure for failure in await fetch(all_jobs)}
    reports = []
    for task, task_jobs in jobs.items():
        failures = tuple(failed[job.path] for job in task_jobs if job.path in failed)
        downloaded_count = len(task_jobs) - present[task] - len(failures)
        reports.append(
            FileKindReport(
                task,
                kind,
                present[task],
                downloaded_count,
                failures,
            )
        )
    return reports


def _ratings(root: Path, hosts: Hosts, task: str) -> list[Download]:
    info = task_info(task)
    folder = ratings_folder(root, task)
    check = partial(_check_table, ("uid", *info.image_models))
    return [
        Download(
            address(hosts.ratings, info.folder, name),
            folder / name,
            check,
        )
        for name in info.ratings_files
    ]


def _check_table(columns: Collection[str], body: bytes) -> None:
    first_line = body.decode("utf-8", "replace").partition("\n")[0]
    header = first_line.strip().split("\t")
    missing = [column for column in columns if column not in header]
    if missing:
        raise ValueError(f"not a table of ratings: the column {missing[0]} is missing")


def _read_uids(
    root: Path, ratings: FileKindReport, uids: dict[str, list[str]]
) -> FileKindReport:
    """Adds the rated uids of a task to `uids`; what is said of ratings that cannot be read says
    why.
    """
    if ratings.failed:
        return ratings
    task = ratings.part
    try:
        rated = list(read_ratings(root, task))
        # A uid becomes a file name, and must stay below its folder.
        unsafe = [uid for uid in rated if not re.fullmatch(r"\w[\w.-]*", uid)]
        if unsafe:
            raise VievalError(
                "a uid may contain only letters, digits, _, . and -, and must not "
                f"begin with . or -, got {unsafe[0]!r}"
            )
    except VievalError as error:
        folder = ratings_folder(root, task)
        failed = Failed(
            str(folder),
            folder,
            f"{error}; remove this folder to download it again",
        )
        return FileKindReport(task, ratings.kind, failed=(failed,))
    uids[task] = rated
    return ratings


def _images(root: Path, hosts: Hosts, task: str, uids: Iterable[str]) -> list[Download]:
    info = task_info(task)
    museum = museum_folder(root, task)
    return [
        Download(
            address(hosts.museum, info.folder, kind, uid),
            museum / kind / uid,
            _check_image,
            begins_as_image,
        )
        for uid in uids
        for kind in info.museum_folders
    ]


def _check_image(body: bytes) -> None:
    """Look an image through, so that a cut one is found now and not in the middle of a run."""
    try:
        examine(Image(body))
    except VievalError as error:
        raise ValueError(str(error)) from None
