"""Fills a data folder with ImagenHub: ratings, conditions and images from the places where their authors put them.

The result is laid out as `vieval_plugin.data.imagenhub` reads it, which is the museum's own layout. Everything is
resumable: what is there is kept, and what cannot be had is told in a report and does not stop the rest.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import tempfile
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from PIL import Image

from vieval_plugin.data import imagenhub
from vieval_plugin.data.download import Download, Failed, fetch_all, write_whole
from vieval_plugin.errors import VievalError

PAGE, MAX_ROWS = 100, 10_000  # rows; the dataset viewer gives no larger page
MAX_PIXELS = 32 * 2**20
FORMATS = ("JPEG", "PNG", "WEBP")
LOOKUP = "dataset_lookup.json"

Fetch = Callable[[Sequence[Download]], Awaitable[list[Failed]]]


@dataclass(frozen=True)
class Hosts:
    """Base URLs of the three sources; a mirror with the same paths below them serves as well.

    The ratings are pinned to a commit, as they have moved within their repository before.
    """

    ratings: str = (
        "https://raw.githubusercontent.com/TIGER-AI-Lab/VIEScore/a35f13fa20e5930a14a1901e6659a987d43bf69b"
        "/paper_implementation/_human_annotations/ImagenHub_human_eval_results"
    )
    hub: str = "https://datasets-server.huggingface.co"
    museum: str = "https://chromaica.github.io/Museum"


PUBLIC = Hosts()


@dataclass(frozen=True)
class HubSplit:
    """Where a task's conditions are on the hub, what the museum calls its rows, and which text columns are kept."""

    dataset: str
    split: str
    uid: str
    columns: tuple[str, ...]
    optional: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"dataset {self.dataset}, split {self.split}"


_PLAIN, _EDIT = "sample_{uid}.jpg", "sample_{img_id}_{turn_index}.jpg"
_CONTROL = "sample_{img_id}_control_{control_type}.jpg"
_CAPTIONS = ("source_global_caption", "target_global_caption")
_CONCEPTS = ("prompt", "concept1", "concept2")

HUB: dict[str, HubSplit] = {
    "tig": HubSplit("ImagenHub/Text_to_Image", "eval", _PLAIN, ("prompt",)),
    "mie": HubSplit("ImagenHub/Mask_Guided_Image_Editing", "filtered", _EDIT, ("instruction",), _CAPTIONS),
    "tie": HubSplit("ImagenHub/Text_Guided_Image_Editing", "filtered", _EDIT, ("instruction",), _CAPTIONS),
    "sdig": HubSplit("ImagenHub/Subject_Driven_Image_Generation", "eval", _PLAIN, ("prompt", "subject")),
    "sdie": HubSplit("ImagenHub/Subject_Driven_Image_Editing", "eval", _PLAIN, ("subject",), ("prompt",)),
    "mcic": HubSplit("ImagenHub/Multi_Subject_Driven_Image_Generation", "train", _PLAIN, _CONCEPTS),
    "cig": HubSplit("ImagenHub/Control_Guided_Image_Generation", "eval", _CONTROL, ("text", "control_type")),
}


@dataclass(frozen=True)
class Part:
    """What came of one kind of file (`ratings`, `conditions`, `images`) of one task.

    `there` files were there before, `fetched` files are new; `note` tells when another source than usual had to serve.
    """

    task: str
    kind: str
    there: int = 0
    fetched: int = 0
    failed: tuple[Failed, ...] = ()
    note: str = ""

    @property
    def total(self) -> int:
        """Files there should be."""
        return self.there + self.fetched + len(self.failed)


