"""Warnings before a run."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from vieval_plugin.run.jobs import Job
from vieval_plugin.text.escaping import say


def warn_of_unlike_images(jobs: Sequence[Job]) -> None:
    """Print a line for each judge that was trained on drawings and is given other images."""
    unlike = Counter(
        spec.name
        for spec, benchmark in ((job.judge.spec, job.judged.id.benchmark) for job in jobs)
        if spec.training_benchmarks and not benchmark.startswith(spec.training_benchmarks)
    )
    for judge, number in unlike.items():
        say(
            f"vieval: {judge} was trained on drawings only: what it says of other images ({number} here) means little",
            file=sys.stderr,
        )
