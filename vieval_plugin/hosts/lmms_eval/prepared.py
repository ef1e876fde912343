"""Tasks whose data is there: a wildcard runs these, and says which others it leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from vieval_plugin import config
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.errors import VievalError
from vieval_plugin.hosts.lmms_eval.answerable import Why, WhyNot
from vieval_plugin.hosts.task_data import samples_of
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.spec import lacking
from vieval_plugin.run.runner import require_images
from vieval_plugin.tasks import Task


def unprepared(images: bool) -> WhyNot:
    """Make the check for data that is not there, or cannot be read; each part is looked at once.

    `images` says whether samples are judged now, and not replayed.
    """
    options = config.current()

    @cache
    def samples_or_reason(benchmark: str, part: str, of_subset: Task | None) -> Sequence[Judged] | str:
        task = of_subset or Task("", benchmark, part, "", "")
        try:
            samples = samples_of(task, options)
            if images:
                require_images(samples, f"`vieval tasks {benchmark}` says how to get a benchmark's images")
        except VievalError as error:
            return str(error)
        return samples

    def why(task: Task) -> Why | None:
        samples = samples_or_reason(task.benchmark, task.part, task if task.subset else None)
        reason = samples if isinstance(samples, str) else _unaskable(task, samples) if images else ""
        advice = f"their data is not there: `vieval tasks {task.benchmark}`"
        return Why(advice, f"{task.name}: {reason}") if reason else None

    return why


def _unaskable(task: Task, samples: Sequence[Judged]) -> str:
    """The reason that a judge can be asked about none of the samples, such as texts that are not there."""
    if benchmark_registry.benchmark(task.benchmark).generates:
        return ""
    spec = judge_registry.judge(task.judge)
    reasons = [lacking(spec, samples[0])] if samples else ["no samples"]
    return reasons[0] if all(lacking(spec, sample) for sample in samples) else ""
