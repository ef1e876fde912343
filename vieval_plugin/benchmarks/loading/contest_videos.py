"""Videos of contests: fetched from where the rows say they are, and cut into the frames by which they are judged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.readers.contest_rows import CONTESTS, frames_folder
from vieval_plugin.readers.download import Download, fetch_all
from vieval_plugin.readers.rows import Row, read_lines
from vieval_plugin.readers.video_frames import complete, extract_all


def make_frames(home: Path, count: int, preparing: Preparing) -> list[str]:
    """Fetches the videos of a part whose frames are not there, and makes these; a line a reason for those that failed.

    Args:
        home: the folder of the part; a candidate of its rows has the file `video` and, where it can be had, its `url`.
        count: how many frames stand for a video.
        preparing: what was asked for.

    Raises:
        VievalError: rows that cannot be read, a package that is not installed, a file that cannot be written.
    """
    urls = _videos(read_lines(home / CONTESTS, "correct the file"))
    frameless = [video for video in urls if not complete(frames_folder(home, video, count), count)]
    jobs = [Download(urls[video], home / video, _check) for video in frameless if urls[video]]
    jobs = [job for job in jobs if not job.is_there()]
    reasons = {}
    if jobs:
        fetching = fetch_all(jobs, concurrency=preparing.workers or 8, progress=preparing.progress, label="videos")
        reasons = {failed_video.path: failed_video.reason for failed_video in asyncio.run(fetching)}
    pairs = [(home / video, frames_folder(home, video, count)) for video in frameless if home / video not in reasons]
    cut = extract_all(pairs, count, preparing.workers or 4, progress=preparing.progress)
    return _failure_lines({**reasons, **{failed.video: failed.reason for failed in cut}}, len(urls))


def _videos(rows: Iterable[Row]) -> dict[str, str]:
    """The address of each video, empty where none is given."""
    urls: dict[str, str] = {}
    for row in rows:
        for number, cells in enumerate(row.cells.get("candidates") or [], start=1):
            candidate = Row(f"{row.where}, candidate {number}", cells if isinstance(cells, dict) else {})
            if candidate.cells.get("video"):
                urls[candidate.file("video")] = str(candidate.cells.get("url") or "")
    return urls


def _failure_lines(reasons: Mapping[Path, str], total: int) -> list[str]:
    lines = []
    for reason in dict.fromkeys(reasons.values()):
        alike = [video for video, why in reasons.items() if why == reason]
        lines.append(
            f"{len(alike)} of {total} videos without frames, first {alike[0]} ({reason}); run the command again to retry"
        )
    return lines


def _check(body: bytes) -> None:
    if body[:1] in (b"", b"<", b"{"):
        raise ValueError("not a video")
