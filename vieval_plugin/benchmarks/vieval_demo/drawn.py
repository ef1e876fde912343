"""The synthetic benchmark's samples, drawn once a process."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from vieval_plugin.judges.protocol import Sample


def load(root: Path, part: str) -> list[Sample]:
    """The samples of a part (see `outputs.samples`), drawn once a process; `root` is not used."""
    return list(_samples_of(part))


@cache
def _samples_of(part: str) -> tuple[Sample, ...]:
    from vieval_plugin.benchmarks.vieval_demo.outputs import samples  # needs Pillow, SciPy and scikit-image

    return tuple(samples(part))
