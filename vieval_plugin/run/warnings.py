"""What is said before a run whose judge knows nothing but drawings and is shown something else."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.run.jobs import Job
from vieval_plugin.text.escaping import say


def caution(jobs: Sequence[Job]) -> None:
    """One line a judge that was trained on drawings only and is given images that are none of ours."""
    drawn = {name for name, one in benchmark_registry.benchmarks().items() if one.drawn}
    strange = Counter(
        job.judge.spec.name for job in jobs if job.judge.spec.drawings_only and job.judged.id.benchmark not in drawn
    )
    for judge, number in strange.items():
        say(
            f"vieval: {judge} was trained on drawings only: what it says of other images ({number} here) means little",
            file=sys.stderr,
        )
