"""Frames of videos: as many as asked for, spread evenly over the duration.

A video is cut into `count` parts of equal length, and of each the frame that is on screen at its middle is taken. This
is the midpoint rule for the mean over all frames, which is what a score over frames stands for: no frame counts for
more time than another, and neither the very first nor the very last one (where fades and black frames are) is
favoured. Of n frames at a constant rate it takes those numbered floor(n (2i + 1) / (2 count)). A video with fewer
frames than `count` gives some of them more than once, so that every sample has `count` of them and each frame keeps
its share of the time.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from vieval_plugin.errors import VievalError, install_advice
from vieval_plugin.media.files import write_whole
from vieval_plugin.readers.rows import numbered
from vieval_plugin.text.untrusted import isfile, real

if TYPE_CHECKING:
    from av import VideoFrame

SUFFIXES = (".jpg", ".png")
"""How frames are written, and what else is taken where somebody extracted them by other means."""

_QUALITY = 95


@dataclass(frozen=True)
class FailedVideo:
    """A video without frames; `reason` is one line that does not repeat its name."""

    video: Path
    reason: str


class _UnreadableError(Exception):
    """Reason that a video gave no frames."""


def extract(video: Path, to: Path, count: int) -> list[Path]:
    """Writes `count` frames of a video as `0.jpg`, `1.jpg`, ... to a folder; returns their paths.

    Each file appears when it is whole. Frames are upright, in RGB, JPEG of quality 95 without chroma subsampling.
    Raises VievalError where the video is missing, no video, cut off or damaged, where a frame cannot be written, and
    without PyAV.
    """
    _need_av()
    try:
        return _extract(video, to, count)
    except _UnreadableError as error:
        raise VievalError(f"{video}: {error}; fetch it again") from None


def extract_all(
    pairs: Iterable[tuple[Path, Path]], count: int, workers: int = 4, *, progress: bool = True
) -> list[FailedVideo]:
    """Extract frames of many videos, as `extract` does, each with its folder, `workers` at once; returns those that
    gave no frames.

    A folder with all `count` frames is passed over, so an interrupted run is resumed by running it again. Raises
    VievalError without PyAV and where a frame cannot be written.
    """
    todo = [(video, to) for video, to in pairs if not complete(to, count)]
    if not todo:
        return []
    _need_av()
    failed: dict[int, FailedVideo] = {}
    pool = ThreadPoolExecutor(workers)
    try:
        with tqdm(total=len(todo), desc="frames", unit="video", disable=None if progress else True) as bar:
            jobs = {pool.submit(_extract, video, to, count): n for n, (video, to) in enumerate(todo)}
            for job in as_completed(jobs):
                try:
                    job.result()
                except _UnreadableError as error:
                    failed[jobs[job]] = FailedVideo(todo[jobs[job]][0], str(error))
                    bar.set_postfix(failed=len(failed))
                bar.update()
    finally:
        pool.shutdown(cancel_futures=True)
    return [failed[n] for n in sorted(failed)]


def complete(folder: Path, count: int) -> bool:
    """Return whether a folder has all its frames."""
    return all(isfile(path) and path.stat().st_size for path in numbered(folder, count, SUFFIXES))


def frame_numbers(times: Sequence[int | None], last: int | None, count: int) -> list[int]:
    """Frames to take: the numbers of those on screen at the middles of `count` equal parts.

    Args:
        times: when each frame appears, in any unit. Where one is unknown, or they do not increase, all frames are taken
            to last equally long.
        last: how long the last frame stays, in the same unit; as long as the others on average where it is not known.
        count: how many to take.

    >>> frame_numbers([0, 1, 2, 3, 4, 5, 6, 7], 1, 4)
    [1, 3, 5, 7]
    >>> frame_numbers([0, 1, 2, 20], 1, 3)  # the third frame is on screen most of the time
    [2, 2, 2]
    >>> frame_numbers([None, None], None, 4)
    [0, 0, 1, 1]
    """
    n = len(times)
    known = [time for time in times if time is not None]
    if len(known) < n or any(b <= a for a, b in pairwise(known)):
        known, last = list(range(n)), 1
    passed = known[-1] - known[0]
    duration, unit = (passed + last, 1) if last and last > 0 else (passed * n, n - 1) if n > 1 else (1, 1)
    starts = [(time - known[0]) * unit * 2 * count for time in known]  # all in whole numbers: no rounding at a border
    return [bisect_right(starts, duration * (2 * part + 1)) - 1 for part in range(count)]


def _extract(video: Path, to: Path, count: int) -> list[Path]:
    times: list[int | None] = []
    last = None
    with _decoding(video) as frames:
        for frame in frames:
            if frame.is_corrupt:
                raise _UnreadableError(f"cut off or damaged at frame {len(times)}")
            times.append(frame.pts)
            last = frame.duration
    if not times:
        raise _UnreadableError("holds no frame")
    numbers = frame_numbers(times, last, count)
    bodies: dict[int, bytes] = {}
    with _decoding(video) as frames:  # a second time, as pixels of all frames may not fit in memory
        for number, frame in enumerate(frames):
            if number in numbers:
                bodies[number] = _jpeg(frame)
            if number >= numbers[-1]:
                break
    paths = [to / f"{number}{SUFFIXES[0]}" for number in range(count)]
    for path, number in zip(paths, numbers, strict=True):
        write_whole(path, bodies[number], "folder")
    return paths


@contextmanager
def _decoding(video: Path) -> Iterator[Iterator[VideoFrame]]:
    """The frames of a video; whatever the decoder says against it is an `_UnreadableError`."""
    import av

    if not isfile(video):  # the decoder would open addresses and devices too
        raise _UnreadableError("no such file")
    try:
        with av.open(str(real(video))) as container:
            if not container.streams.video:
                raise _UnreadableError("holds no video")
            stream = container.streams.video[0]
            stream.codec_context.thread_count = 1  # several videos are decoded side by side instead
            yield container.decode(stream)
    except av.error.FFmpegError as error:
        raise _UnreadableError(f"cannot be decoded ({error.strerror})") from None


def _jpeg(frame: VideoFrame) -> bytes:
    import PIL.Image

    picture = PIL.Image.fromarray(frame.to_ndarray(format="rgb24"))
    if frame.rotation:
        picture = picture.rotate(frame.rotation, expand=True)
    body = io.BytesIO()
    picture.save(body, "JPEG", quality=_QUALITY, subsampling=0)
    return body.getvalue()


def _need_av() -> None:
    try:
        import av  # noqa: F401
    except ImportError:
        raise VievalError(f"reading videos needs PyAV; {install_advice('video')}") from None
