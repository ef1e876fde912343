"""The texts of ImagenHub's instructions: from the hub's rows or, where the hub fails, from the
museum.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote, urlencode

from vieval_plugin.benchmarks.imagenhub.samples import LOOKUP
from vieval_plugin.benchmarks.imagenhub.tasks import HubSplit, museum_folder, task_info
from vieval_plugin.media.files import write_whole
from vieval_plugin.readers.download import Download, Failed
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.yaml_json import JsonObject

PAGE, MAX_ROWS = 100, 10_000  # rows; the dataset viewer gives no larger page


Fetch: TypeAlias = Callable[[Sequence[Download]], Awaitable[list[Failed]]]


@dataclass(frozen=True)
class Hosts:
    """Base URLs of the three sources; a mirror with the same paths below them serves as well."""

    #: Human ratings, at one commit, as they have moved within their repository before.
    ratings: str = "https://raw.githubusercontent.com/TIGER-AI-Lab/VIEScore/a35f13fa20e5930a14a1901e6659a987d43bf69b/paper_implementation/_human_annotations/ImagenHub_human_eval_results"
    #: The hub's rows API.
    hub: str = "https://datasets-server.huggingface.co"
    #: Images.
    museum: str = "https://chromaica.github.io/Museum"


@dataclass(frozen=True)
class FileKindReport:
    """Outcome of one kind of file of one part of the benchmark."""

    part: str
    #: `ratings`, `conditions` or `images`.
    kind: str
    #: Number of files that were there before.
    present: int = 0
    #: Number of files that are new.
    downloaded_count: int = 0
    #: Files that could not be had.
    failed: tuple[Failed, ...] = ()
    #: Note where another source than usual had to serve.
    note: str = ""

    @property
    def total(self) -> int:
        """Files there should be."""
        return self.present + self.downloaded_count + len(self.failed)


def address(base: str, *names: str) -> str:
    """The address of a file below a base."""
    parts = (quote(name) for name in names)
    return "/".join((base.rstrip("/"), *parts))


async def fetch_conditions(
    root: Path, hosts: Hosts, task: str, uids: Collection[str], fetch: Fetch
) -> FileKindReport:
    """The texts of a task's rated uids in the data folder `root`.

    Rows of the hub that lack a rated uid are an error all the same: they would be those of another
    version.
    """
    split = task_info(task).hub
    path = museum_folder(root, task) / LOOKUP
    check = partial(_check_lookup, uids, split.columns)
    url = address(
        hosts.museum,
        path.parent.name,
        LOOKUP,
    )
    museum = Download(
        url,
        path,
        check,
        accept=partial(_passes, check),
    )
    report = FileKindReport(task, "conditions")
    if museum.is_there():
        return replace(report, present=1)
    try:
        rows = await _hub_rows(hosts.hub, split, fetch)
        lookup = _lookup(split, rows)
    except ValueError as error:
        failed = await fetch([museum])
        if failed:
            reason = f"{failed[0].reason}; the Hugging Face Hub also failed: {error}"
            return replace(report, failed=(Failed(museum.url, path, reason),))
        note = f"conditions come from the museum, because the Hugging Face Hub failed: {error}"
        return replace(report, downloaded_count=1, note=note)
    body = json.dumps(lookup, indent=4, ensure_ascii=False).encode()
    try:
        check(body)
    except ValueError as error:
        rows_address = rows_url(
            hosts.hub,
            split,
            0,
        )
        failure = Failed(
            rows_address,
            path,
            f"{split}: {error}",
        )
        return replace(report, failed=(failure,))
    write_whole(path, body, "folder")
    return replace(report, downloaded_count=1)


def _check_lookup(uids: Collection[str], columns: Collection[str], body: bytes) -> None:
    lookup = _json_object(body)
    missing = [uid for uid in uids if uid not in lookup]
    if missing:
        raise ValueError(
            f"no row for {len(missing)} of {len(uids)} rated uids (first: {missing[0]})"
        )
    for uid, column in product(uids, columns):
        row = lookup[uid]
        if not isinstance(row, dict) or not isinstance(row.get(column), str):
            raise ValueError(f"{column} of {uid} must be a string")


def _passes(check: Callable[[bytes], None], path: Path) -> bool:
    try:
        check(path.read_bytes())
    except ValueError:
        return False
    return True


async def _hub_rows(hub: str, split: HubSplit, fetch: Fetch) -> list[JsonObject]:
    """Rows of a split; ValueError says how the hub failed."""
    with tempfile.TemporaryDirectory(prefix="vieval-") as folder:

        async def pages(offsets: Iterable[int]) -> list[JsonObject]:
            jobs = [
                Download(
                    rows_url(hub, split, at),
                    Path(folder) / f"{at}.json",
                    _check_page,
                )
                for at in offsets
            ]
            failed = await fetch(jobs)
            if failed:
                failed_url = redacted(failed[0].url)
                raise ValueError(f"{failed_url}: {failed[0].reason}")
            return [_json_object(job.path.read_bytes()) for job in jobs]

        first = await pages([0])
        later_pages = await pages(range(PAGE, first[0]["num_rows_total"], PAGE))
    all_pages = first + later_pages
    return [entry["row"] for page in all_pages for entry in page["rows"]]


def rows_url(hub: str, split: HubSplit, offset: int) -> str:
    """The address of a page of a split's rows."""
    query = {
        "dataset": split.dataset,
        "config": "default",
        "split": split.split,
        "offset": offset,
        "length": PAGE,
    }
    return f"{hub.rstrip('/')}/rows?{urlencode(query, safe='/')}"


def _check_page(body: bytes) -> None:
    page = _json_object(body)
    rows = page.get("rows")
    total = page.get("num_rows_total")
    if not isinstance(rows, list) or not all(
        isinstance(r, dict) and isinstance(r.get("row"), dict) for r in rows
    ):
        raise ValueError("not a page of rows")
    if not isinstance(total, int) or not 0 <= total <= MAX_ROWS:
        raise ValueError(
            f"num_rows_total must be between 0 and {MAX_ROWS}, got {total!r}"
        )


def _lookup(split: HubSplit, rows: Iterable[JsonObject]) -> dict[str, dict[str, str]]:
    """Rows as the museum lists them, by uid; ValueError where a column is missing."""
    lookup = {}
    for row in rows:
        try:
            uid = split.uid.format_map(row)
        except KeyError as error:
            raise ValueError(f"{split}: no column {error}") from None
        texts = {
            column: row[column]
            for column in split.columns + split.optional
            if isinstance(row.get(column), str)
        }
        missing = [column for column in split.columns if column not in texts]
        if missing:
            raise ValueError(f"{split}: {missing[0]} of {uid} must be a string")
        lookup[uid] = texts
    return lookup


def _json_object(body: bytes) -> JsonObject:
    with suppress(ValueError, RecursionError):
        value = json.loads(body)
        if isinstance(value, dict):
            return value
    raise ValueError("not a JSON object")
