"""A user's own samples as a benchmark to report on: of generators, and of judges as soon as
people rated some samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.benchmark import USER_SOURCE, Benchmark
from vieval_plugin.judges.contests import Judged, candidates_of
from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.meta_evaluation.findings import Findings
from vieval_plugin.meta_evaluation.generators import OfGenerators
from vieval_plugin.meta_evaluation.image_models import ByImageModel
from vieval_plugin.meta_evaluation.win_rates import win_rate_findings
from vieval_plugin.records import OWN, YOUR_IMAGES, Record, Run
from vieval_plugin.results.prompt_differences import similar_prompts_note
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.stats.decisions import FEWEST_GROUPS
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import plural

_Values: TypeAlias = tuple[float | str, ...]


class OfOwnSamples(OfGenerators):
    """Report on a user's own samples: a judge's scores of generators and, with ratings, its
    agreement with people.
    """

    def findings(
        self,
        benchmark: str,
        parts: Sequence[str],
        runs: Sequence[Run],
        options: StatisticsOptions,
    ) -> Findings:
        """Agreement with people if there are ratings, then generators side by side and their win
        rates.
        """
        if is_rated(runs):
            findings = ByImageModel().findings(benchmark, parts, runs, options)
        else:
            findings = Findings(())
        return findings + generator_findings(benchmark, runs, options)


def generator_findings(
    benchmark: str,
    runs: Sequence[Run],
    options: StatisticsOptions,
) -> Findings:
    """Generators side by side by the judges' scores, and by their win rates."""
    findings = OfGenerators().findings(benchmark, (), runs, options)
    return sum((win_rate_findings(run, options) for run in runs), findings)


def against(benchmark: Benchmark) -> str:
    """Whose ratings agreement is with: annotators', or the order that was planted."""
    where = YOUR_IMAGES if benchmark.name == OWN else benchmark.name
    source = f"{benchmark.truth} of" if benchmark.synthetic else "annotators on"
    return f"{source} {where}"


def is_rated(runs: Sequence[Run]) -> bool:
    """True where annotators rated a sample, or voted on a contest, of these runs."""
    for record in chain.from_iterable(run.all_records for run in runs):
        if record.ratings or (record.votes and record.votes.scheme):
            return True
    return False


def prompt_notes(runs: Sequence[Run]) -> list[str]:
    """Line on the groups of prompts of a user's own samples, or on prompts that look as if a
    template had made them.
    """
    own_runs = (run for run in runs if run.benchmark == OWN)
    records = list(chain.from_iterable(run.all_records for run in own_runs))
    samples = chain.from_iterable(
        candidates_of(record.sample) for record in records if record.sample
    )
    prompts = {
        (sample.id.part, sample.id.uid): sample for sample in samples if sample.texts
    }
    group_of = {prompt: sample.group for prompt, sample in prompts.items()}
    for record in records:
        if record.row:
            uid = record.id.uid
            group_of[record.id.part, uid] = record.row.group or uid
    groups = {(part, group) for (part, _), group in group_of.items()}
    if len(groups) == len(group_of):
        note = similar_prompts_note(prompts.values())
        return [note] if note else []
    note = ""
    if len(groups) < FEWEST_GROUPS:
        note = f"; a margin of .05 requires at least {FEWEST_GROUPS} groups"
    prompt_count = plural(len(group_of), "prompt")
    group_count = plural(len(groups), "group")
    return [f"{prompt_count} in {group_count} (each counts as one){note}"]


def _raise_elsewhere(root: Path, part: str) -> Sequence[Judged]:
    raise VievalError(
        f"your own samples of kind {part} are read from your file, not from {root}"
    )


OWN_SAMPLES = Benchmark(
    OWN,
    parts={},
    load=_raise_elsewhere,
    missing=lambda root, part: [],
    report=OfOwnSamples(),
    source=USER_SOURCE,
    licence="the user's",
    trainable=True,
    note=(
        "Your own samples. A judge can disagree with people. `vieval rank --human` "
        "corrects its means with ratings of some images."
    ),
)


def benchmarks_with_runs(
    runs: Sequence[Run], required: bool = True
) -> list[tuple[Benchmark, list[Run]]]:
    """Benchmarks of results, each with its runs.

    Args:
        runs: of any benchmarks.
        required: False where only the images count: then no installed package has to bring a
            benchmark, and ratings may differ.

    Raises:
        VievalError: no installed package brings one of the benchmarks, or two runs have other
            ratings of one sample or other votes on one contest.
    """
    if required:
        _require_same_people(runs)
    by_benchmark = grouped((run.benchmark, run) for run in runs)
    return [
        (_benchmark(name, required), benchmark_runs)
        for name, benchmark_runs in by_benchmark.items()
    ]


def _benchmark(name: str, required: bool) -> Benchmark:
    benchmark = OWN_SAMPLES if name == OWN else benchmark_registry.find(name)
    if benchmark:
        return benchmark
    if not required:
        return replace(OWN_SAMPLES, name=name, note="")
    raise VievalError(
        f"the benchmark {name!r} of these results is not installed; "
        "pass --benchmark FOLDER with its benchmark.yaml, set VIEVAL_BENCHMARKS, "
        "install its package, "
        "or leave these results out"
    )


def _require_same_people(runs: Sequence[Run]) -> None:
    """Raise VievalError if results of other data are mixed: a judge's number would
    depend on which of them came last.
    """
    first_values: dict[tuple[SampleId, str], tuple[str, _Values]] = {}
    for run in runs:
        for record, *_ in run.records_by_sample:
            for name, values in _people_values(record).items():
                key = (record.id, name)
                label, first = first_values.setdefault(key, (run.label, values))
                if list(map(str, first)) != list(map(str, values)):
                    first_text = _values_text(first)
                    text = _values_text(values)
                    raise VievalError(
                        f"{record.id}: people's {name} are {first_text} "
                        f"in the results of {label}, "
                        f"but {text} in those of {run.label}; "
                        "run both on the same data"
                    )


def _people_values(record: Record) -> dict[str, _Values]:
    """Ratings and votes of people on a sample, by what they are."""
    values: dict[str, _Values] = {}
    for aspect, ratings in record.ratings.items():
        values[f"ratings of {aspect}"] = tuple(ratings)
    if record.votes:
        values["votes"] = (record.votes.vote,)
    return values


def _values_text(values: _Values) -> str:
    texts = []
    for value in values:
        if isinstance(value, str):
            texts.append(value or "none")
        else:
            texts.append(f"{value:g}")
    return ", ".join(texts) or "none"
