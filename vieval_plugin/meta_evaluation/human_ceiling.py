"""A judge beside the annotators themselves: both correlated with the mean of the other annotators, on the same samples.

A judge's number is its correlation with the mean of all annotators, and an annotator's with the mean of one fewer, so
that the two cannot be compared. Here each annotator is left out in turn, and the judge and that annotator are both
correlated with the others.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vieval_plugin.meta_evaluation.findings import CeilingComparison
from vieval_plugin.meta_evaluation.image_model_agreement import filled_observations, why_no_value
from vieval_plugin.meta_evaluation.observations import Observation, observe
from vieval_plugin.records import Run
from vieval_plugin.stats.agreement import annotator_mean
from vieval_plugin.stats.bootstrap import Ints, bias_corrected_interval, cluster_counts, factorize
from vieval_plugin.stats.correlation import Floats, correlation, fisher_mean, fisher_mean_over, resampled_correlations
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions


class _Correlations(NamedTuple):
    """Values and resamples of the judge and of the annotators in a part, an entry an image model and annotator."""

    judge: list[float]
    annotators: list[float]
    judge_resamples: list[Floats]
    annotator_resamples: list[Floats]


def compared_with_annotators(
    run: Run, aspect: str, rated: tuple[str, ...], options: StatisticsOptions
) -> CeilingComparison | None:
    """Compare a judge with the annotators on one aspect; None where no sample has two annotators and a score.

    Args:
        run: the judge's.
        aspect: the one that both rate.
        rated: the aspects that people rated.
        options: what failed verdicts are, number of resamples, the seed.

    Returns:
        Correlations in [-1, 1], averaged over annotators, image models and parts by Fisher's z.
    """
    parts: list[_Correlations] = []
    n = 0
    for part, records in run.records.items():
        imputed, aspects = filled_observations(
            [observe(judged) for judged in records], run.aspects, rated if run.against_all else (), options
        )
        complete = [observation for observation in imputed if _counts(observation, aspects, aspect)]
        seed = (options.seed, zlib.crc32(f"{run.benchmark}/{part}".encode()))
        if complete and (correlations := _of_part(complete, aspect, options.draws, seed)).judge:
            parts.append(correlations)
            n += len(complete)
    if not parts:
        return None
    judge, annotators = (
        fisher_mean([fisher_mean(values) for values in side])
        for side in ([part.judge for part in parts], [part.annotators for part in parts])
    )
    resamples = [
        fisher_mean_over([fisher_mean_over(values) for values in side])
        for side in ([part.judge_resamples for part in parts], [part.annotator_resamples for part in parts])
    ]
    value, difference = judge - annotators, resamples[0] - resamples[1]
    ends = bias_corrected_interval(difference, value)
    return CeilingComparison(judge, annotators, Estimate(value, *ends, difference, n))


def _counts(observation: Observation, aspects: Sequence[str], aspect: str) -> bool:
    ratings = observation.ratings.get(aspect, ())
    scored = set(aspects) <= observation.scores.keys()
    return scored and len(ratings) > 1 and not any(map(math.isnan, ratings))


def _of_part(observations: Sequence[Observation], aspect: str, resamples: int, seed: tuple[int, int]) -> _Correlations:
    ordered = sorted(observations, key=lambda observation: (observation.image_model, observation.uid))
    names, indices = factorize(sorted({observation.group for observation in ordered}))
    group_counts = cluster_counts([str(name) for name in names], resamples, seed)
    index_of = {name: int(index) for name, index in zip(names, indices, strict=True)}
    correlations = _Correlations([], [], [], [])
    for model in dict.fromkeys(observation.image_model for observation in ordered):
        rows = [observation for observation in ordered if observation.image_model == model]
        ratings = np.array([row.ratings[aspect] for row in rows], dtype=float).T
        scores = np.array([row.scores[aspect] for row in rows], dtype=float)
        _add(correlations, ratings, scores, group_counts[:, [index_of[row.group] for row in rows]])
    return correlations


def _add(correlations: _Correlations, ratings: Floats, scores: Floats, counts: Ints) -> None:
    """Add an image model: one entry for each annotator that is left out."""
    for annotator, annotator_ratings in enumerate(ratings):
        mean_of_others = annotator_mean(np.delete(ratings, annotator, axis=0))
        if why_no_value(mean_of_others):
            continue
        for values, side, side_resamples in (
            (scores, correlations.judge, correlations.judge_resamples),
            (annotator_ratings, correlations.annotators, correlations.annotator_resamples),
        ):
            value = correlation(mean_of_others, values)
            side.append(0.0 if math.isnan(value) else value)
            side_resamples.append(resampled_correlations(mean_of_others, values, counts, constant_y_correlation=0.0))
