"""Fills a data folder with ImagenHub: ratings, conditions and images from the places where their authors put them.

The result is laid out as `samples.py` beside this reads it, which is the museum's own layout. Everything is resumable:
what is there is kept, and what cannot be had is told and does not stop the rest.
"""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PIL import Image

from vieval_plugin.benchmarks.benchmark import Prepared, Preparing
from vieval_plugin.benchmarks.imagenhub.conditions import Fetch, FileKindReport, Hosts, address, fetch_conditions
from vieval_plugin.benchmarks.imagenhub.ratings import read_ratings
from vieval_plugin.benchmarks.imagenhub.tasks import NAME, TASKS, museum_folder, ratings_folder, task_info
from vieval_plugin.benchmarks.loading.folders import no_count, without_network
from vieval_plugin.errors import VievalError
from vieval_plugin.readers.download import Download, Failed, fetch_all
from vieval_plugin.text.plural import plural
from vieval_plugin.text.redaction import redacted

MAX_PIXELS = 32 * 2**20
FORMATS = ("JPEG", "PNG", "WEBP")
PUBLIC = Hosts()


@dataclass(frozen=True)
class FetchReport:
    """Outcome of filling. A part whose ratings cannot be had has nothing else: they say what else to fetch."""

    kinds: tuple[FileKindReport, ...]

    @property
    def complete(self) -> bool:
        """Return whether nothing is missing."""
        return not any(kind.failed for kind in self.kinds)


def prepare(root: Path, preparing: Preparing) -> Prepared:
    """Run `fill` for `vieval prepare`: the outcome of each kind of file in lines for a terminal.

    Raises:
        VievalError: as `fill`, and for a count of frames or the address of a source that there are none of.
    """
    if preparing.count is not None:
        raise no_count(NAME)
    try:
        hosts = Hosts(**preparing.hosts)
    except TypeError:
        raise VievalError(f"{NAME} comes from ratings, hub and museum, not from {', '.join(preparing.hosts)}") from None
    report = fill(
        root,
        hosts=hosts,
        parts=preparing.parts,
        images=preparing.images,
        concurrency=preparing.workers or 8,
        progress=preparing.progress,
    )
    if silent := _silent(report):
        return Prepared(without_network(NAME, root, silent), False)
    return Prepared(tuple(summary_lines(report)), report.complete)


def _silent(report: FetchReport) -> str:
    """Reason that nothing could be fetched, where nobody answered; empty where somebody did, or where something is
    there.
    """
    failed = [failure for kind in report.kinds for failure in kind.failed]
    is_host_reachable = any(failure.host_answered for failure in failed)
    if not failed or is_host_reachable or any(kind.present or kind.downloaded_count for kind in report.kinds):
        return ""
    hosts = dict.fromkeys(failure.host for failure in failed)
    return f"{', '.join(hosts)} does not answer ({failed[0].reason})"


def fill(
    root: Path,
    *,
    hosts: Hosts = PUBLIC,
    parts: Sequence[str] | None = None,
    images: bool = True,
    concurrency: int = 8,
    retries: int = 4,
    timeout: float = 60,
    progress: bool = True,
) -> FetchReport:
    """Fetches what the data folder `root` lacks of ImagenHub.

    Args:
        root: the data folder.
        hosts: where the sources are.
        parts: codes such as `tie`, all seven by default.
        images: without them only ratings and conditions are fetched: enough for recorded verdicts.
        concurrency, retries, timeout, progress: as in `fetch_all`.

    Raises:
        VievalError: an unknown part, aiohttp is not installed, a file cannot be written. Whatever else is missing is in
            what is returned.
    """
    selected = list(TASKS if parts is None else dict.fromkeys(parts))
    for task in selected:
        task_info(task)
    named = (hosts.ratings, hosts.hub, hosts.museum)
    fetch = partial(fetch_all, concurrency=concurrency, retries=retries, timeout=timeout, hosts=named)
    loud = partial(fetch, progress=progress, label="images") if images else None
    return asyncio.run(_fill(root, hosts, selected, partial(fetch, progress=False), loud))


