"""Benchmarks of votes that `vieval prepare` fetches from the hub: their rows and images in the form of `contest_rows`.

Images are written as they are stored, each once, under a name made from its content; so an interrupted run is resumed
by running it again. The rows come last.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from tqdm import tqdm

from vieval_plugin.benchmarks.benchmark import Prepared, Preparing, known_part
from vieval_plugin.benchmarks.loading.folders import DataFolder, without_network
from vieval_plugin.errors import VievalError
from vieval_plugin.media.files import write_whole
from vieval_plugin.readers.contest_rows import CONTESTS
from vieval_plugin.readers.hub import load_from_hub, one_line, unreachable
from vieval_plugin.readers.rows import Row, read_lines
from vieval_plugin.text.plural import plural
from vieval_plugin.text.untrusted import isfile

IMAGES = "images"
_BATCH = 16  # rows that are in memory at once

Keep: TypeAlias = Callable[[Any], str | None]
"""Writes an image as the hub stores it and gives its name below the part's folder; None where there is none."""


@dataclass(frozen=True)
class HubRows:
    """Place of the rows of a part on the hub; `cells(number, row, keep)` makes one of ours from each.

    An empty `config` is the data set's only one. Where a contest is several rows of the hub, `combine` makes contests
    of what was made of them.
    """

    dataset: str
    config: str
    split: str
    cells: Callable[[int, Mapping[str, Any], Keep], dict[str, Any]]
    combine: Callable[[Sequence[dict[str, Any]]], Sequence[dict[str, Any]]] = list


def from_hub(
    folder: DataFolder, sources: Mapping[str, HubRows], source: str, licence: str
) -> Callable[[Path, Preparing], Prepared]:
    """Function that fetches all that a benchmark's folder lacks, and then checks it as `DataFolder.prepare` does.

    Args:
        folder: of the benchmark; each part has a folder of its own below it.
        sources: where the rows of each part come from.
        source, licence: of the benchmark, which are shown first.

    Returns:
        A benchmark's `prepare`. It raises VievalError for an unknown part, where `datasets` is not installed, where a
        file cannot be written, and as `DataFolder.prepare` does. That the hub cannot be reached is in what it returns,
        in two lines where it does not answer at all.
    """
    return partial(_prepare, folder, sources, f"{folder.name}: {source}; licence: {licence}")


def _prepare(
    folder: DataFolder, sources: Mapping[str, HubRows], notice: str, root: Path, preparing: Preparing
) -> Prepared:
    parts_wanted = folder.parts if preparing.parts is None else preparing.parts
    parts = dict.fromkeys(known_part(folder.name, folder.parts, part) for part in parts_wanted)
    incomplete = [part for part in parts if not _is_there(folder, root, part, preparing.images)]
    if incomplete and (silent := unreachable()):
        available = [part for part in parts if part not in incomplete]
        check_lines = folder.prepare(root, replace(preparing, parts=available)).lines if available else ()
        return Prepared((*check_lines, *without_network(folder.name, root, silent)), False)
    lines = []
    for part in incomplete:
        try:
            lines += _fetch(root / folder.name / part, sources[part], preparing)
        except _HubError as error:
            lines.append(f"{folder.name}/{part}: {error}; run the command again to retry")
    checked = folder.prepare(root, preparing)
    return Prepared((notice, *lines, *checked.lines), checked.complete and not lines)


class _HubError(Exception):
    """Reason that the hub gave no rows."""


def _is_there(folder: DataFolder, root: Path, part: str, images: bool) -> bool:
    """Return whether the hub has nothing to add: the frames of a video are made of the video."""
    home = root / folder.name / part
    try:
        loaded = folder.load(root, part)
    except VievalError:
        return (home / CONTESTS).exists()  # the check says what is wrong with it
    if not images:
        return bool(loaded)
    rows = read_lines(home / CONTESTS, "") if (home / CONTESTS).exists() else []
    return bool(rows) and all(isfile(home / str(name)) for row in rows for name in _needed(row))


def _needed(row: Row) -> Iterator[Any]:
    """The files of a row, its videos excepted; an output of which none is named is one that is not there."""
    yield from (row.cells.get("images") or {}).values()
    for candidate in row.cells.get("candidates") or []:
        if not candidate.get("video"):
            yield from {"output": None, **(candidate.get("images") or {})}.values()


def _fetch(home: Path, source: HubRows, preparing: Preparing) -> list[str]:
    """Writes images and rows; a line where some images are none."""
    unreadable = []

    def keep(stored: Any) -> str | None:
        if stored is None or not preparing.images:
            return None
        body = stored["bytes"] if stored.get("bytes") else Path(stored["path"]).read_bytes()
        if not (suffix := _suffix(body)):
            unreadable.append(number)
            return None
        name = f"{IMAGES}/{hashlib.sha256(body).hexdigest()[:16]}.{suffix}"
        if not (home / name).is_file():
            write_whole(home / name, body, "folder")
        return name

    hub_rows = []
    rows_with_progress = tqdm(_rows(source), desc=home.name, unit="row", disable=None if preparing.progress else True)
    for number, row in enumerate(rows_with_progress):
        try:
            hub_rows.append(source.cells(number, row, keep))
        except (AttributeError, KeyError, TypeError, ValueError, OSError, VievalError) as error:
            raise _HubError(f"row {number} of {source.dataset} is not as expected ({one_line(error)})") from None
    try:
        lines = [json.dumps(_identified(cells), ensure_ascii=False) for cells in source.combine(hub_rows)]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _HubError(f"rows of {source.dataset} do not make contests ({one_line(error)})") from None
    write_whole(home / CONTESTS, (f"{line}\n" for line in lines), "folder")
    return (
        [f"{home}: {plural(len(unreadable), 'image')} cannot be read, first in row {unreadable[0]}"]
        if unreadable
        else []
    )


def _rows(source: HubRows) -> Iterator[dict[str, Any]]:
    """Rows with images as they are stored, `{"bytes": ..., "path": ...}`."""
    try:
        hub_split = load_from_hub(source.dataset, source.config, source.split)
        for batch in hub_split.with_format("arrow").iter(batch_size=_BATCH):  # which decodes nothing
            yield from batch.to_pylist()
    except VievalError:
        raise
    except Exception as error:  # of many types, its own and those of what it builds on
        named = f"{source.dataset} ({source.config})" if source.config else source.dataset
        raise _HubError(f"{named} cannot be had from the hub ({one_line(error)})") from None


def _identified(cells: dict[str, Any]) -> dict[str, Any]:
    """Candidates with a uid made from their conditions and their file: the same output in several contests has one."""
    for candidate in cells["candidates"]:
        file = candidate.get("video") or (candidate.get("images") or {}).get("output")
        if file:
            content_key = json.dumps([cells.get("texts"), cells.get("images"), file], sort_keys=True)
            candidate["uid"] = hashlib.sha256(content_key.encode()).hexdigest()[:16]
    return cells


def _suffix(body: bytes) -> str:
    """Suffix of a file of these bytes; empty where they are no image."""
    import PIL.Image

    try:
        with PIL.Image.open(io.BytesIO(body), formats=("JPEG", "PNG", "WEBP")) as image:
            return str(image.format).lower()
    except Exception:  # Pillow's decoders raise many types on bad bytes
        return ""
