"""Agreement of a judge with each annotator of a benchmark and with their mean, overall and by dimension.

Source: Tu et al., Automatic Evaluation for Text-to-Image Generation (2024), Table 1: Spearman's rho and Kendall's tau-b
over all pairs of prompt and image. Intervals as in label_statistics.py.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal, TypeAlias, get_args

import numpy as np

from vieval_plugin.meta_evaluation.common_items import JudgedItem
from vieval_plugin.meta_evaluation.estimates import Computed, Counts, correlated, estimated
from vieval_plugin.meta_evaluation.label_statistics import ASPECT
from vieval_plugin.meta_evaluation.observations import Estimate, Observation, Summary, fill
from vieval_plugin.stats.agreement import impute_mean, mean_of_given
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.options import StatisticsOptions

RankCoefficient: TypeAlias = Literal["spearman", "kendall"]

COEFFICIENTS: tuple[RankCoefficient, ...] = get_args(RankCoefficient)
MEAN = "avg"
"""The annotator of correlations with the mean of all."""

OVERALL = "overall"
"""The dimension of overall ratings."""


@dataclass(frozen=True)
class Annotated:
    """Ratings of several annotators: the aspect of overall ratings, dimensions, the number of annotators."""

    dimensions: tuple[str, ...]
    overall: str
    raters: int

    @property
    def annotators(self) -> tuple[str, ...]:
        """Each annotator's number, from 1, and `avg` for the mean of all."""
        return (*map(str, range(1, self.raters + 1)), MEAN)


@dataclass(frozen=True)
class AnnotatorCorrelation:
    """A correlation on `overall` or a dimension, with one annotator or the mean of all (`avg`)."""

    dimension: str
    annotator: str
    coefficient: RankCoefficient

    def __str__(self) -> str:
        return f"{self.dimension}_manual_{self.annotator}_{self.coefficient}"


@dataclass(frozen=True)
class MeanGrade:
    """The mean of a score that the judge gives beside its aspects, such as the quality of its explanations."""

    score: str

    def __str__(self) -> str:
        return f"{self.score}_mean"


RequestedStatistic: TypeAlias = AnnotatorCorrelation | MeanGrade


def comparisons(dimensions: Sequence[str], annotators: Sequence[str]) -> tuple[AnnotatorCorrelation, ...]:
    """Each dimension with each annotator, by each coefficient.

    Args:
        dimensions: `overall` or names of dimensions.
        annotators: their numbers from 1, as text, or `avg`.

    >>> [str(one) for one in comparisons(["overall"], ["avg"])]
    ['overall_manual_avg_spearman', 'overall_manual_avg_kendall']
    """
    return tuple(AnnotatorCorrelation(*combination) for combination in product(dimensions, annotators, COEFFICIENTS))


@lru_cache(maxsize=16)
def annotator_agreement(
    observations: tuple[Observation, ...],
    aspects: tuple[str, ...],
    annotated: Annotated,
    requested: tuple[RequestedStatistic, ...],
    name: str,
    options: StatisticsOptions,
) -> Summary:
    """A part's comparisons and means by name, with 95% intervals. Cached, because a host asks once for every metric.

    Args:
        observations: the part's samples, in any order.
        aspects: those that the judge rates. The overall ratings are compared with that aspect of the judge's, or with
            SC where the judge does not rate it.
        annotated: what the annotators rated.
        requested: what to compare, and of which grades to give the mean.
        name: that of the part (`benchmark/part`); it joins the seed, so that parts are resampled independently.
        options: what failed verdicts and ratings not given are, how many draws, the seed.

    Returns:
        An `Estimate` a comparison, in [-1, 1], and a mean grade, in [0, 1]; NaN with a reason where undefined.

    Source: Tu et al. (2024), Table 1.

    >>> from vieval_plugin.judges.protocol import Status
    >>> rows = tuple(Observation("m", str(n), (("O", (n, 2.0)),), (("O", n / 4),), Status.OK) for n in range(4))
    >>> first = AnnotatorCorrelation("overall", "1", "spearman")
    >>> found = annotator_agreement(rows, ("O",), Annotated((), "O", 2), (first,), "b/all", StatisticsOptions(draws=10))
    >>> found.estimates["overall_manual_1_spearman"].value
    1.0
    """
    headline = _headline(annotated, aspects)
    compared = [statistic for statistic in requested if isinstance(statistic, AnnotatorCorrelation)]
    dimensions = dict.fromkeys(statistic.dimension for statistic in compared if statistic.dimension != OVERALL)
    observations_filled = sorted(fill(observations, (*aspects, *dimensions), options), key=lambda o: o.uid)
    scored = [o for o in observations_filled if headline in dict(o.scores)]
    return Summary(
        {},
        Counter(o.status for o in observations),
        options,
        {
            str(correlation): _compare(observations_filled, annotated, correlation, headline, name, options)
            for correlation in compared
        }
        | {
            str(grade): _mean(observations, grade, name, options) for grade in requested if isinstance(grade, MeanGrade)
        },
        scored=len(scored),
        exact=sum(o.exact for o in scored),
    )


