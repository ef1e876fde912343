"""Frames of videos: as many as asked for, spread evenly over the duration.

A video is cut into `count` parts of equal length, and of each the frame that is on screen at its
middle is taken. This is the midpoint rule for the mean over all frames, which is what a score over
frames stands for: no frame counts for more time than another, and neither the very first nor the
very last one (where fades and black frames are) is favoured. Of n frames at a constant rate it
takes those numbered floor(n (2i + 1) / (2 count)). A video with fewer frames than `count` gives
some of them more than once, so that every sample has `count` of them and each frame keeps its share
of the time.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from vieval_plugin.media.files import write_whole
from vieval_plugin.readers.rows import numbered
from vieval_plugin.text.errors import VievalError, install_advice
from vieval_plugin.text.untrusted import isfile, real

if TYPE_CHECKING:
    from av import VideoFrame

#: How frames are written, and what else is taken where somebody extracted them by other means.
SUFFIXES = (".jpg", ".png")

_QUALITY = 95
_WORKERS = 4  # videos that are read at once


class _UnreadableError(Exception):
    """Reason that a video gave no frames."""


def extract_all(pairs: Iterable[tuple[Path, Path]], count: int) -> dict[Path, str]:
    """Write `count` frames of each video as `0.jpg`, `1.jpg`, ... to its folder; returns the
    reasons of those without.

    Frames are upright, in RGB, JPEG of quality 95 without chroma subsampling. A folder with all of
    them is passed over, so an interrupted run is resumed by running it again. Raises VievalError
    without PyAV and where a frame cannot be written.
    """
    todo = [(video, to) for video, to in pairs if not complete(to, count)]
    if not todo:
        return {}
    try:
        import av  # noqa: F401
    except ImportError:
        raise VievalError(
            f"reading videos requires PyAV; {install_advice('video')}"
        ) from None
    reasons = {}
    pool = ThreadPoolExecutor(_WORKERS)
    try:
        with tqdm(total=len(todo), desc="frames", unit="video", disable=None) as bar:
            jobs = {
                pool.submit(_extract, video, to, count): video for video, to in todo
            }
            for job in as_completed(jobs):
                try:
                    job.result()
                except _UnreadableError as error:
                    reasons[jobs[job]] = str(error)
                    bar.set_postfix(failed=len(reasons))
                bar.update()
    finally:
        pool.shutdown(cancel_futures=True)
    return {video: reasons[video] for video, _ in todo if video in reasons}


def failure_lines(
    reasons: Mapping[Path, str],
    total: int,
    advice: str,
) -> list[str]:
    """A line a reason for the videos, of so many, that gave no frames."""
    lines = []
    for reason in dict.fromkeys(reasons.values()):
        videos = [video for video, why in reasons.items() if why == reason]
        lines.append(
            f"cannot extract frames from {len(videos)} of {total} videos "
            f"(first: {videos[0]}, {reason}); {advice}"
        )
    return lines


def complete(folder: Path, count: int) -> bool:
    """Return whether a folder has all its frames."""
    return all(
        isfile(path) and path.stat().st_size
        for path in numbered(folder, count, SUFFIXES)
    )


def frame_numbers(
    times: Sequence[int | None],
    last: int | None,
    count: int,
) -> list[int]:
    """Frames to take: the numbers of those on screen at the middles of `count` equal parts.

    Args:
        times: when each frame appears, in any unit. Where one is unknown, or they do not increase,
            all frames are taken to last equally long.
        last: how long the last frame stays, in the same unit; as long as the others on average
            where it is not known.
        count: how many to take.

    >>> frame_numbers([0, 1, 2, 3, 4, 5, 6, 7], 1, 4)
    [1, 3, 5, 7]
    >>> frame_numbers([0, 1, 2, 20], 1, 3)  # the third frame is on screen most of the time
    [2, 2, 2]
    >>> frame_numbers([None, None], None, 4)
    [0, 0, 1, 1]
    """
    n = len(times)
    present = [time for time in times if time is not None]
    if len(present) < n or any(b <= a for a, b in pairwise(present)):
        present = list(range(n))
        last = 1
    passed = present[-1] - present[0]
    duration = 1
    unit = 1
    if last and last > 0:
        duration = passed + last
    elif n > 1:
        duration = passed * n
        unit = n - 1
    # whole numbers: no rounding at a border
    starts = [(time - present[0]) * unit * 2 * count for time in present]
    middles = [duration * (2 * part + 1) for part in range(count)]
    return [bisect_right(starts, middle) - 1 for middle in middles]


def _extract(
    video: Path,
    to: Path,
    count: int,
) -> None:
    import PIL.Image

    times: list[int | None] = []
    last = None
    with _decoding(video) as frames:
        for frame in frames:
            if frame.is_corrupt:
                raise _UnreadableError(f"cut off or damaged at frame {len(times)}")
            times.append(frame.pts)
            last = frame.duration
    if not times:
        raise _UnreadableError("contains no frames")
    numbers = frame_numbers(times, last, count)
    bodies = {}
    # a second time, as pixels of all frames may not fit in memory
    with _decoding(video) as frames:
        for number, frame in enumerate(frames):
            if number in numbers:
                picture = PIL.Image.fromarray(frame.to_ndarray(format="rgb24"))
                body = io.BytesIO()
                picture.rotate(frame.rotation, expand=True).save(
                    body,
                    "JPEG",
                    quality=_QUALITY,
                    subsampling=0,
                )
                bodies[number] = body.getvalue()
            if number >= numbers[-1]:
                break
    for index, number in enumerate(numbers):
        frame_file = to / f"{index}{SUFFIXES[0]}"
        write_whole(
            frame_file,
            bodies[number],
            "folder",
        )


@contextmanager
def _decoding(video: Path) -> Iterator[Iterator[VideoFrame]]:
    """The frames of a video; whatever the decoder says against it is an `_UnreadableError`."""
    import av

    if not isfile(video):  # the decoder would open addresses and devices too
        raise _UnreadableError("no such file")
    try:
        with av.open(str(real(video))) as container:
            if not container.streams.video:
                raise _UnreadableError("contains no video")
            stream = container.streams.video[0]
            # several videos are decoded side by side instead
            stream.codec_context.thread_count = 1
            yield container.decode(stream)
    except av.error.FFmpegError as error:
        raise _UnreadableError(f"cannot be decoded ({error.strerror})") from None
