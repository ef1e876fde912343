"""Agreement of a judge with each annotator of a benchmark and with their mean, overall and by
dimension.

Source: Tu et al., Automatic Evaluation for Text-to-Image Generation (2024), Table 1: Spearman's rho
and Kendall's tau-b over all pairs of prompt and image.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Literal, TypeAlias, get_args

import numpy as np

from vieval_plugin.meta_evaluation.common_items import JudgedItem, PairedTestSpec
from vieval_plugin.meta_evaluation.estimates import (
    Computed,
    computed_correlation,
    computed_mean,
)
from vieval_plugin.meta_evaluation.label_statistics import ASPECT
from vieval_plugin.meta_evaluation.observations import Observation, apply_failure_policy
from vieval_plugin.meta_evaluation.statistics import Rating, Statistic
from vieval_plugin.stats.agreement import impute_mean, mean_of_known
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.options import StatisticsOptions

RankCoefficient: TypeAlias = Literal["spearman", "kendall"]

COEFFICIENTS: tuple[RankCoefficient, ...] = get_args(RankCoefficient)
#: The annotator of correlations with the mean of all.
MEAN = "avg"

#: The dimension of overall ratings.
OVERALL = "overall"

_PRIMARY = (OVERALL, MEAN, "spearman")


@dataclass(frozen=True)
class Annotated:
    """Ratings of several annotators: the aspect of overall ratings, dimensions, the number of
    annotators.
    """

    dimensions: tuple[str, ...]
    overall: str
    annotator_count: int

    @property
    def annotators(self) -> tuple[str, ...]:
        """Each annotator's number, from 1, and `avg` for the mean of all."""
        return (*map(str, range(1, self.annotator_count + 1)), MEAN)


@dataclass(frozen=True)
class AnnotatedRows:
    """A part's samples in uid order: as they were judged, and with failed verdicts imputed.

    `overall` is the judge's aspect that is compared with the overall ratings.
    """

    judged: tuple[Observation, ...]
    imputed: tuple[Observation, ...]
    annotated: Annotated
    overall: str
    options: StatisticsOptions

    @classmethod
    def from_observations(
        cls,
        observations: Sequence[Observation],
        rating: Rating,
        annotated: Annotated,
        options: StatisticsOptions,
    ) -> AnnotatedRows:
        """Return those of a part's observations.

        A judge's overall aspect is that of the overall ratings, or SC where the judge does not rate
        that.
        """
        dimensions = (
            dimension
            for dimension in annotated.dimensions
            if dimension in rating.dimensions
        )
        judged = tuple(sorted(observations, key=lambda observation: observation.uid))
        imputed = tuple(
            apply_failure_policy(judged, (*rating.aspects, *dimensions), options)
        )
        overall = annotated.overall
        if annotated.overall not in rating.aspects:
            overall = ASPECT
        return cls(judged, imputed, annotated, overall, options)

    @property
    def scored(self) -> tuple[Observation, ...]:
        """The samples with an overall score."""
        return tuple(
            observation
            for observation in self.imputed
            if self.overall in observation.scores
        )

    def ratings(self, observations: Sequence[Observation], dimension: str) -> Floats:
        """Ratings of shape (raters, observations) under the policy for those that are missing,
        NaN where none is left.
        """
        aspect = dimension
        if dimension == OVERALL:
            aspect = self.annotated.overall
        unrated = (math.nan,) * self.annotated.annotator_count
        rows = [
            observation.ratings.get(aspect, unrated) for observation in observations
        ]
        table = (
            np.array(rows, dtype=float).reshape(-1, self.annotated.annotator_count).T
        )
        return (
            impute_mean(table)
            if self.options.missing_ratings == "impute_mean"
            else table
        )


def metric_stem(dimension: str, annotator: str, coefficient: str) -> str:
    """The name of a correlation.

    >>> metric_stem("overall", "avg", "spearman")
    'overall_manual_avg_spearman'
    """
    return f"{dimension}_manual_{annotator}_{coefficient}"