def among_themselves(
    observations: Sequence[Observation],
    annotated: Annotated,
    correlation: AnnotatorCorrelation,
    leave_one_out: bool,
    name: str,
    options: StatisticsOptions,
) -> Estimate:
    """An annotator's agreement with the mean of all annotators, or with the mean of the others (`leave_one_out`).

    The first is the upper bound that the authors print.

    Args:
        observations: all rated samples of the part, in any order.
        annotated: what the annotators rated.
        correlation: the dimension, the annotator (not `avg`) and the coefficient.
        leave_one_out: True where the annotator is left out of the mean.
        name: as for `annotator_agreement`.
        options: what ratings not given are, how many draws, the seed.

    Returns:
        The coefficient, in [-1, 1]; NaN with a reason where it is undefined.

    >>> from vieval_plugin.judges.protocol import Status
    >>> rated = [(0.0, 1.0), (1.0, 2.0), (2.0, 0.0)]
    >>> rows = [Observation("m", str(n), (("O", both),), (), Status.OK) for n, both in enumerate(rated)]
    >>> first, options = AnnotatorCorrelation("overall", "1", "spearman"), StatisticsOptions(draws=10)
    >>> among_themselves(rows, Annotated((), "O", 2), first, True, "b/all", options).value
    -0.5
    """
    rows = sorted(observations, key=lambda o: o.uid)
    table = _ratings(rows, annotated, correlation.dimension, options)
    rater = int(correlation.annotator) - 1
    mean = mean_of_given(np.delete(table, rater, axis=0) if leave_one_out else table)
    return _correlated(rows, table[rater], mean, correlation.coefficient, name, options)


def overall_items(
    observations: Sequence[Observation], aspects: tuple[str, ...], annotated: Annotated, options: StatisticsOptions
) -> dict[str, JudgedItem]:
    """The judge's overall scores beside the mean of all annotators, by sample, where both are known.

    Args:
        observations: the part's samples, in any order.
        aspects: those that the judge rates; as for `annotator_agreement`.
        annotated: what the annotators rated.
        options: what failed verdicts and ratings not given are.
    """
    headline = _headline(annotated, aspects)
    scored = [o for o in fill(observations, aspects, options) if headline in dict(o.scores)]
    people = mean_of_given(_ratings(scored, annotated, OVERALL, options))
    return {
        f"{o.uid}/{o.image_model}": JudgedItem(o.group, dict(o.scores)[headline], mean)
        for o, mean in zip(scored, people.tolist(), strict=True)
        if not math.isnan(mean)
    }


def _headline(annotated: Annotated, aspects: tuple[str, ...]) -> str:
    return annotated.overall if annotated.overall in aspects else ASPECT


def _ratings(
    observations: Sequence[Observation], annotated: Annotated, dimension: str, options: StatisticsOptions
) -> Floats:
    """Ratings of shape (raters, observations) under the policy for those that are missing, NaN where none is left."""
    aspect = annotated.overall if dimension == OVERALL else dimension
    unrated = (math.nan,) * annotated.raters
    rows = [dict(o.ratings).get(aspect, unrated) for o in observations]
    table = np.array(rows, dtype=float).reshape(-1, annotated.raters).T
    return impute_mean(table) if options.missing_ratings == "impute_mean" else table


def _compare(
    observations: Sequence[Observation],
    annotated: Annotated,
    correlation: AnnotatorCorrelation,
    headline: str,
    name: str,
    options: StatisticsOptions,
) -> Estimate:
    aspect = headline if correlation.dimension == OVERALL else correlation.dimension
    scored = [o for o in observations if aspect in dict(o.scores)]
    table = _ratings(scored, annotated, correlation.dimension, options)
    rated = mean_of_given(table) if correlation.annotator == MEAN else table[int(correlation.annotator) - 1]
    judged = np.array([dict(o.scores)[aspect] for o in scored], dtype=float)
    return _correlated(scored, judged, rated, correlation.coefficient, name, options)


def _mean(observations: Sequence[Observation], grade: MeanGrade, name: str, options: StatisticsOptions) -> Estimate:
    """The mean over the samples that have the score; a failed verdict was not graded and is no 0, whatever the policy."""
    rows = sorted((o for o in observations if grade.score in dict(o.scores)), key=lambda o: o.uid)
    values = np.array([dict(o.scores)[grade.score] for o in rows], dtype=float)

    def resampled(counts: Counts) -> Floats:
        return np.asarray(counts @ values / counts.sum(axis=1))

    mean = float(values.mean()) if rows else math.nan
    return estimated(Computed(mean, resampled, [o.group for o in rows], "no explanation was graded"), name, options)


def _correlated(
    observations: Sequence[Observation],
    x: Floats,
    y: Floats,
    coefficient: RankCoefficient,
    name: str,
    options: StatisticsOptions,
) -> Estimate:
    """Correlation over the samples for which both are known."""
    known = ~np.isnan(x) & ~np.isnan(y)
    groups = [o.group for o, is_known in zip(observations, known, strict=True) if is_known]
    return estimated(correlated(x[known], y[known], groups, coefficient), name, options)
