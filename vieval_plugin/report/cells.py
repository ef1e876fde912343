"""The numbers behind the tables, one cell each, named as the VIEScore paper's tables are.

T1: over all tasks. T2/3: by task. T5: rankings of image models. T6: by image model. T7: human raters by image model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

import numpy as np

from vieval_plugin.data.benchmarks import BENCHMARKS
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation import (
    Agreement,
    Observation,
    Options,
    columns,
    fill,
    human,
    observe,
    over_tasks,
    per_model,
    rating_columns,
    summarise,
)
from vieval_plugin.report.load import Run
from vieval_plugin.stats.agreement import krippendorff_alpha, leave_one_out, rater_mean
from vieval_plugin.stats.averaging import paper_mean
from vieval_plugin.stats.correlation import Kind
from vieval_plugin.stats.ranking import footrule, rank_rho, ranks

HUMAN = "human"


@dataclass(frozen=True, order=True)
class Key:
    """Which cell: the paper's table, and what its row and column say; `all` tasks and no image model where averaged."""

    table: str
    task: str
    image_model: str
    judge: str
    statistic: str
    aspect: str


@dataclass(frozen=True)
class Ranking:
    """Ranks of a task's image models by mean O: of the judge over what it judged, of humans over all rated."""

    judge: dict[str, float]
    human: dict[str, float]


@dataclass(frozen=True)
class Results:
    """All a report says of one benchmark. `agreement` maps (label, task or `all`, aspect); NaN marks the undefined."""

    benchmark: str
    labels: tuple[str, ...]
    tasks: tuple[str, ...]
    cells: Mapping[Key, float]
    agreement: Mapping[tuple[str, str, str], Agreement]
    rankings: Mapping[tuple[str, str], Ranking]
    alpha: Mapping[tuple[str, str], float]
    statuses: Mapping[str, Mapping[Status, int]]
    replies: Mapping[str, Mapping[Status, int]]
    options: Options


def compute(benchmark: str, runs: list[Run], options: Options) -> Results:
    """Every cell of a benchmark from its runs."""
    known = BENCHMARKS[benchmark]
    tasks = tuple(task for task in known.tasks if any(task in run.records for run in runs))
    cells: dict[Key, float] = {}
    agreement: dict[tuple[str, str, str], Agreement] = {}
    rankings: dict[tuple[str, str], Ranking] = {}
    statuses: dict[str, dict[Status, int]] = {}
    replies: dict[str, dict[Status, int]] = {}
    for run in runs:
        for task in (t for t in tasks if t in run.records):
            observed = tuple(observe(judged) for judged in run.records[task])
            last = known.added_last.get(task)
            summary = summarise(observed, run.aspects, f"{benchmark}/{task}", last, options)
            kept = fill(observed, run.aspects, options)
            for aspect, found in summary.aspects.items():
                agreement[run.label, task, aspect] = found
                cells[Key("T2/3", task, "", run.label, "spearman", aspect)] = found.paper
                for model, r in per_model(kept, run.aspects, aspect, last).items():
                    cells[Key("T6", task, model, run.label, "spearman", aspect)] = r
            if "O" in run.aspects:
                rankings[run.label, task] = ranking = _ranking(kept, run.aspects, last)
                _rank_cells(cells, task, run.label, ranking)
        judged = [record for rows in run.records.values() for repeats in rows for record in repeats]
        statuses[run.label] = _count(record.verdict.status for record in judged)
        replies[run.label] = _count(step.status for record in judged for step in record.verdict.trace)
    alpha = _human_cells(benchmark, _rated(runs, tasks), options, cells, agreement)
    labels = (HUMAN, *(run.label for run in runs)) if alpha else tuple(run.label for run in runs)
    _over_all_tasks(labels, tasks, cells, agreement)
    return Results(benchmark, labels, tasks, cells, agreement, rankings, alpha, statuses, replies, options)


def _ranking(observed: list[Observation], aspects: tuple[str, ...], last: int | None) -> Ranking:
    judged = {
        m: float(c.judge.mean()) if len(c.judge) else math.nan for m, c in columns(observed, aspects, "O").items()
    }
    rated = {m: float(rater_mean(values, last).mean()) for m, (_, values) in rating_columns(observed, "O").items()}
    models = [m for m in judged if not math.isnan(judged[m])]
    of_judge, of_humans = ranks([judged[m] for m in models]), ranks([rated[m] for m in models])
    return Ranking(dict(zip(models, of_judge, strict=True)), dict(zip(models, of_humans, strict=True)))


def _rank_cells(cells: dict[Key, float], task: str, label: str, ranking: Ranking) -> None:
    judge, humans = [-np.array(list(side.values())) for side in (ranking.judge, ranking.human)]
    cells[Key("T5", task, "", label, "footrule", "O")] = footrule(judge, humans)
    cells[Key("T5", task, "", label, "rho", "O")] = rank_rho(judge, humans)


def _rated(runs: list[Run], tasks: tuple[str, ...]) -> dict[str, list[Observation]]:
    """Each rated sample of a task once, whichever runs hold it."""
    return {
        task: list({rows[0].id: observe(rows) for run in runs for rows in run.records.get(task, [])}.values())
        for task in tasks
    }


def _human_cells(
    benchmark: str,
    rated: dict[str, list[Observation]],
    options: Options,
    cells: dict[Key, float],
    agreement: dict[tuple[str, str, str], Agreement],
) -> dict[tuple[str, str], float]:
    """Fill in the human rows and return Krippendorff's alpha by task and aspect; nothing where there is one rater."""
    alpha = {}
    for task, observed in rated.items():
        ratings = observed[0].ratings
        if min(len(values) for _, values in ratings) < 2:
            continue
        aspects = tuple(aspect for aspect, _ in ratings)
        for aspect, found in human(observed, aspects, f"{benchmark}/{task}", options).items():
            agreement[HUMAN, task, aspect] = found
            cells[Key("T2/3", task, "", HUMAN, "spearman", aspect)] = found.paper
            by_model = rating_columns(observed, aspect)
            alpha[task, aspect] = krippendorff_alpha(
                np.concatenate([values for _, values in by_model.values()], axis=1)
            )
            for model, (_, values) in by_model.items():
                for kind in get_args(Kind):
                    cells[Key("T7", task, model, HUMAN, kind, aspect)] = paper_mean(
                        leave_one_out(values, kind), rounded=False
                    )
    return alpha


def _over_all_tasks(
    labels: tuple[str, ...],
    tasks: tuple[str, ...],
    cells: dict[Key, float],
    agreement: dict[tuple[str, str, str], Agreement],
) -> None:
    for label in labels:
        for aspect in dict.fromkeys(a for judge, _, a in agreement if judge == label):
            found = over_tasks([agreement[label, t, aspect] for t in tasks if (label, t, aspect) in agreement])
            agreement[label, "all", aspect] = found
            cells[Key("T1", "all", "", label, "spearman", aspect)] = found.paper


def _count(statuses: Iterable[Status]) -> dict[Status, int]:
    counted = dict.fromkeys(Status, 0)
    for status in statuses:
        counted[status] += 1
    return counted
