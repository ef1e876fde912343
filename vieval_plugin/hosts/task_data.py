"""Data of a task for any host: its samples, and what is to be known of its judge to report on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.benchmark import data_root
from vieval_plugin.benchmarks.loading.subset import select_subset as chosen
from vieval_plugin.config import Config
from vieval_plugin.errors import VievalError
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.spec import JudgeSpec
from vieval_plugin.meta_evaluation.statistics import Rating
from vieval_plugin.tasks import Task


def samples_of(task: Task, options: Config) -> Sequence[Judged]:
    """The samples or contests of a task, less those that the options leave out; VievalError says what is missing."""
    benchmark = benchmark_registry.benchmark(task.benchmark)
    samples = benchmark.load(data_root(benchmark, options), task.part)
    uids = _uids(task, options)
    return samples if uids is None else chosen(samples, uids, benchmark.folders)


def _uids(task: Task, options: Config) -> Path | None:
    """The file that lists the wanted samples, if there is one: the options' own, or that of a task's subset."""
    if not task.subset:
        return options.uids
    path: Path | None = getattr(options.judges.options_of(judge_registry.judge(task.judge)), "subset", None)
    if path is None:
        raise VievalError(
            f"{task.name}: set judges.{task.judge}.subset to the file that lists its samples "
            "(the authors' split as JSON, or one uid a line)"
        )
    return path


def rating_of(judge: JudgeSpec, options: Config, repeats: int = 1) -> Rating:
    """Describe a judge that judges each sample so often for a benchmark's report."""
    grades = judge.grades(options.judges.options_of(judge))
    return Rating(judge.aspects, judge.dimensions, grades, judge.intervals, repeats, judge.against_all)
