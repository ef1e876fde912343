"""Judges compared by their correlation with human ratings, averaged over image models.

Two judges are compared on the samples that both scored, and on the image models of which that leaves enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from vieval_plugin.meta_evaluation.comparison import (
    CommonSamplesStatistic,
    ComparedStatistic,
    System,
    correlates,
    unranked_reason,
)
from vieval_plugin.meta_evaluation.image_model_agreement import LEAST_SAMPLES, filled_observations, why_no_value
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.records import Run
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.estimate import because
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.paired_correlations import CorrelationDifference

ALL = "all"


class Cell(NamedTuple):
    """The place of a sample in a table: the first two name a row, part and image model a column."""

    part: str
    uid: str
    image_model: str


@dataclass(frozen=True)
class RatedSample:
    """A judge's score of a sample beside the mean rating of its annotators."""

    score: float
    human: float
    group: str


ScoredSamples: TypeAlias = Mapping[Cell, RatedSample]
"""The samples that count for a judge on an aspect."""


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """Scores of each judge and mean human ratings, tables of shape (rows, image models), NaN without a sample.

    `groups` names the cluster of a row, `columns` the part and image model of a column.
    """

    human: Floats
    scores: tuple[Floats, ...]
    groups: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str], ...]


def scored_samples(
    run: Run, parts: Sequence[str], rated: tuple[str, ...], options: StatisticsOptions
) -> dict[str, dict[Cell, RatedSample]]:
    """Samples that count for a judge, by aspect that it rates; a sample without its score has a NaN.

    A sample counts if the judge scored every aspect that it rates.

    Args:
        run: the judge's.
        parts: all parts of the benchmark, in order.
        rated: the aspects that people rated.
        options: what failed verdicts are.
    """
    by_aspect: dict[str, dict[Cell, RatedSample]] = {}
    for part in (part for part in dict.fromkeys((*parts, *run.records)) if part in run.records):
        observed = [observe(judged) for judged in run.records[part]]
        observations, aspects = filled_observations(observed, run.aspects, rated if run.against_all else (), options)
        for observation in observations:
            scores, ratings = observation.scores, observation.ratings
            complete = set(aspects) <= scores.keys()
            cell = Cell(part, observation.uid, observation.image_model)
            for aspect in aspects:
                if ratings.get(aspect) and not any(map(math.isnan, ratings[aspect])):
                    # as `annotator_mean` rounds, so that equal means are equal
                    mean = round(math.fsum(ratings[aspect]) / len(ratings[aspect]), 9)
                    score = scores[aspect] if complete else np.nan
                    by_aspect.setdefault(aspect, {})[cell] = RatedSample(score, mean, observation.group)
    return by_aspect


def compared_on(aspect: str, judges: Mapping[str, ScoredSamples]) -> ComparedStatistic:
    """Judges compared on one aspect.

    An image model counts for two judges if both scored `LEAST_SAMPLES` samples of it or more, on which annotators vary.

    Args:
        aspect: the one that all of them rate.
        judges: by label, the samples that annotators rated, as `scored_samples` has them.
    """
    tables = _tables(judges)
    available_count = max(map(len, judges.values()), default=0)
    parts = list(dict.fromkeys(part for part, _ in tables.columns))
    systems = tuple(
        _system(label, scores, tables, parts, available_count)
        for label, scores in zip(judges, tables.scores, strict=True)
    )

    def pair(first: int, second: int) -> CommonSamplesStatistic:
        return _pair(first, second, tables, systems)

    return ComparedStatistic(
        parts[0] if len(parts) == 1 else ALL,
        aspect,
        f"Spearman's correlation with the ratings, Fisher's average over image models{_over_parts_text(parts)}",
        systems,
        pair,
        above_constant=correlates(pair),
    )


def _over_parts_text(parts: Sequence[str]) -> str:
    return f" and parts ({', '.join(parts)})" if len(parts) > 1 else ""


def _tables(judges: Mapping[str, ScoredSamples]) -> ScoreTables:
    """Tables of all samples that any judge was asked about; rows sorted, so that two judges' do not depend on a third."""
    cells = sorted({cell for samples in judges.values() for cell in samples})
    samples_by_cell = {cell: sample for samples in judges.values() for cell, sample in samples.items()}
    groups = {(cell.part, cell.uid): (cell.part, samples_by_cell[cell].group) for cell in cells}
    columns = sorted({(cell.part, cell.image_model) for cell in cells})
    row = {name: number for number, name in enumerate(groups)}
    column = {name: number for number, name in enumerate(columns)}

    def table(values: Mapping[Cell, float]) -> Floats:
        array = np.full((len(groups), len(columns)), np.nan)
        for cell, value in values.items():
            array[row[cell.part, cell.uid], column[cell.part, cell.image_model]] = value
        return array

    return ScoreTables(
        table({cell: sample.human for cell, sample in samples_by_cell.items()}),
        tuple(table({cell: sample.score for cell, sample in samples.items()}) for samples in judges.values()),
        tuple(groups.values()),
        tuple(columns),
    )


def _system(label: str, scores: Floats, tables: ScoreTables, parts: Sequence[str], available_count: int) -> System:
    n = int((~np.isnan(scores)).sum())
    reasons = _reasons(tables, scores, scores)
    with_value = {part for (part, _), reason in zip(tables.columns, reasons, strict=True) if not reason}
    undefined = "" if n else "no sample with a score"
    if n and not with_value:
        undefined = f"undefined for every image model ({reasons[0]})"
    return System(
        label, n, undefined, unranked_reason(n, available_count, [part for part in parts if part not in with_value])
    )


def _reasons(tables: ScoreTables, first: Floats, second: Floats) -> list[str]:
    """Reason why an image model has no value for two judges on their common samples; empty where it has."""
    common = ~np.isnan(first) & ~np.isnan(second)
    return [why_no_value(human[common_rows]) for human, common_rows in zip(tables.human.T, common.T, strict=True)]


def _pair(first: int, second: int, tables: ScoreTables, systems: Sequence[System]) -> CommonSamplesStatistic:
    first_scores, second_scores = tables.scores[first], tables.scores[second]
    reasons = _reasons(tables, first_scores, second_scores)
    columns = [column for column, reason in enumerate(reasons) if not reason]
    common = ~np.isnan(first_scores) & ~np.isnan(second_scores)
    names = ["/".join(column) for column in tables.columns]
    missing_models = [
        f"{name}: {reason}"
        for name, reason, any_common in zip(names, reasons, np.atleast_1d(np.any(common, axis=0)), strict=True)
        if reason and any_common
    ]
    if not columns:
        return CommonSamplesStatistic(
            0, reason=f"no image model with {LEAST_SAMPLES} common samples ({because(missing_models)})"
        )
    common = common[:, columns]
    rows = np.any(common, axis=1)

    def table(values: Floats) -> Floats:
        return np.where(common, values[:, columns], np.nan)[rows]

    statistic = CorrelationDifference(
        table(first_scores),
        table(second_scores),
        table(tables.human),
        [group for group, has in zip(tables.groups, np.atleast_1d(rows), strict=True) if has],
        [tables.columns[column][0] for column in columns],
    )
    note = f"left out for {systems[first].label} and {systems[second].label}: {because(missing_models)}"
    return CommonSamplesStatistic(
        int(common.sum()), statistic, notes=(note,) if missing_models and first != second else ()
    )