@dataclass(frozen=True)
class Report:
    """What came of a preparation. A task whose ratings cannot be had has no other part: they say what else to fetch."""

    root: Path
    parts: tuple[Part, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not any(part.failed for part in self.parts)


def prepare(
    root: Path,
    *,
    hosts: Hosts = PUBLIC,
    tasks: Sequence[str] | None = None,
    images: bool = True,
    concurrency: int = 8,
    retries: int = 4,
    timeout: float = 60,
    progress: bool = True,
) -> Report:
    """Fetches what the data folder `root` lacks of ImagenHub.

    `tasks` are codes such as `tie`, all seven by default. Without `images`, only ratings and conditions are fetched:
    enough for recorded verdicts. `concurrency`, `retries`, `timeout` (seconds) and `progress` are as in `fetch_all`.
    Raises VievalError for an unknown task, without aiohttp, and where a file cannot be written; whatever else is
    missing is in the report.
    """
    chosen = list(imagenhub.TASKS if tasks is None else dict.fromkeys(tasks))
    for task in chosen:
        imagenhub.task_info(task)
    fetch = partial(fetch_all, concurrency=concurrency, retries=retries, timeout=timeout)
    loud = partial(fetch, progress=progress, label="images") if images else None
    return asyncio.run(_prepare(root, hosts, chosen, partial(fetch, progress=False), loud))


async def _prepare(root: Path, hosts: Hosts, tasks: Sequence[str], fetch: Fetch, fetch_images: Fetch | None) -> Report:
    ratings = await _fetch_parts("ratings", {task: _ratings(root, hosts, task) for task in tasks}, fetch)
    uids: dict[str, list[str]] = {}
    parts = [_read_uids(root, part, uids) for part in ratings]
    parts += await asyncio.gather(*(_conditions(root, hosts, task, uids[task], fetch) for task in uids))
    if fetch_images:
        jobs = {task: _images(root, hosts, task, uids[task]) for task in uids}
        parts += await _fetch_parts("images", jobs, fetch_images)
    return Report(root, tuple(sorted(parts, key=lambda part: tasks.index(part.task))))


def summary_lines(report: Report) -> list[str]:
    """The report for a terminal: a line a part or, where files are missing, a line a reason."""
    lines = []
    for part in report.parts:
        name = f"imagenhub/{part.task}"
        if part.note:
            lines.append(f"{name}: {part.note}")
        for reason in dict.fromkeys(failed.reason for failed in part.failed):
            alike = [failed for failed in part.failed if failed.reason == reason]
            missing = f"{len(alike)} of {part.total} {part.kind} missing, first: {alike[0].url} ({reason})"
            lines.append(f"{name}: {missing}; run the command again to retry")
        if not part.failed:
            files = "1 file" if part.total == 1 else f"{part.total} files"
            lines.append(f"{name}: {part.kind} complete, {files} ({part.fetched} fetched now)")
    return lines


async def _fetch_parts(kind: str, jobs: Mapping[str, Sequence[Download]], fetch: Fetch) -> list[Part]:
    """Fetches the files of several tasks in one go, so that they share one limit and one progress bar."""
    there = {task: sum(job.is_there() for job in of_task) for task, of_task in jobs.items()}
    failed = {failure.path: failure for failure in await fetch([job for of_task in jobs.values() for job in of_task])}
    parts = []
    for task, of_task in jobs.items():
        failures = tuple(failed[job.path] for job in of_task if job.path in failed)
        parts.append(Part(task, kind, there[task], len(of_task) - there[task] - len(failures), failures))
    return parts


def _ratings(root: Path, hosts: Hosts, task: str) -> list[Download]:
    info = imagenhub.TASKS[task]
    folder = root / "imagenhub" / "human_ratings" / info.folder
    names = [f"{info.ratings_stem}_rater{number}.tsv" for number in (1, 2, 3)]
    check = partial(_check_table, ("uid", *info.image_models))
    return [Download(_url(hosts.ratings, info.folder, name), folder / name, check) for name in names]


def _check_table(columns: Collection[str], body: bytes) -> None:
    header = body.decode("utf-8", "replace").partition("\n")[0].strip().split("\t")
    if absent := [column for column in columns if column not in header]:
        raise ValueError(f"not a table of ratings, as it has no column {absent[0]}")


def _read_uids(root: Path, ratings: Part, uids: dict[str, list[str]]) -> Part:
    """Adds the rated uids of a task to `uids`; the part of ratings that cannot be read says why."""
    if ratings.failed:
        return ratings
    task = ratings.task
    try:
        rated = list(imagenhub.read_ratings(root, task))
        # A uid becomes a file name, and must stay below its folder.
        if unsafe := [uid for uid in rated if not re.fullmatch(r"\w[\w.-]*", uid)]:
            raise VievalError(f"{unsafe[0]!r} is not the name of an image")
    except VievalError as error:
        folder = root / "imagenhub" / "human_ratings" / imagenhub.TASKS[task].folder
        failed = Failed(str(folder), folder, f"{error}; remove this folder to have it fetched anew")
        return Part(task, "ratings", failed=(failed,))
    uids[task] = rated
    return ratings


async def _conditions(root: Path, hosts: Hosts, task: str, uids: Collection[str], fetch: Fetch) -> Part:
    """The texts of a task from the hub or, where the hub fails, from the museum.

    Rows of the hub that lack a rated uid are an error all the same: they would be those of another version.
    """
    folder, split = imagenhub.TASKS[task].folder, HUB[task]
    path = root / "imagenhub" / "museum" / folder / LOOKUP
    check = partial(_check_lookup, uids, split.columns)
    museum = Download(_url(hosts.museum, folder, LOOKUP), path, check, accept=partial(_passes, check))
    if museum.is_there():
        return Part(task, "conditions", there=1)
    try:
        rows = await _hub_rows(hosts.hub, split, fetch)
        lookup = _lookup(split, rows)
    except ValueError as error:
        if failed := await fetch([museum]):
            reason = f"{failed[0].reason}; before it the hub failed: {error}"
            return Part(task, "conditions", failed=(Failed(museum.url, path, reason),))
        return Part(task, "conditions", fetched=1, note=f"conditions are the museum's, as the hub failed: {error}")
    body = json.dumps(lookup, indent=4, ensure_ascii=False).encode()
    try:
        check(body)
    except ValueError as error:
        return Part(task, "conditions", failed=(Failed(_rows_url(hosts.hub, split, 0), path, f"{split}: {error}"),))
    write_whole(path, body)
    return Part(task, "conditions", fetched=1)


def _check_lookup(uids: Collection[str], columns: Collection[str], body: bytes) -> None:
    lookup = _json_object(body)
    if absent := [uid for uid in uids if uid not in lookup]:
        raise ValueError(f"no row for {len(absent)} of {len(uids)} rated uids, first {absent[0]}")
    for uid in uids:
        for column in columns:
            if not isinstance(lookup[uid], dict) or not isinstance(lookup[uid].get(column), str):
                raise ValueError(f"no text in {column} of {uid}")


def _passes(check: Callable[[bytes], None], path: Path) -> bool:
    try:
        check(path.read_bytes())
    except ValueError:
        return False
    return True


async def _hub_rows(hub: str, split: HubSplit, fetch: Fetch) -> list[dict[str, Any]]:
    """All rows of a split; ValueError says how the hub failed."""
    with tempfile.TemporaryDirectory(prefix="vieval-") as folder:

        async def pages(offsets: Iterable[int]) -> list[dict[str, Any]]:
            jobs = [Download(_rows_url(hub, split, at), Path(folder) / f"{at}.json", _check_page) for at in offsets]
            if failed := await fetch(jobs):
                raise ValueError(f"{failed[0].url}: {failed[0].reason}")
            return [_json_object(job.path.read_bytes()) for job in jobs]

        first = await pages([0])
        rest = await pages(range(PAGE, first[0]["num_rows_total"], PAGE))
    return [entry["row"] for page in first + rest for entry in page["rows"]]


def _rows_url(hub: str, split: HubSplit, offset: int) -> str:
    asked = {"dataset": split.dataset, "config": "default", "split": split.split, "offset": offset, "length": PAGE}
    return f"{hub.rstrip('/')}/rows?{urlencode(asked, safe='/')}"


def _check_page(body: bytes) -> None:
    page = _json_object(body)
    rows, total = page.get("rows"), page.get("num_rows_total")
    if not isinstance(rows, list) or not all(isinstance(r, dict) and isinstance(r.get("row"), dict) for r in rows):
        raise ValueError("not a page of rows")
    if not isinstance(total, int) or not 0 <= total <= MAX_ROWS:
        raise ValueError(f"not a page of rows, as num_rows_total is {total!r}")


def _lookup(split: HubSplit, rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Rows as the museum lists them, by uid; ValueError where a column is missing."""
    lookup = {}
    for row in rows:
        try:
            uid = split.uid.format_map(row)
        except KeyError as error:
            raise ValueError(f"{split}: no column {error}") from None
        texts = {column: row[column] for column in split.columns + split.optional if isinstance(row.get(column), str)}
        if absent := [column for column in split.columns if column not in texts]:
            raise ValueError(f"{split}: no text in {absent[0]} of {uid}")
        lookup[uid] = texts
    return lookup


def _images(root: Path, hosts: Hosts, task: str, uids: Iterable[str]) -> list[Download]:
    info = imagenhub.TASKS[task]
    museum = root / "imagenhub" / "museum" / info.folder
    kinds = [*(folder for _, folder in info.images), *info.image_models]
    return [
        Download(_url(hosts.museum, info.folder, kind, uid), museum / kind / uid, _check_image, _looks_like_image)
        for uid in uids
        for kind in kinds
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


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _url(base: str, *names: str) -> str:
    return "/".join((base.rstrip("/"), *(quote(name) for name in names)))