def correlations(
    dimensions: Sequence[str], annotators: Sequence[str]
) -> tuple[Statistic, ...]:
    """A judge's correlations on each dimension with each annotator, by each coefficient.

    Args:
        dimensions: `overall` or names of dimensions.
        annotators: their numbers from 1, as text, or `avg` for the mean of all.

    >>> [statistic.name for statistic in correlations(["overall"], ["avg"])]
    ['overall_manual_avg_spearman', 'overall_manual_avg_kendall']
    """
    statistics = []
    for key in product(dimensions, annotators, COEFFICIENTS):
        is_primary = key == _PRIMARY
        test = None
        if is_primary:
            test = PairedTestSpec(_overall_judged_items, "spearman")
        statistic = Statistic(
            metric_stem(*key),
            partial(_correlation_with_annotator, *key),
            primary=is_primary,
            aspect=key[0],
            ends=(-1.0, 1.0),
            constant=0.0,
            paired=test,
        )
        statistics.append(statistic)
    return tuple(statistics)


def mean_grade(score: str) -> Statistic:
    """The mean of a score that the judge gives beside its aspects, such as the quality of its
    explanations.

    It is over the samples that have the score; a failed verdict was not graded and is no 0,
    whatever the policy.
    """

    def compute(rows: AnnotatedRows) -> Computed:
        graded = [
            observation for observation in rows.judged if score in observation.scores
        ]
        grades = [observation.scores[score] for observation in graded]
        clusters = [observation.group for observation in graded]
        return computed_mean(grades, clusters, "no explanation was graded")

    return Statistic(f"{score}_mean", compute)


def annotator_correlation(
    dimensions: Sequence[str], annotators: Sequence[str], leave_one_out: bool
) -> tuple[Statistic, ...]:
    """An annotator's correlation with the mean of all annotators, or with the mean of the others
    (`leave_one_out`).

    The first is the upper bound that the authors print.

    Args:
        dimensions, annotators: as for `correlations`, without the mean of all.
        leave_one_out: True where the annotator is left out of the mean.
    """
    return tuple(
        Statistic(
            metric_stem(*key),
            partial(_correlation_among_annotators, *key, leave_one_out),
            aspect=key[0],
        )
        for key in product(dimensions, annotators, COEFFICIENTS)
    )


def _correlation_with_annotator(
    dimension: str, annotator: str, coefficient: RankCoefficient, rows: AnnotatedRows
) -> Computed:
    aspect = dimension
    if dimension == OVERALL:
        aspect = rows.overall
    scored = [
        observation for observation in rows.imputed if aspect in observation.scores
    ]
    table = rows.ratings(scored, dimension)
    rated = mean_of_known(table) if annotator == MEAN else table[int(annotator) - 1]
    judged = np.array(
        [observation.scores[aspect] for observation in scored], dtype=float
    )
    return _correlation_where_known(scored, judged, rated, coefficient)


def _correlation_among_annotators(
    dimension: str,
    annotator: str,
    coefficient: RankCoefficient,
    leave_one_out: bool,
    rows: AnnotatedRows,
) -> Computed:
    table = rows.ratings(rows.judged, dimension)
    index = int(annotator) - 1
    averaged = table
    if leave_one_out:
        averaged = np.delete(table, index, axis=0)
    mean = mean_of_known(averaged)
    return _correlation_where_known(rows.judged, table[index], mean, coefficient)


def _correlation_where_known(
    observations: Sequence[Observation],
    x: Floats,
    y: Floats,
    coefficient: RankCoefficient,
) -> Computed:
    """Correlation over the samples for which both are known."""
    has_both = ~np.isnan(x) & ~np.isnan(y)
    clusters = [
        observation.group
        for observation, both_known in zip(observations, has_both, strict=True)
        if both_known
    ]
    return computed_correlation(x[has_both], y[has_both], clusters, coefficient)


def _overall_judged_items(rows: AnnotatedRows) -> dict[str, JudgedItem]:
    """The judge's overall scores beside the mean of all annotators, by sample, where both are
    known.
    """
    means = mean_of_known(rows.ratings(rows.scored, OVERALL))
    judged_items = {}
    for observation, mean in zip(rows.scored, means.tolist(), strict=True):
        if not math.isnan(mean):
            score = observation.scores[rows.overall]
            name = f"{observation.uid}/{observation.image_model}"
            judged_items[name] = JudgedItem(observation.group, score, mean)
    return judged_items
