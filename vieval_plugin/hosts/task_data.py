"""Data of a task for any host: its samples, and what is to be known of its judge to report on
it.
"""

from __future__ import annotations

from collections.abc import Sequence

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.benchmark import data_root
from vieval_plugin.benchmarks.loading.subset import select_subset
from vieval_plugin.benchmarks.tasks import Task
from vieval_plugin.config import Config
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.spec import JudgeSpec
from vieval_plugin.meta_evaluation.statistics import Rating


def samples_of(task: Task, options: Config) -> Sequence[Judged]:
    """The samples or contests of a task, less those that the options leave out; VievalError says
    what is missing.
    """
    benchmark = benchmark_registry.benchmark(task.benchmark)
    samples = benchmark.load(data_root(benchmark, options), task.part)
    return (
        samples
        if options.uids is None
        else select_subset(samples, options.uids, benchmark.folders)
    )


def rating_of(judge: JudgeSpec, options: Config, repeats: int = 1) -> Rating:
    """Describe a judge that judges each sample so often for a benchmark's report."""
    judge = options.judges.narrowed(judge)
    grades = judge.grades(options.judges.options_of(judge))
    return Rating(
        judge.aspects,
        judge.dimensions,
        grades,
        judge.intervals,
        repeats,
        judge.against_all,
    )
