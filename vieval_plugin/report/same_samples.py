"""Judges of semantic consistency side by side on the samples that all of them scored: the shape of CIGEval's Table 3.

Source: Wang et al., A Unified Agentic Framework for Evaluating Conditional Image Generation (2025), Table 3.
"""

from __future__ import annotations

from collections.abc import Sequence

from vieval_plugin.data.benchmarks import BENCHMARKS
from vieval_plugin.meta_evaluation import Agreement, Observation, Options, human, observe, over_tasks, summarise
from vieval_plugin.report.cells import HUMAN
from vieval_plugin.report.load import Run
from vieval_plugin.report.tables import Table

ASPECT = "SC"


def table(benchmark: str, runs: Sequence[Run], options: Options) -> list[Table]:
    """SC by task and over all tasks, published averaging; no table unless a judge of SC alone stands beside another."""
    rating = [run for run in runs if ASPECT in run.aspects]
    if len(rating) < 2 or all(run.aspects != (ASPECT,) for run in rating):
        return []
    tasks = [task for task in BENCHMARKS[benchmark].tasks if all(task in run.records for run in rating)]
    rows: dict[str, list[Agreement]] = {HUMAN: [], **{run.label: [] for run in rating}}
    for task in tasks:
        observed = {run.label: [observe(judged) for judged in run.records[task]] for run in rating}
        common = set.intersection(*({_place(o) for o in found if _scored(o)} for found in observed.values()))
        kept = {label: tuple(o for o in found if _place(o) in common) for label, found in observed.items()}
        name, last = f"{benchmark}/{task}", BENCHMARKS[benchmark].added_last.get(task)
        for label, found in kept.items():
            rows[label].append(summarise(found, (ASPECT,), name, last, options).aspects[ASPECT])
        rated = next(iter(kept.values()))
        if rated and len(dict(rated[0].ratings).get(ASPECT, ())) > 1:
            rows[HUMAN].append(human(list(rated), (ASPECT,), name, options)[ASPECT])
    lines = [(label, *map(_shown, found), _shown(over_tasks(found))) for label, found in rows.items() if found]
    counts = ("n", *(str(found.count) for found in rows[rating[0].label]), "")
    title = "SC on the samples that all of these judges scored: Spearman, the published averaging"
    return [Table("sc_same_samples", title, ("judge", *tasks, "all"), (*lines, counts))] if tasks else []


def _place(observation: Observation) -> tuple[str, str]:
    return observation.image_model, observation.uid


def _scored(observation: Observation) -> bool:
    return ASPECT in dict(observation.scores)


def _shown(found: Agreement) -> str:
    return "" if found.paper != found.paper else f"{found.paper:.4f}"
