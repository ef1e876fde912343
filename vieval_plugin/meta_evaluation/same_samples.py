"""Judges of semantic consistency side by side on the samples that all of them scored: the shape of CIGEval's Table 3.

Source: Wang et al., A Unified Agentic Framework for Evaluating Conditional Image Generation (2025), Table 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vieval_plugin.meta_evaluation.image_model_agreement import (
    agreement_by_image_model,
    agreement_over_parts,
    human_agreement,
)
from vieval_plugin.meta_evaluation.image_model_cells import ALL_PARTS, HUMAN
from vieval_plugin.meta_evaluation.observations import Agreement, Observation, observe
from vieval_plugin.meta_evaluation.tables import Table, because, number
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions

ASPECT = "SC"


def same_samples_tables(
    benchmark: str,
    parts: Sequence[str],
    runs: Sequence[Run],
    added_last: Mapping[str, int],
    options: StatisticsOptions,
) -> list[Table]:
    """SC by part and over all parts, published averaging; no table unless a judge of SC alone stands beside another.

    Args:
        benchmark: its name, part of the seed.
        parts: its parts in order; those that not all judges of SC were run on are left out.
        runs: one a judge, labels all different.
        added_last: by part, the place of the rater whose O the published code adds last, from 0.
        options: how many draws, and the seed; failed verdicts are in no such table.
    """
    rating = [run for run in runs if ASPECT in run.aspects and not run.against_all]
    if len(rating) < 2 or all(run.aspects != (ASPECT,) for run in rating):
        return []
    parts = [part for part in parts if all(part in run.records for run in rating)]
    by_label: dict[str, list[Agreement]] = {HUMAN: [], **{run.label: [] for run in rating}}
    for part in parts:
        observed = {run.label: [observe(judged) for judged in run.records[part]] for run in rating}
        common = set.intersection(*({_sample_key(o) for o in rows if _scored(o)} for rows in observed.values()))
        common_rows = {label: tuple(o for o in rows if _sample_key(o) in common) for label, rows in observed.items()}
        name, last = f"{benchmark}/{part}", added_last.get(part)
        for label, rows in common_rows.items():
            by_label[label].append(agreement_by_image_model(rows, (ASPECT,), name, last, options).aspects[ASPECT])
        rated = next(iter(common_rows.values()))
        if rated and len(dict(rated[0].ratings).get(ASPECT, ())) > 1:
            by_label[HUMAN].append(human_agreement(rated, (ASPECT,), name, options)[ASPECT])
    lines = [
        (label, *map(_agreement_text, agreements), _agreement_text(agreement_over_parts(agreements)))
        for label, agreements in by_label.items()
        if agreements
    ]
    counts = ("n", *(str(agreement.count) for agreement in by_label[rating[0].label]), "")
    title = "SC on the samples that all of these judges scored: Spearman, the published averaging"
    return [Table("sc_same_samples", title, ("judge", *parts, ALL_PARTS), (*lines, counts))] if parts else []


def _sample_key(observation: Observation) -> tuple[str, str]:
    return observation.image_model, observation.uid


def _scored(observation: Observation) -> bool:
    return ASPECT in dict(observation.scores)


def _agreement_text(agreement: Agreement) -> str:
    return number(agreement.paper, reason=because(agreement.reasons))
