"""The numbers behind the tables by image model, one cell each, named as the VIEScore paper's tables are.

T1: over all parts. T2/3: by part. T5: rankings of image models. T6: by image model, or whichever table prints a judge's
there. T7: human raters by image model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.estimates import bias_corrected
from vieval_plugin.meta_evaluation.image_model_agreement import (
    Agreement,
    ImageModelRows,
    agreement_of,
    agreement_over_parts,
    human_agreement,
    image_model_rows,
    rating_columns,
    why_undefined,
)
from vieval_plugin.meta_evaluation.observations import Observation, observe
from vieval_plugin.meta_evaluation.statistics import Rating, parts_of
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.records import Run
from vieval_plugin.stats.agreement import annotator_mean, krippendorff_alpha, leave_one_out
from vieval_plugin.stats.correlation import Coefficient, correlation, paper_mean, undefined
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.ranking import footrule, rank_rho, ranks

HUMAN = "human"
"""The label under which tables show human raters."""

ALL_PARTS = "all"
BY_MODEL = "T6"
"""The table of correlations by image model, for judges whose description names no other."""


@dataclass(frozen=True)
class Ranking:
    """Ranks of a part's image models by mean O: of the judge over what it judged, of humans over all rated."""

    judge: dict[str, float]
    human: dict[str, float]


@dataclass(frozen=True)
class Numbers:
    """The numbers of the tables by image model of one benchmark.

    `agreement` maps (label, part or `all`, aspect), `rankings` (label, part), `alpha` (part, aspect); NaN marks the
    undefined, and `reasons` says why a cell is. `statuses` counts a judge's verdicts, `replies` the steps behind them.
    """

    labels: tuple[str, ...]
    parts: tuple[str, ...]
    cells: Mapping[Key, float]
    reasons: Mapping[Key, str]
    agreement: Mapping[tuple[str, str, str], Agreement]
    rankings: Mapping[tuple[str, str], Ranking]
    alpha: Mapping[tuple[str, str], float]
    statuses: Mapping[str, Mapping[Status, int]]
    replies: Mapping[str, Mapping[Status, int]]


def numbers_by_image_model(
    benchmark: str,
    parts: Sequence[str],
    runs: Sequence[Run],
    added_last: Mapping[str, int],
    options: StatisticsOptions,
    rated: tuple[str, ...],
) -> Numbers:
    """Every number of a benchmark from its runs.

    Args:
        benchmark: its name, part of the seed.
        parts: its parts in order; those that no run holds are left out, and what else runs hold comes last.
        runs: one a judge, labels all different.
        added_last: by part, the index of the annotator whose O the published code adds last, from 0.
        options: what failed verdicts are, how many draws, the seed.
        rated: what people rated, for judges whose one score is compared with all of it.

    Returns:
        Correlations in [-1, 1], footrules >= 0, alphas at most 1.
    """
    judged_parts = parts_of(parts, runs)
    cells = _Cells()
    agreement: dict[tuple[str, str, str], Agreement] = {}
    rankings: dict[tuple[str, str], Ranking] = {}
    statuses: dict[str, dict[Status, int]] = {}
    replies: dict[str, dict[Status, int]] = {}
    for run in runs:
        for part in (p for p in judged_parts if p in run.records):
            observations = [observe(judged) for judged in run.records[part]]
            rows = image_model_rows(
                observations, Rating.from_run(run), f"{benchmark}/{part}", added_last.get(part), rated, options
            )
            for aspect in rows.aspects:
                agreement[run.label, part, aspect] = agreed = agreement_of(rows, aspect)
                cells.add(Key("T2/3", part, "", run.label, "spearman", aspect), agreed.paper.value, agreed.paper.reason)
                for model, c in rows.columns_as_published(aspect).items():
                    key = Key(run.table or BY_MODEL, part, model, run.label, "spearman", aspect)
                    cells.add(key, correlation(c.human, c.judge), why_undefined(c))
            if "O" in rows.aspects:
                rankings[run.label, part] = ranking = _ranking(rows)
                _rank_cells(cells, part, run.label, ranking)
        judged = [record for rows in run.records.values() for repeats in rows for record in repeats]
        statuses[run.label] = _count(record.verdict.status for record in judged)
        replies[run.label] = _count(step.status for record in judged for step in record.verdict.trace)
    alpha = _human_cells(benchmark, _rated(runs, judged_parts), options, cells, agreement)
    labels = (HUMAN, *(run.label for run in runs)) if alpha else tuple(run.label for run in runs)
    _over_all_parts(labels, judged_parts, cells, agreement)
    return Numbers(labels, judged_parts, cells.values, cells.reasons, agreement, rankings, alpha, statuses, replies)


