"""Benchmarks of votes that `vieval prepare` fetches from the hub: their rows and images in the form
of `contest_rows`.

Images are written as they are stored, each once, under a name made from its content; so an
interrupted run is resumed by running it again. The rows come last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from tqdm import tqdm

from vieval_plugin.benchmarks.benchmark import Benchmark, Prepared, Preparing
from vieval_plugin.benchmarks.loading.folders import DataFolder, manual_download_lines
from vieval_plugin.images import format_of, is_there
from vieval_plugin.judges.contests import candidates_of
from vieval_plugin.judges.protocol import Sample
from vieval_plugin.media.files import write_whole
from vieval_plugin.meta_evaluation.statistics import Report
from vieval_plugin.readers.contest_rows import CONTESTS
from vieval_plugin.readers.hub import load_from_hub, one_line, unreachable
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import plural
from vieval_plugin.text.yaml_json import JsonObject

IMAGES = "images"
_BATCH = 16  # rows that are in memory at once
_FORMATS = ("JPEG", "PNG", "WEBP")

#: Writes an image as the hub stores it and gives its name below the part's folder; None where there
#: is none.
Keep: TypeAlias = Callable[[Any], str | None]


@dataclass(frozen=True)
class HubRows:
    """Rows of a part on the hub."""

    #: Data set of the hub.
    dataset: str
    #: Its config; empty for the only one.
    config: str
    split: str
    #: Function that makes one of our rows from the number and the cells of one of the hub.
    cells: Callable[[int, JsonObject, Keep], JsonObject]
    #: Function that makes contests of these, where a contest is several rows of the hub.
    combine: Callable[[Sequence[JsonObject]], Sequence[JsonObject]] = list


def hub_benchmark(
    folder: DataFolder, sources: Mapping[str, HubRows], report: Report, **fields: Any
) -> Benchmark:
    """The benchmark of a folder whose `prepare` fetches all that the folder lacks, and then checks
    it as `DataFolder.prepare` does.

    That `prepare` raises VievalError for an unknown part, where `datasets` is not installed, where
    a file cannot be written, and as `DataFolder.prepare` does. That the hub cannot be reached is in
    what it returns, in two lines where it does not answer at all.

    Args:
        folder: of the benchmark; each part has a folder of its own below it.
        sources: where the rows of each part come from.
        report: of the benchmark.
        fields: as for `DataFolder.benchmark`; source and licence are shown first.
    """

    def prepare(root: Path, preparing: Preparing) -> Prepared:
        parts = folder.requested(preparing)
        incomplete = [
            part
            for part in parts
            if not _is_there(folder, root, part, preparing.images)
        ]
        if incomplete and (silent := unreachable()):
            available = [part for part in parts if part not in incomplete]
            lines = [*manual_download_lines(folder.name, root, silent)]
            if available:
                checked = folder.prepare(root, replace(preparing, parts=available))
                lines = [*checked.lines, *lines]
            return Prepared(tuple(lines), False)
        lines = []
        for part in incomplete:
            try:
                part_folder = root / folder.name / part
                lines += _fetch(
                    part_folder,
                    sources[part],
                    preparing.images,
                )
            except _HubError as error:
                lines.append(
                    f"{folder.name}/{part}: {error}; run the command again to retry"
                )
        checked = folder.prepare(root, preparing)
        notice = f"{folder.name}: {fields['source']}; licence: {fields['licence']}"
        is_complete = checked.complete and not lines
        return Prepared((notice, *lines, *checked.lines), is_complete)

    return folder.benchmark(report, prepare=prepare, **fields)


class _HubError(Exception):
    """Reason that the hub gave no rows."""


def _is_there(folder: DataFolder, root: Path, part: str, images: bool) -> bool:
    """Return whether the hub has nothing to add: the frames of a video are made of the video."""
    try:
        loaded = folder.load(root, part)
    except VievalError:
        return (
            root / folder.name / part / CONTESTS
        ).exists()  # the check says what is wrong with it
    candidates = (
        candidate for contest in loaded for candidate in candidates_of(contest)
    )
    return bool(loaded) and (not images or all(map(_has_images, candidates)))


def _has_images(candidate: Sample) -> bool:
    is_video = "frame_0" in candidate.images
    return is_video or (
        "output" in candidate.images and all(map(is_there, candidate.images.values()))
    )


def _fetch(home: Path, source: HubRows, images: bool) -> list[str]:
    """Writes rows and, unless they are not asked for, images; a line where some images are none."""
    unreadable = []

    def keep(stored: Any) -> str | None:
        if stored is None or not images:
            return None
        body = stored.get("bytes") or Path(stored["path"]).read_bytes()
        form = format_of(body)
        if form not in _FORMATS:
            unreadable.append(number)
            return None
        digest = hashlib.sha256(body).hexdigest()
        name = f"{IMAGES}/{digest[:16]}.{form.lower()}"
        if not (home / name).is_file():
            write_whole(home / name, body, "folder")
        return name

    hub_rows = []
    rows = tqdm(
        _rows(source),
        desc=home.name,
        unit="row",
        disable=None,
    )
    for number, row in enumerate(rows):
        try:
            hub_rows.append(source.cells(number, row, keep))
        except (
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
            OSError,
            VievalError,
        ) as error:
            raise _HubError(
                f"row {number} of {source.dataset} is malformed ({one_line(error)})"
            ) from None
    _write_contests(home / CONTESTS, source, hub_rows)
    if not unreadable:
        return []
    return [
        f"{home}: cannot read {plural(len(unreadable), 'image')} (first: row {unreadable[0]})"
    ]


def _write_contests(file: Path, source: HubRows, hub_rows: Sequence[Any]) -> None:
    try:
        lines = [
            json.dumps(_identified(cells), ensure_ascii=False)
            for cells in source.combine(hub_rows)
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _HubError(
            f"cannot combine the rows of {source.dataset} ({one_line(error)})"
        ) from None
    write_whole(file, (f"{line}\n" for line in lines), "folder")


def _rows(source: HubRows) -> Iterator[JsonObject]:
    """Rows with encoded images, `{"bytes": ..., "path": ...}`."""
    try:
        hub_split = load_from_hub(source.dataset, source.config, source.split)
        for batch in hub_split.with_format("arrow").iter(
            batch_size=_BATCH
        ):  # which decodes nothing
            yield from batch.to_pylist()
    except VievalError:
        raise
    except Exception as error:  # of many types, its own and those of what it builds on
        config = f" ({source.config})" if source.config else ""
        raise _HubError(
            f"cannot download {source.dataset}{config} from the Hugging Face Hub "
            f"({one_line(error)})"
        ) from None


def _identified(cells: JsonObject) -> JsonObject:
    """Candidates with a uid made from their conditions and their file: the same output in
    several contests has one.
    """
    for candidate in cells["candidates"]:
        images = candidate.get("images") or {}
        file = candidate.get("video") or images.get("output")
        if file:
            content = [cells.get("texts"), cells.get("images"), file]
            digest = hashlib.sha256(
                json.dumps(content, sort_keys=True).encode()
            ).hexdigest()
            candidate["uid"] = digest[:16]
    return cells
