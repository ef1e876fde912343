"""Agreement of a judge with each annotator of a benchmark and with their mean, overall and by dimension.

Source: Tu et al., Automatic Evaluation for Text-to-Image Generation (2024), Table 1: Spearman's rho and Kendall's tau-b
over all pairs of prompt and image. Overall the judge's O is compared, or SC of a judge without one. Intervals as in
alignment.py.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import Literal, TypeAlias, get_args

import numpy as np

from vieval_plugin import alignment
from vieval_plugin.data.t2i_eval_bench import OVERALL, RATERS
from vieval_plugin.judges import t2i_eval
from vieval_plugin.meta_evaluation import Estimate, Observation, Options, Summary, fill
from vieval_plugin.stats.agreement import impute_mean, mean_of_given
from vieval_plugin.stats.correlation import Floats

Annotator: TypeAlias = Literal["1", "2", "3", "avg"]
RankKind: TypeAlias = Literal["spearman", "kendall"]

ANNOTATORS: tuple[Annotator, ...] = get_args(Annotator)
KINDS: tuple[RankKind, ...] = get_args(RankKind)
MEAN: Annotator = "avg"
WHOLE = "overall"

_DIMENSIONS_OF = {"t2i_eval": t2i_eval.DIMENSIONS}


@dataclass(frozen=True)
class Comparison:
    """What is correlated: on `overall` or a dimension, with one annotator or the mean of all (`avg`), and how."""

    dimension: str
    annotator: Annotator
    kind: RankKind

    def __str__(self) -> str:
        return f"{self.dimension}_manual_{self.annotator}_{self.kind}"


@dataclass(frozen=True)
class Mean:
    """The mean of a score that the judge gives beside its aspects, such as the quality of its explanations."""

    score: str

    def __str__(self) -> str:
        return f"{self.score}_mean"


Wanted: TypeAlias = Comparison | Mean


def comparisons(dimensions: Sequence[str], annotators: Sequence[Annotator] = ANNOTATORS) -> tuple[Comparison, ...]:
    """Each dimension with each annotator, both ways."""
    return tuple(Comparison(*one) for one in product(dimensions, annotators, KINDS))


def of_judge(judge: str, graded: bool = False) -> tuple[Wanted, ...]:
    """What a judge's task reports: overall with each annotator and their mean, the dimensions it scores with the mean.

    Where its explanations are `graded`, their mean grades as well.
    """
    means = [Mean(score) for score in t2i_eval.QUALITIES] if graded and judge in _DIMENSIONS_OF else []
    return (*comparisons([WHOLE]), *comparisons(_DIMENSIONS_OF.get(judge, ()), [MEAN]), *means)


@lru_cache(maxsize=16)
def summarise(
    observations: tuple[Observation, ...],
    aspects: tuple[str, ...],
    wanted: tuple[Wanted, ...],
    name: str,
    options: Options = Options(),
) -> Summary:
    """A task's comparisons and means by name, with intervals; `aspects` are those that the judge rates.

    Cached, because a host asks once for every metric.
    """
    headline = OVERALL if OVERALL in aspects else alignment.ASPECT
    compared = [one for one in wanted if isinstance(one, Comparison)]
    dimensions = dict.fromkeys(one.dimension for one in compared if one.dimension != WHOLE)
    filled = sorted(fill(observations, (*aspects, *dimensions), options), key=lambda o: o.uid)
    scored = [o for o in filled if headline in dict(o.scores)]
    return Summary(
        {},
        Counter(o.status for o in observations),
        options,
        {str(one): _compare(filled, one, headline, name, options) for one in compared}
        | {str(one): _mean(observations, one, name, options) for one in wanted if isinstance(one, Mean)},
        scored=len(scored),
        exact=sum(o.exact for o in scored),
    )


def among_themselves(
    observations: Sequence[Observation], wanted: Comparison, others: bool, name: str, options: Options
) -> Estimate:
    """An annotator's agreement with the mean of all, himself included, or with the mean of the `others`.

    The first is the upper bound that the authors print.
    """
    rows = sorted(observations, key=lambda o: o.uid)
    table = ratings(rows, wanted.dimension, options)
    rater = int(wanted.annotator) - 1
    mean = mean_of_given(np.delete(table, rater, axis=0) if others else table)
    return _correlated(rows, table[rater], mean, wanted.kind, name, options)


def ratings(observations: Sequence[Observation], dimension: str, options: Options) -> Floats:
    """Ratings of shape (raters, observations) under the policy for those that are missing, NaN where none is left."""
    aspect = OVERALL if dimension == WHOLE else dimension
    absent = (math.nan,) * RATERS
    table = np.array([dict(o.ratings).get(aspect, absent) for o in observations], dtype=float).reshape(-1, RATERS).T
    return impute_mean(table) if options.missing_ratings == "impute_mean" else table


def _compare(
    observations: Sequence[Observation], wanted: Comparison, headline: str, name: str, options: Options
) -> Estimate:
    aspect = headline if wanted.dimension == WHOLE else wanted.dimension
    scored = [o for o in observations if aspect in dict(o.scores)]
    table = ratings(scored, wanted.dimension, options)
    rated = mean_of_given(table) if wanted.annotator == MEAN else table[int(wanted.annotator) - 1]
    judged = np.array([dict(o.scores)[aspect] for o in scored], dtype=float)
    return _correlated(scored, judged, rated, wanted.kind, name, options)


def _mean(observations: Sequence[Observation], wanted: Mean, name: str, options: Options) -> Estimate:
    """The mean over the samples that have the score."""
    rows = sorted((o for o in observations if wanted.score in dict(o.scores)), key=lambda o: o.uid)
    values = np.array([dict(o.scores)[wanted.score] for o in rows], dtype=float)
    mean = float(values.mean()) if rows else math.nan
    resample = partial(_resampled_mean, values)
    return alignment.with_interval(
        (mean, resample, alignment.clusters(rows), "no explanation was graded"), name, options
    )


def _resampled_mean(values: Floats, counts: alignment.Counts) -> Floats:
    resampled: Floats = counts @ values / counts.sum(axis=1)
    return resampled


def _correlated(
    observations: Sequence[Observation], x: Floats, y: Floats, kind: RankKind, name: str, options: Options
) -> Estimate:
    """Correlation over the samples for which both are known."""
    known = ~np.isnan(x) & ~np.isnan(y)
    drawn = [uid for uid, both in zip(alignment.clusters(observations), known, strict=True) if both]
    return alignment.with_interval(alignment.correlated(x[known], y[known], drawn, kind), name, options)