class _Cells:
    """Cells as they are found, and why undefined ones are."""

    def __init__(self) -> None:
        self.values: dict[Key, float] = {}
        self.reasons: dict[Key, str] = {}

    def add(self, key: Key, value: float, reason: str) -> None:
        self.values[key] = value
        if math.isnan(value):
            self.reasons[key] = reason


def _ranking(rows: ImageModelRows) -> Ranking:
    judged = {m: float(c.judge.mean()) if len(c.judge) else math.nan for m, c in rows.columns_as_published("O").items()}
    rated = {
        m: float(annotator_mean(c.ratings, rows.added_last).mean())
        for m, c in rating_columns(rows.imputed, "O").items()
    }
    models = [m for m in judged if not math.isnan(judged[m])]
    of_judge, of_humans = ranks([judged[m] for m in models]), ranks([rated[m] for m in models])
    return Ranking(dict(zip(models, of_judge, strict=True)), dict(zip(models, of_humans, strict=True)))


def _rank_cells(cells: _Cells, part: str, label: str, ranking: Ranking) -> None:
    # rank 1 is the best, and the statistics rank by scores
    judge, humans = [-np.array(list(side.values())) for side in (ranking.judge, ranking.human)]
    cells.add(Key("T5", part, "", label, "footrule", "O"), footrule(judge, humans), "")
    why = "all image models are ranked alike" if len(judge) > 1 else undefined(judge, humans)
    cells.add(Key("T5", part, "", label, "rho", "O"), rank_rho(judge, humans), why)


def _rated(runs: Sequence[Run], parts: Sequence[str]) -> dict[str, list[Observation]]:
    """Each rated sample of a part once, whichever runs hold it."""
    records = {part: {rows[0].id: rows for run in runs for rows in run.records.get(part, [])} for part in parts}
    return {part: [observe(rows) for rows in samples.values()] for part, samples in records.items()}


def _human_cells(
    benchmark: str,
    rated: Mapping[str, Sequence[Observation]],
    options: StatisticsOptions,
    cells: _Cells,
    agreement: dict[tuple[str, str, str], Agreement],
) -> dict[tuple[str, str], float]:
    """Fill in the human rows and return Krippendorff's alpha by part and aspect; nothing where there is one rater."""
    alpha = {}
    for part, observed in rated.items():
        observed = [o for o in observed if o.ratings]
        ratings = observed[0].ratings if observed else {}
        if min(map(len, ratings.values()), default=0) < 2:
            continue
        for aspect, agreed in human_agreement(observed, tuple(ratings), f"{benchmark}/{part}", options).items():
            agreement[HUMAN, part, aspect] = agreed
            cells.add(Key("T2/3", part, "", HUMAN, "spearman", aspect), agreed.paper.value, agreed.paper.reason)
            by_model = {model: c.ratings for model, c in rating_columns(observed, aspect).items()}
            alpha[part, aspect] = krippendorff_alpha(np.concatenate(list(by_model.values()), axis=1))
            for model, values in by_model.items():
                for coefficient in get_args(Coefficient):
                    mean = paper_mean(leave_one_out(values, coefficient), rounded=False)
                    key = Key("T7", part, model, HUMAN, coefficient, aspect)
                    cells.add(key, mean, "no rater's correlation with the others is defined")
    return alpha


def _over_all_parts(
    labels: Sequence[str],
    parts: Sequence[str],
    cells: _Cells,
    agreement: dict[tuple[str, str, str], Agreement],
) -> None:
    for label in labels:
        for aspect in dict.fromkeys(a for judge, _, a in agreement if judge == label):
            of_parts = [agreement[label, part, aspect] for part in parts if (label, part, aspect) in agreement]
            corrected, paper = agreement_over_parts(of_parts)
            corrected = bias_corrected(corrected) if label == HUMAN else corrected
            agreement[label, ALL_PARTS, aspect] = Agreement(corrected, paper)
            cells.add(Key("T1", ALL_PARTS, "", label, "spearman", aspect), paper.value, paper.reason)


def _count(statuses: Iterable[Status]) -> dict[Status, int]:
    counts = dict.fromkeys(Status, 0)
    for status in statuses:
        counts[status] += 1
    return counts