async def _fill(
    root: Path, hosts: Hosts, tasks: Sequence[str], fetch: Fetch, fetch_images: Fetch | None
) -> FetchReport:
    ratings = await _fetch_kind("ratings", {task: _ratings(root, hosts, task) for task in tasks}, fetch)
    uids: dict[str, list[str]] = {}
    kind_reports = [_read_uids(root, rating_report, uids) for rating_report in ratings]
    kind_reports += await asyncio.gather(*(fetch_conditions(root, hosts, task, uids[task], fetch) for task in uids))
    if fetch_images:
        jobs = {task: _images(root, hosts, task, uids[task]) for task in uids}
        kind_reports += await _fetch_kind("images", jobs, fetch_images)
    return FetchReport(tuple(sorted(kind_reports, key=lambda report: tasks.index(report.part))))


def summary_lines(report: FetchReport) -> list[str]:
    """Outcome of filling for a terminal: a line a kind of file or, where files are missing, a line a reason."""
    lines = []
    for kind in report.kinds:
        name = f"{NAME}/{kind.part}"
        if kind.note:
            lines.append(f"{name}: {kind.note}")
        for reason in dict.fromkeys(failed.reason for failed in kind.failed):
            alike = [failed for failed in kind.failed if failed.reason == reason]
            missing = f"{len(alike)} of {kind.total} {kind.kind} missing, first: {redacted(alike[0].url)} ({reason})"
            lines.append(f"{name}: {missing}; run the command again to retry")
        if not kind.failed:
            lines.append(
                f"{name}: {kind.kind} complete, {plural(kind.total, 'file')} ({kind.downloaded_count} fetched now)"
            )
    return lines


async def _fetch_kind(kind: str, jobs: Mapping[str, Sequence[Download]], fetch: Fetch) -> list[FileKindReport]:
    """Fetches the files of several tasks in one go, so that they share one limit and one progress bar."""
    present = {task: sum(job.is_there() for job in of_task) for task, of_task in jobs.items()}
    failed = {failure.path: failure for failure in await fetch([job for of_task in jobs.values() for job in of_task])}
    reports = []
    for task, of_task in jobs.items():
        failures = tuple(failed[job.path] for job in of_task if job.path in failed)
        reports.append(
            FileKindReport(task, kind, present[task], len(of_task) - present[task] - len(failures), failures)
        )
    return reports


def _ratings(root: Path, hosts: Hosts, task: str) -> list[Download]:
    info, folder = task_info(task), ratings_folder(root, task)
    check = partial(_check_table, ("uid", *info.image_models))
    return [Download(address(hosts.ratings, info.folder, name), folder / name, check) for name in info.ratings_files]


def _check_table(columns: Collection[str], body: bytes) -> None:
    header = body.decode("utf-8", "replace").partition("\n")[0].strip().split("\t")
    if missing := [column for column in columns if column not in header]:
        raise ValueError(f"not a table of ratings, as it has no column {missing[0]}")


def _read_uids(root: Path, ratings: FileKindReport, uids: dict[str, list[str]]) -> FileKindReport:
    """Adds the rated uids of a task to `uids`; what is said of ratings that cannot be read says why."""
    if ratings.failed:
        return ratings
    task = ratings.part
    try:
        rated = list(read_ratings(root, task))
        # A uid becomes a file name, and must stay below its folder.
        if unsafe := [uid for uid in rated if not re.fullmatch(r"\w[\w.-]*", uid)]:
            raise VievalError(f"{unsafe[0]!r} is not the name of an image")
    except VievalError as error:
        folder = ratings_folder(root, task)
        failed = Failed(str(folder), folder, f"{error}; remove this folder to have it fetched anew")
        return FileKindReport(task, ratings.kind, failed=(failed,))
    uids[task] = rated
    return ratings


def _images(root: Path, hosts: Hosts, task: str, uids: Iterable[str]) -> list[Download]:
    info, museum = task_info(task), museum_folder(root, task)
    return [
        Download(address(hosts.museum, info.folder, kind, uid), museum / kind / uid, _check_image, _looks_like_image)
        for uid in uids
        for kind in info.museum_folders
    ]


def _check_image(body: bytes) -> None:
    """Decodes an image, so that a cut one is found now and not in the middle of a run."""
    try:
        with Image.open(io.BytesIO(body), formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise ValueError(f"an image of {image.width}x{image.height} pixels is too large")
            image.verify()
        with Image.open(io.BytesIO(body), formats=FORMATS) as image:
            image.load()
    except ValueError:
        raise
    except Exception as error:
        # Pillow's decoders raise many types on bad bytes.
        raise ValueError(f"not an image ({type(error).__name__})") from None


def _looks_like_image(path: Path) -> bool:
    try:
        with Image.open(path, formats=FORMATS):
            return True
    except Exception:
        return False
