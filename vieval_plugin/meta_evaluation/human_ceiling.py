"""A judge beside the annotators themselves: both correlated with the mean of the other annotators,
on the same samples.

A judge's number is its correlation with the mean of all annotators, and an annotator's with the
mean of one fewer, so that the two cannot be compared. Here each annotator is left out in turn, and
the judge and that annotator are both correlated with the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from vieval_plugin.meta_evaluation.image_model_agreement import (
    columns,
    filled_observations,
    fisher_average,
    fisher_over_parts,
    missing_value_reason,
    resampled_counts,
)
from vieval_plugin.meta_evaluation.observations import Observation, observe
from vieval_plugin.records import Run
from vieval_plugin.stats.agreement import annotator_mean
from vieval_plugin.stats.bootstrap import bias_corrected_interval
from vieval_plugin.stats.correlation import Floats, correlation, resampled_correlations
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

#: A correlation and its resamples.
Correlated: TypeAlias = tuple[float, Floats]


def compared_with_annotators(
    run: Run, aspect: str, rated: tuple[str, ...], options: StatisticsOptions
) -> Estimate | None:
    """Compare a judge with the annotators on one aspect; None where no sample has two annotators
    and a score.

    Args:
        run: the judge's.
        aspect: the one that both rate.
        rated: the aspects that people rated.
        options: what failed verdicts are, number of resamples, the seed.

    Returns:
        The judge's correlation with the other annotators, less that of an annotator; averaged over
        annotators, image models and parts by Fisher's z.
    """
    parts: list[tuple[Estimate, Estimate]] = []
    if not run.against_all:
        rated = ()
    for part, records in run.records.items():
        observations = [observe(judged) for judged in records]
        imputed, aspects = filled_observations(
            observations, run.aspects, rated, options
        )
        complete = [
            observation
            for observation in imputed
            if _counts(observation, aspects, aspect)
        ]
        parts += _part_ceiling(complete, aspect, f"{run.benchmark}/{part}", options)
    if not parts:
        return None
    judge, annotators = map(fisher_over_parts, zip(*parts, strict=True))
    value = judge.value - annotators.value
    difference = judge.resamples - annotators.resamples
    low, high = bias_corrected_interval(difference, value)
    return Estimate(
        value=value,
        low=low,
        high=high,
        resamples=difference,
        n=judge.n,
    )


def _counts(observation: Observation, aspects: Sequence[str], aspect: str) -> bool:
    ratings = observation.ratings.get(aspect, ())
    scored = set(aspects) <= observation.scores.keys()
    return scored and len(ratings) > 1 and not any(map(math.isnan, ratings))


def _part_ceiling(
    observations: Sequence[Observation],
    aspect: str,
    name: str,
    options: StatisticsOptions,
) -> Iterator[tuple[Estimate, Estimate]]:
    """The judge and the annotators in a part, over image models and annotators that are left
    out; nothing without any.
    """
    counts = resampled_counts(observations, name, options)
    sides: tuple[list[Correlated], list[Correlated]] = [], []
    for model_column in columns(observations, (), aspect).values():
        group_counts = counts(model_column.groups)
        for annotator, annotator_ratings in enumerate(model_column.ratings):
            mean_of_others = annotator_mean(
                np.delete(model_column.ratings, annotator, axis=0)
            )
            if missing_value_reason(mean_of_others):
                continue
            for side, values in zip(
                sides, (model_column.judge, annotator_ratings), strict=True
            ):
                value = correlation(mean_of_others, values)
                if math.isnan(value):
                    value = 0.0
                resamples = resampled_correlations(
                    mean_of_others, values, group_counts, constant_y_correlation=0.0
                )
                side.append((value, resamples))
    if sides[0]:
        n = len(observations)
        averages = []
        for side in sides:
            side_values = [value for value, _ in side]
            side_resamples = [resamples for _, resamples in side]
            averages.append(fisher_average(side_values, side_resamples, n, (), options))
        judge, annotators = averages
        yield judge, annotators
