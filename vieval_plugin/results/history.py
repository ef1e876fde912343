"""History of a gate: a line a night, and the series of nights with the same baseline, judge and prompts."""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from vieval_plugin.meta_evaluation.gate import files_by_generator
from vieval_plugin.records import YOUR_IMAGES, Record
from vieval_plugin.results.baseline import judge_fields, prompts_digest
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.yaml_json import read_json

_DIGITS = 16


@dataclass(frozen=True)
class Night:
    """A build as a gate judged it."""

    #: Date in UTC, as ISO 8601.
    date: str
    #: Digest of its images, or of their scores where an image is not known.
    images: str
    #: Digest of the baseline's images, or of their scores.
    baseline: str
    #: Digest of judge, wording, backbone and sampling.
    judge: str
    #: Digest of the prompts.
    prompts: str
    #: Mean difference to the baseline.
    difference: float
    #: Number of prompts.
    n: int

    @property
    def series(self) -> tuple[str, str, str]:
        """The digests that all nights of a series share."""
        return self.baseline, self.judge, self.prompts


def night_of(
    records: Sequence[Record], challenger: str, reference: str, difference: float, n: int, now: datetime | None = None
) -> Night:
    """A night of a gate.

    Args:
        records: verdicts on the images of both.
        challenger, reference: labels of the two.
        difference: mean difference of the scores.
        n: number of prompts.
        now: time of the night (default: now).
    """
    sides = {
        name: [record for record in records if (record.id.image_model or YOUR_IMAGES) == name]
        for name in (challenger, reference)
    }
    if not all(sides.values()):  # contests are of both
        sides = {name: list(records) for name in sides}
    images, baseline = (_images_digest(side, name) for name, side in sides.items())
    judge = _digest(sorted(judge_fields(records[0].provenance).items()))
    today = (now or datetime.now(UTC)).date().isoformat()
    return Night(today, images, baseline, judge, prompts_digest(sides[challenger]), difference, n)


def add_night(path: Path, night: Night) -> list[Night]:
    """Append a night to a history, and return its series.

    A build whose images are in the series already is not added once more.

    Raises:
        VievalError: the file cannot be read or written, or a line is not a night.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            lines = file.read().splitlines()
            nights = [_read(path, number, line) for number, line in enumerate(lines, start=1)]
            series = _series(nights, night)
            if any(earlier.images == night.images for earlier in series):
                return series
            file.write(json.dumps(asdict(night), allow_nan=False) + "\n")
            file.flush()
            os.fsync(file)
    except (OSError, UnicodeDecodeError) as error:
        raise VievalError(f"{path}: cannot be read and written ({error}); choose another --history") from None
    return [*series, night]


def _series(nights: Sequence[Night], night: Night) -> list[Night]:
    """The last nights with the baseline, judge and prompts of a night; a change began a new series."""
    changed = [number for number, earlier in enumerate(nights, start=1) if earlier.series != night.series]
    return list(nights[changed[-1] if changed else 0 :])


def _read(path: Path, number: int, line: str) -> Night:
    try:
        row = read_json(line)
        images, baseline, judge, prompts = (str(row[name]) for name in ("images", "baseline", "judge", "prompts"))
        day = date.fromisoformat(row["date"]).isoformat()
        night = Night(day, images, baseline, judge, prompts, float(row["difference"]), int(row["n"]))
        if math.isfinite(night.difference):
            return night
    except (ValueError, KeyError, TypeError):
        pass
    raise VievalError(f"{path}: line {number} is not a night of a gate; restore the file, or choose another --history")


def _images_digest(records: Sequence[Record], generator: str) -> str:
    files: Mapping[tuple[str, str, int], tuple[str, ...]] = files_by_generator(records).get(generator, {})
    if files and all(map(all, files.values())):
        return _digest(sorted((*key, *digests) for key, digests in files.items()))
    return _digest(sorted((r.id.part, r.id.uid, r.id.draw, sorted(r.verdict.scores.items())) for r in records))


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:_DIGITS]
