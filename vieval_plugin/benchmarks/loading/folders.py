"""A benchmark in a folder of its own that a user fills by hand: what is there, what is missing,
what is to be made.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vieval_plugin.benchmarks.benchmark import (
    Benchmark,
    Load,
    Parts,
    Prepared,
    Preparing,
    known_part,
)
from vieval_plugin.images import files_of
from vieval_plugin.judges.contests import Contest, Judged, candidates_of
from vieval_plugin.media.files import write_whole
from vieval_plugin.meta_evaluation.statistics import Report
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import isfile
from vieval_plugin.text.wording import plural


def manual_download_lines(name: str, root: Path, why: str) -> tuple[str, str]:
    """Lines for a folder that nothing can be fetched for: why, and what to fetch elsewhere and
    where to put it.

    >>> print(*manual_download_lines("mine", Path("/data"), "hub.example does not answer"), sep="\\n")
    mine: cannot be downloaded on this machine: hub.example does not answer
    on a machine with network access, run `vieval prepare mine --root FOLDER`, then copy FOLDER/mine to /data/mine
    """
    return (
        f"{name}: cannot be downloaded on this machine: {why}",
        (
            f"on a machine with network access, run `vieval prepare {name} --root FOLDER`, then "
            f"copy FOLDER/{name} to {root / name}"
        ),
    )


@dataclass(frozen=True)
class DataFolder:
    """The folder `name` below the data folder; its methods are what a `Benchmark` asks for."""

    #: Name of the folder and of the benchmark.
    name: str
    #: Parts of the benchmark.
    parts: Parts
    #: Function of the folder and a part that gives samples or contests.
    read: Load
    #: Advice on how to get what is missing.
    advice: str
    #: Function that makes of what is there what the samples name, keeps what is made already, and
    #: gives a line for each thing that cannot be made; it is given the parts that can be read.
    make: Callable[[Path, Preparing], list[str]] | None = None
    #: File that keeps how many frames or views stand for a sample; empty where it is one image.
    count_file: str = ""
    #: Path of the folder, if it is not below the data folder.
    path: Path | None = None

    def _path(self, root: Path) -> Path:
        return self.path or root / self.name

    def benchmark(self, report: Report, kind: str = "", **fields: Any) -> Benchmark:
        """The benchmark whose data this folder holds; the folder is checked unless a `prepare`
        fetches it too.

        The other arguments are fields of `Benchmark`, and the kind of all samples if they have one.
        """
        kinds = dict.fromkeys(self.parts if kind else (), kind)
        fields = {
            "prepare": self.prepare,
            "trainable": False,
            "kinds": kinds,
            **fields,
        }
        return Benchmark(
            self.name,
            self.parts,
            self.load,
            self.missing,
            report,
            **fields,
        )

    def requested(self, preparing: Preparing) -> list[str]:
        """The parts that are to be prepared; VievalError for an unknown one."""
        return [
            known_part(self.name, self.parts, part)
            for part in dict.fromkeys(preparing.parts or self.parts)
        ]

    def load(self, root: Path, part: str) -> Sequence[Judged]:
        """The samples or contests of a part; images are named and not opened.

        Raises:
            VievalError: in one line, an unknown part, and a file that is absent or malformed.
        """
        return self.read(
            self._path(root),
            known_part(self.name, self.parts, part),
        )

    def missing(self, root: Path, part: str) -> list[str]:
        """Files that a live run on a part would lack, one line each with what to do;
        empty if nothing is missing.
        """
        return self._missing_lines(root, part, images=True)

    def _missing_lines(self, root: Path, part: str, images: bool) -> list[str]:
        try:
            samples = self.load(root, part)
        except VievalError as error:
            return [str(error)]
        if not samples:
            return [f"{self._path(root)}: no samples of part {part}; {self.advice}"]
        return missing_images(samples, self.advice) if images else []

    def prepare(self, root: Path, preparing: Preparing) -> Prepared:
        """Checks the folder, and makes what is to be made of what is there.

        A count of frames or views is written down beside them; without one, what was written down
        before holds. Without images, nothing is made and no image is looked for.

        Raises:
            VievalError: an unknown part, a count that the benchmark has no use for, and where
                something is to be made and cannot, for want of a package or of room. What is absent
                or malformed is in what is returned.
        """
        parts = self.requested(preparing)
        if preparing.count is not None:
            self._keep_count(root, preparing.count)
        readable = [
            part for part in parts if not self._missing_lines(root, part, images=False)
        ]
        lines = []
        if self.make and preparing.images and readable:
            lines = self.make(self._path(root), replace(preparing, parts=readable))
        complete = not lines
        for part in parts:
            missing = self._missing_lines(root, part, preparing.images)
            complete = complete and not missing
            part_lines = missing or [self._ready_line(root, part)]
            lines += [f"{self.name}/{part}: {line}" for line in part_lines]
        return Prepared(tuple(lines), complete)

    def _ready_line(self, root: Path, part: str) -> str:
        loaded = self.load(root, part)
        published = self.parts[part]
        difference = ""
        if published not in (None, len(loaded)):
            difference = f" (the published set has {published})"
        noun = "contest" if isinstance(loaded[0], Contest) else "sample"
        return f"ready, {plural(len(loaded), noun)}{difference}"

    def _keep_count(self, root: Path, count: int) -> None:
        if not self.count_file:
            raise missing_count_error(self.name)
        if count < 1:
            raise VievalError(
                f"the number of frames or views must be at least 1, got {count}"
            )
        content = json.dumps({"count": count}).encode()
        write_whole(
            self._path(root) / self.count_file,
            content,
            "folder",
        )


def missing_count_error(name: str) -> VievalError:
    """The error for a count of frames or views in a benchmark without any."""
    return VievalError(
        f"{name} has one image per sample; remove the number of frames or views"
    )


def missing_images(loaded: Iterable[Judged], advice: str) -> list[str]:
    """One line per image model with missing images, and one for samples without the
    name of an output.
    """
    files_by_model: dict[str, dict[Path, None]] = defaultdict(dict)
    samples = {
        sample.id: sample for judged in loaded for sample in candidates_of(judged)
    }
    for sample in samples.values():
        files = files_of([sample])
        files_by_model[sample.id.image_model].update(dict.fromkeys(files))
    lines = []
    for model_files in files_by_model.values():
        missing = [file for file in model_files if not isfile(file)]
        if missing:
            folder = Path(os.path.commonpath([file.parent for file in model_files]))
            first = missing[0].relative_to(folder).as_posix()
            lines.append(
                f"{folder}: {len(missing)} of {len(model_files)} images missing "
                f"(first: {first}); {advice}"
            )
    unseen = [key for key, sample in samples.items() if "output" not in sample.images]
    if unseen:
        lines.append(
            f"no image for {len(unseen)} of {len(samples)} outputs (first: "
            f"{unseen[0]}); {advice}"
        )
    return lines
