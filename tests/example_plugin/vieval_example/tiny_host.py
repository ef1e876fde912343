"""The smallest host: runs one task, keeps its results as text, and gives its metrics."""

from __future__ import annotations

from vieval_plugin import Progress
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.tasks import Task
from vieval_plugin.config import Config
from vieval_plugin.hosts.task_data import rating_of, samples_of
from vieval_plugin.meta_evaluation import metrics
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.meta_evaluation.statistics import summary_of
from vieval_plugin.records import fingerprint, response_json, target_json
from vieval_plugin.results.documents import read_record
from vieval_plugin.run.answerers import Answerer
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.prepare import prepare
from vieval_plugin.run.scheduler import Outcome


def run_task(
    task: Task, answerer: Answerer, options: Config, limit: int
) -> dict[str, object]:
    """All metrics of a task on its first samples; the answerer is a server, an engine, metrics
    or the host's model.
    """
    samples = samples_of(task, options)[:limit]
    judge = prepare(task.judge, task.setting, options)
    results: dict[
        int, tuple[str, str]
    ] = {}  # what the host's results file keeps of each sample: two texts

    def keep(number: int, outcome: Outcome) -> None:
        sample = samples[number]
        response = response_json(
            sample.id, outcome.verdict, judge.by(task.judge), fingerprint(sample)
        )
        results[number] = response, target_json(sample)

    answerer.judge(
        [Job(sample, judge) for sample in samples], options, Progress(), keep, bar=False
    )

    observations = tuple(
        observe([read_record(*results[number])]) for number in range(len(samples))
    )
    benchmark, rating = (
        benchmark_registry.benchmark(task.benchmark),
        rating_of(judge.spec, options),
    )
    statistics = options.statistics.options()
    summary = summary_of(
        benchmark.report, observations, rating, benchmark.name, task.part, statistics
    )
    return {
        name: metrics.value(summary, name)
        for name in metrics.names(benchmark.report, rating)
    }
