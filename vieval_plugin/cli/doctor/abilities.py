"""Jobs that can be done in this environment, and what others need: judges, harnesses, rewards and benchmarks."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vieval_plugin.backends.metrics.pixel_metrics import METRICS
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.config import Config
from vieval_plugin.errors import VievalError, docs_url, install_advice
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.spec import JudgeSpec

_SIDE = 64  # pixels of the image that a metric is tried on
_OF_SCORERS = ("torch", "torchmetrics", "torchvision", "transformers")
_HARNESSES = {
    "lmms_eval": ("tasks in lmms-eval", install_advice("lmms-eval")),
    "vlmeval": ("datasets in VLMEvalKit", f"VLMEvalKit; see {docs_url('guides/harnesses.md#vlmevalkit')}"),
}


@dataclass(frozen=True)
class Ability:
    """A job, and what it needs; it can be done where that is nothing."""

    job: str
    needs: str = ""


def lines(options: Config, model: str) -> Iterator[str]:
    """Lines on all jobs: first those that can be done, then what the others need.

    Args:
        model: a backbone that answers, in words; empty where there is none.
    """
    found = [*_judges(options, model), *_benchmarks(options), *_servers()]
    yield "You can:"
    yield from (f"  {ability.job}" for ability in found if not ability.needs)
    if lacking := [ability for ability in found if ability.needs]:
        yield from ("", "You need:")
        yield from (f"  to {ability.job}: {ability.needs}" for ability in lacking)


def _judges(options: Config, model: str) -> Iterator[Ability]:
    """Scoring images, a line for the judges that need the same."""
    names: dict[Ability, list[str]] = {}
    for name, spec in judge_registry.judges().items():
        names.setdefault(_need(spec, model), []).append(name)
    for ability, judges in sorted(names.items(), key=lambda item: item[0].job):
        yield Ability(ability.job.format(", ".join(judges)), ability.needs)


def _need(spec: JudgeSpec, model: str) -> Ability:
    """The job of a judge, with braces for its name, and what it needs."""
    if spec.pack and not spec.scored:
        needs = (
            f"a model on a server (--model NAME --base-url URL); see {docs_url('guides/scoring.md#choose-a-backbone')}"
        )
        return Ability(f"score images with {{}} by {model}") if model else Ability("score images with {}", needs)
    if spec.training_benchmarks:
        return Ability("try everything without a server with {}, a toy that knows its own drawings only")
    if spec.scored:
        absent = [name for name in _OF_SCORERS if importlib.util.find_spec(name) is None]
        needs = f"{', '.join(absent)}; {install_advice('scorers')}" if absent else ""
        return Ability("score images with {}, whose weights are fetched when first used", needs)
    return Ability("score images with {}", _lacks(spec.name))


def _lacks(metric: str) -> str:
    """The package that an image metric lacks, with advice, which is found by computing the metric of noise."""
    noise = np.random.default_rng(0).integers(0, 256, (2, _SIDE, _SIDE, 3), np.uint8)
    try:
        if metric in METRICS:
            METRICS[metric]({"image": noise[0], "reference": noise[1]})
    except VievalError:
        return f"scikit-image; {install_advice('metrics')}"
    return ""


def _benchmarks(options: Config) -> Iterator[Ability]:
    """Running the tasks of benchmarks in harnesses."""
    root = options.data_folder()
    ready, absent = list[str](), list[str]()
    for name, benchmark in benchmark_registry.benchmarks().items():
        if not benchmark.generates and benchmark.root == "data":
            (absent if any(benchmark.missing(root, part) for part in benchmark.parts) else ready).append(name)
    for module, (job, advice) in _HARNESSES.items():
        needs = "" if importlib.util.find_spec(module) else advice
        yield Ability(f"run {job} on {', '.join(ready)} (`vieval tasks` lists them)", needs)
    if absent:
        further = f"{len(absent)} further benchmarks, such as {', '.join(absent[:3])}"
        yield Ability(f"run tasks on {further}", "their data; `vieval prepare NAME` gets it")


def _servers() -> Iterator[Ability]:
    absent = importlib.util.find_spec("aiohttp") is None
    yield Ability("serve judges as rewards (`vieval serve`)", f"aiohttp; {install_advice('http')}" if absent else "")
