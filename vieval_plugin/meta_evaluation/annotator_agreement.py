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
"""What stands in an annotator's place for the mean of all."""

WHOLE = "overall"
"""What stands in a dimension's place for the overall rating."""


@dataclass(frozen=True)
class Annotated:
    """What annotators rated: the aspect that holds the overall ratings, some dimensions beside it, how many raters."""

    dimensions: tuple[str, ...]
    overall: str
    raters: int

    @property
    def annotators(self) -> tuple[str, ...]:
        """Each annotator's number, from 1, and `avg` for the mean of all."""
        return (*map(str, range(1, self.raters + 1)), MEAN)


@dataclass(frozen=True)
class AnnotatorCorrelation:
    """What is correlated: on `overall` or a dimension, with one annotator or the mean of all (`avg`), and how."""

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


Wanted: TypeAlias = AnnotatorCorrelation | MeanGrade


def comparisons(dimensions: Sequence[str], annotators: Sequence[str]) -> tuple[AnnotatorCorrelation, ...]:
    """Each dimension with each annotator, by each coefficient.

    Args:
        dimensions: `overall` or names of dimensions.
        annotators: their numbers from 1, as text, or `avg`.

    >>> [str(one) for one in comparisons(["overall"], ["avg"])]
    ['overall_manual_avg_spearman', 'overall_manual_avg_kendall']
    """
    return tuple(AnnotatorCorrelation(*one) for one in product(dimensions, annotators, COEFFICIENTS))


@lru_cache(maxsize=16)
def annotator_agreement(
    observations: tuple[Observation, ...],
    aspects: tuple[str, ...],
    annotated: Annotated,
    wanted: tuple[Wanted, ...],
    name: str,
    options: StatisticsOptions,
) -> Summary:
    """A part's comparisons and means by name, with 95% intervals. Cached, because a host asks once for every metric.

    Args:
        observations: the part's samples, in any order.
        aspects: those that the judge rates. The overall ratings are compared with that aspect of the judge's, or with SC
            where the judge does not rate it.
        annotated: what the annotators rated.
        wanted: what to compare, and of which grades to give the mean.
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
    compared = [one for one in wanted if isinstance(one, AnnotatorCorrelation)]
    dimensions = dict.fromkeys(one.dimension for one in compared if one.dimension != WHOLE)
    filled = sorted(fill(observations, (*aspects, *dimensions), options), key=lambda o: o.uid)
    scored = [o for o in filled if headline in dict(o.scores)]
    return Summary(
        {},
        Counter(o.status for o in observations),
        options,
        {str(one): _compare(filled, annotated, one, headline, name, options) for one in compared}
        | {str(one): _mean(observations, one, name, options) for one in wanted if isinstance(one, MeanGrade)},
        scored=len(scored),
        exact=sum(o.exact for o in scored),
    )


def among_themselves(
    observations: Sequence[Observation],
    annotated: Annotated,
    wanted: AnnotatorCorrelation,
    others: bool,
    name: str,
    options: StatisticsOptions,
) -> Estimate:
    """An annotator's agreement with the mean of all, himself included, or with the mean of the `others`.

    The first is the upper bound that the authors print.

    Args:
        observations: all rated samples of the part, in any order.
        annotated: what the annotators rated.
        wanted: the dimension, the annotator (not `avg`) and the coefficient.
        others: whether he is left out of the mean.
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
    table = _ratings(rows, annotated, wanted.dimension, options)
    rater = int(wanted.annotator) - 1
    mean = mean_of_given(np.delete(table, rater, axis=0) if others else table)
    return _correlated(rows, table[rater], mean, wanted.coefficient, name, options)


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
    people = mean_of_given(_ratings(scored, annotated, WHOLE, options))
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
    aspect = annotated.overall if dimension == WHOLE else dimension
    absent = (math.nan,) * annotated.raters
    rows = [dict(o.ratings).get(aspect, absent) for o in observations]
    table = np.array(rows, dtype=float).reshape(-1, annotated.raters).T
    return impute_mean(table) if options.missing_ratings == "impute_mean" else table


def _compare(
    observations: Sequence[Observation],
    annotated: Annotated,
    wanted: AnnotatorCorrelation,
    headline: str,
    name: str,
    options: StatisticsOptions,
) -> Estimate:
    aspect = headline if wanted.dimension == WHOLE else wanted.dimension
    scored = [o for o in observations if aspect in dict(o.scores)]
    table = _ratings(scored, annotated, wanted.dimension, options)
    rated = mean_of_given(table) if wanted.annotator == MEAN else table[int(wanted.annotator) - 1]
    judged = np.array([dict(o.scores)[aspect] for o in scored], dtype=float)
    return _correlated(scored, judged, rated, wanted.coefficient, name, options)


def _mean(observations: Sequence[Observation], wanted: MeanGrade, name: str, options: StatisticsOptions) -> Estimate:
    """The mean over the samples that have the score; a failed verdict was not graded and is no 0, whatever the policy."""
    rows = sorted((o for o in observations if wanted.score in dict(o.scores)), key=lambda o: o.uid)
    values = np.array([dict(o.scores)[wanted.score] for o in rows], dtype=float)

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
    groups = [o.group for o, both in zip(observations, known, strict=True) if both]
    return estimated(correlated(x[known], y[known], groups, coefficient), name, options)
