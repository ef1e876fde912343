"""The benchmarks of text-image alignment by name: their samples and what they lack.

Each reads a folder of its own below the data folder, laid out as docs/benchmarks.md says. Ratings are on the benchmark's
own scale: of aspect SC, and in T2I-Eval-Bench of O and its dimensions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vieval_plugin.data import (
    flickr8k,
    pickapic,
    rated_models,
    t2i_eval_bench,
    t2v_metrics_files,
    video_frames,
    winoground,
)
from vieval_plugin.data.alignment_files import missing_images, read_count
from vieval_plugin.data.download import write_whole
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Sample


@dataclass(frozen=True)
class Loader:
    """A benchmark: `tasks` maps each task to the number of samples it was published with, `advice` is how to get it.

    `read` is given the benchmark's own folder and a task.
    """

    name: str
    tasks: Mapping[str, int | None]
    read: Callable[[Path, str], list[Sample]]
    advice: str

    def samples(self, root: Path, task: str) -> list[Sample]:
        """The samples of a task; images are named and not opened.

        VievalError, in one line, for an unknown task and for a file that is absent or malformed.
        """
        if task not in self.tasks:
            raise VievalError(f"no {self.name} task {task!r}; known: {', '.join(self.tasks)}")
        return self.read(root / self.name, task)

    def missing(self, root: Path, task: str) -> list[str]:
        """What a run on a task would lack, a line each with what to do; empty when all is there."""
        try:
            samples = self.samples(root, task)
        except VievalError as error:
            return [str(error)]
        if not samples:
            return [f"{root / self.name}: no sample of task {task}; {self.advice}"]
        return missing_images(samples, self.advice)


_ALL = "all"
_GENAI, _T2VSCORE, _STANFORD = rated_models.GENAI, rated_models.T2VSCORE, rated_models.STANFORD
_WINOGROUND, _EQBEN = winoground.WINOGROUND, winoground.EQBEN
_TIFA, _SEETRUE = t2v_metrics_files.TIFA, t2v_metrics_files.SEETRUE
_T2I_EVAL = t2i_eval_bench.T2I_EVAL_BENCH
_LOADERS = (
    Loader(_WINOGROUND, {_ALL: 1600}, winoground.winoground, winoground.ADVICE[_WINOGROUND]),
    Loader(
        _EQBEN,
        {_ALL: 560},
        winoground.eqben_mini,
        f"{winoground.ADVICE[_EQBEN]} and run `vieval prepare {_EQBEN}`",
    ),
    Loader(_GENAI, {"527": 3162, "1600": 9600}, rated_models.genai_bench, rated_models.ADVICE[_GENAI]),
    Loader(_TIFA, {_ALL: 800}, t2v_metrics_files.tifa160, t2v_metrics_files.ADVICE[_TIFA]),
    Loader(
        _SEETRUE,
        {"drawbench": 1312, "editbench": 3827, "coco_t2i": 1791},
        t2v_metrics_files.seetrue,
        t2v_metrics_files.ADVICE[_SEETRUE],
    ),
    Loader(pickapic.PICKAPIC, {_ALL: 200}, pickapic.pickapic, pickapic.ADVICE),
    Loader(flickr8k.FLICKR8K, {_ALL: None}, flickr8k.flickr8k, flickr8k.ADVICE),
    Loader(_T2VSCORE, {_ALL: 2543}, rated_models.t2vscore, rated_models.ADVICE[_T2VSCORE]),
    Loader(_STANFORD, {_ALL: 360}, rated_models.stanfordt23d, rated_models.ADVICE[_STANFORD]),
    Loader(_T2I_EVAL, {t2i_eval_bench.TASK: 301}, t2i_eval_bench.t2i_eval_bench, t2i_eval_bench.ADVICE),
)

LOADERS: Mapping[str, Loader] = {loader.name: loader for loader in _LOADERS}
_COUNT_FILES = {_T2VSCORE: rated_models.FRAMES_FILE, _STANFORD: rated_models.VIEWS_FILE}


@dataclass(frozen=True)
class Report:
    """What came of a preparation: lines for a terminal, and whether every task is ready."""

    lines: tuple[str, ...]
    complete: bool


def prepare(
    benchmark: str,
    root: Path,
    *,
    tasks: Sequence[str] | None = None,
    count: int | None = None,
    workers: int = 4,
    progress: bool = True,
) -> Report:
    """Checks a benchmark's folder below `root`, and makes of what is there what its samples name.

    T2VScore's videos become frames (`workers` at once), EqBen-Mini's arrays images, and T2I-Eval-Bench's archive is
    unpacked; what is made already is kept.
    `tasks` are all by default. `count` is how many frames or views stand for a sample; it is written down beside them,
    and without it what was written down before holds, else 4 frames and 9 views.
    Raises VievalError for an unknown benchmark or task, for a `count` that the benchmark has no use for, and where
    something is to be made and cannot: without PyAV, or for want of room. What is absent or malformed is in the report.
    """
    if benchmark not in LOADERS:
        raise VievalError(f"no benchmark {benchmark!r} to prepare; known: {', '.join(LOADERS)}")
    loader, folder = LOADERS[benchmark], root / benchmark
    chosen = list(loader.tasks if tasks is None else dict.fromkeys(tasks))
    if unknown := [task for task in chosen if task not in loader.tasks]:
        raise VievalError(f"no {benchmark} task {unknown[0]!r}; known: {', '.join(loader.tasks)}")
    if count is not None:
        _write_count(folder, benchmark, count)
    lines = []
    if benchmark == _EQBEN and _readable(loader, root):
        lines += winoground.convert_arrays(folder)
    if benchmark == _T2I_EVAL and _readable(loader, root):
        lines += t2i_eval_bench.unpack_images(folder)
    if benchmark == _T2VSCORE and _readable(loader, root):
        lines += _frames(folder, workers, progress)
    complete = not lines
    for task in chosen:
        lacking = loader.missing(root, task)
        complete = complete and not lacking
        lines += [f"{benchmark}/{task}: {line}" for line in lacking]
        if not lacking:
            found, published = len(loader.samples(root, task)), loader.tasks[task]
            other = "" if published in (None, found) else f" (the published set has {published})"
            lines.append(f"{benchmark}/{task}: ready, {found} samples{other}")
    return Report(tuple(lines), complete)


def _readable(loader: Loader, root: Path) -> bool:
    try:
        loader.samples(root, next(iter(loader.tasks)))
    except VievalError:  # `missing` tells it
        return False
    return True


def _write_count(folder: Path, benchmark: str, count: int) -> None:
    if benchmark not in _COUNT_FILES:
        raise VievalError(f"{benchmark} has one image a sample; leave the count of frames or views out")
    if count < 1:
        raise VievalError(f"{count} frames or views cannot stand for a sample; ask for 1 or more")
    write_whole(folder / _COUNT_FILES[benchmark], json.dumps({"count": count}).encode())


def _frames(folder: Path, workers: int, progress: bool) -> list[str]:
    """Extracts T2VScore's frames; a line a reason for videos that gave none."""
    count = read_count(folder / rated_models.FRAMES_FILE, rated_models.FRAMES)
    videos = rated_models.videos(folder, count)
    failed = video_frames.extract_all(videos, count, workers, progress=progress)
    lines = []
    for reason in dict.fromkeys(failure.reason for failure in failed):
        alike = [failure.video for failure in failed if failure.reason == reason]
        lines.append(
            f"{_T2VSCORE}: {len(alike)} of {len(videos)} videos without frames, first {alike[0]} ({reason}); "
            "fetch them again and run the command again"
        )
    return lines
