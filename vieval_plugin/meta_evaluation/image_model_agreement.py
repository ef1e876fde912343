"""Agreement between a judge's verdicts and human ratings, per image model, per part and over parts.

Protocols: `paper` repeats the published computation, `fisher` is the corrected default (see
stats/correlation.py). Both use only samples for which every aspect of the judge was scored.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import chain, combinations
from typing import TypeAlias

import numpy as np

from vieval_plugin.meta_evaluation.estimates import (
    Counts,
    bias_corrected,
    sum_over_parts,
)
from vieval_plugin.meta_evaluation.observations import (
    Observation,
    against_all,
    apply_failure_policy,
)
from vieval_plugin.meta_evaluation.statistics import Statistic
from vieval_plugin.stats.agreement import (
    annotator_mean,
    krippendorff_alpha,
    leave_one_out,
    leave_one_out_resampled,
)
from vieval_plugin.stats.bootstrap import cluster_counts, grouped, interval
from vieval_plugin.stats.correlation import (
    Floats,
    correlation,
    fisher_mean,
    fisher_mean_over,
    paper_mean,
    resampled_correlations,
    undefined,
)
from vieval_plugin.stats.decisions import LEAST_FOR_A_CORRELATION
from vieval_plugin.stats.estimate import Estimate, ImageModelCoverage
from vieval_plugin.stats.generator_pairs import PairAgreement, pair_agreement
from vieval_plugin.stats.options import StatisticsOptions

#: Agreement on an aspect, averaged over image models in [-1, 1]: the corrected average, and the
#: published one.
Agreement: TypeAlias = tuple[Estimate, Estimate]


@dataclass(frozen=True)
class Columns:
    """Samples of one image model, in uid order."""

    #: What each is resampled together with.
    groups: tuple[str, ...]
    #: Ratings, shape (raters, samples), on the benchmark's own scale.
    ratings: Floats
    #: The judge's scores, in [0, 1].
    judge: Floats

    def human(self, added_last: int | None = None) -> Floats:
        """Return human means; `added_last` as for `stats.agreement.annotator_mean`."""
        if self.groups:
            return annotator_mean(self.ratings, added_last)
        return np.zeros(0)


@dataclass(frozen=True, eq=False)
class ImageModelRows:
    """A part's samples as they are compared, failed verdicts imputed, on some aspects.

    `judged` are the samples as they were judged, `name` is that of the part (`benchmark/part`) and
    joins the seed, `added_last` the index of the annotator whose O the published code adds last,
    from 0.
    """

    judged: Sequence[Observation]
    imputed: Sequence[Observation]
    aspects: tuple[str, ...]
    name: str
    added_last: int | None
    options: StatisticsOptions

    @property
    def scored(self) -> list[Observation]:
        """The samples with a score."""
        return [observation for observation in self.judged if observation.scores]

    @cached_property
    def columns(self) -> Mapping[str, Mapping[str, Columns]]:
        """The columns to correlate, by aspect and image model."""
        return {
            aspect: columns(self.imputed, self.aspects, aspect)
            for aspect in self.aspects
        }


def agreement_statistics(aspect: str) -> tuple[Statistic, ...]:
    """Agreement on an aspect, averaged over image models both ways, and the number of samples
    behind it.

    Source: Ku et al., VIEScore (ACL 2024), "Meta-evaluation"; the order of operations is that of
    its released code.

    >>> from vieval_plugin.judges.protocol import Status
    >>> rows = [Observation("model", str(n), {"SC": (n / 12,)}, {"SC": (n / 12) ** 2}, Status.OK) for n in range(12)]
    >>> of = ImageModelRows(rows, rows, ("SC",), "mine/all", None, StatisticsOptions(draws=10))
    >>> [round(statistic.compute(of).value, 4) for statistic in agreement_statistics("SC")]
    [0.9999, 0.7616, 12.0]
    """

    def count(rows: ImageModelRows) -> Estimate:
        return Estimate(float(_sample_count(aspect, rows)))

    return (
        Statistic(
            aspect,
            partial(_corrected, aspect),
            "fisher",
            over_parts=fisher_over_parts,
            primary=True,
            aspect=aspect,
            ends=(-1.0, 1.0),
            constant=0.0,
            least_samples=LEAST_FOR_A_CORRELATION,
        ),
        Statistic(
            aspect,
            partial(_paper, aspect),
            "paper",
            interval=False,
            over_parts=paper_over_parts,
            aspect=aspect,
        ),
        Statistic(aspect, count, "count", interval=False, over_parts=sum_over_parts),
    )


def agreement(rows: ImageModelRows, aspect: str) -> Agreement:
    """A judge's agreement on an aspect, averaged both ways."""
    return _corrected(aspect, rows), _paper(aspect, rows)


def agreement_over_parts(parts: Sequence[Agreement]) -> Agreement:
    """Both averages over a benchmark's parts."""
    corrected, paper = zip(*parts, strict=True)
    return fisher_over_parts(corrected), paper_over_parts(paper)


def consistency(aspect: str) -> Statistic:
    """Krippendorff's alpha of repeated verdicts on an aspect, each time of judging a rater."""
    return Statistic(
        aspect, partial(_consistency, aspect), "consistency", interval=False
    )


def filled_observations(
    observations: Sequence[Observation],
    aspects: tuple[str, ...],
    rated: tuple[str, ...],
    options: StatisticsOptions,
) -> tuple[list[Observation], tuple[str, ...]]:
    """Observations as they are compared, failures imputed, and the aspects that they are compared
    on.

    Args:
        observations: in any order.
        aspects: those that the judge rates.
        rated: what people rated, where the judge's one score is compared with all of it; else
            empty.
        options: what failed verdicts are.
    """
    filled_rows = apply_failure_policy(observations, aspects, options)
    if rated:
        return (against_all(filled_rows, aspects[0], rated), rated)
    return (filled_rows, aspects)


def _corrected(aspect: str, rows: ImageModelRows) -> Estimate:
    counts = resampled_counts(rows.judged, rows.name, rows.options)
    values = []
    resampled = []
    reasons = []
    constant = []
    samples = 0
    for model, model_column in rows.columns[aspect].items():
        human = model_column.human()
        reason = missing_value_reason(human)
        if reason:
            reasons.append(f"{model}: {reason}")
            continue
        judged = model_column.judge
        value = correlation(human, judged)
        if math.isnan(value):
            constant.append(f"{model}: all scores of the judge are equal")
            value = 0.0
        values.append(value)
        samples += len(model_column.groups)
        group_counts = counts(model_column.groups)
        resampled.append(
            resampled_correlations(
                human, judged, group_counts, constant_y_correlation=0.0
            )
        )
    n = _sample_count(aspect, rows)
    average = fisher_average(values, resampled, n, reasons, rows.options)
    parts = 1 if values else 0
    coverage = ImageModelCoverage(
        image_models=len(values),
        all_image_model_count=len(rows.columns[aspect]),
        parts=parts,
        all_part_count=1,
        samples=samples,
    )
    return replace(average, zeros=tuple(constant), coverage=coverage)


def fisher_average(
    values: Sequence[float],
    resampled: Sequence[Floats],
    n: int,
    reasons: Sequence[str],
    options: StatisticsOptions,
) -> Estimate:
    """Fisher's average of correlations, with the interval of the averages of their resamples."""
    averages = np.full(options.draws, np.nan)
    if resampled:
        averages = fisher_mean_over(resampled)
    low, high = interval(averages)
    return Estimate(
        value=fisher_mean(values),
        low=low,
        high=high,
        resamples=averages,
        n=n,
        reasons=tuple(reasons),
    )


def _paper(aspect: str, rows: ImageModelRows) -> Estimate:
    model_columns = rows.columns[aspect]
    reasons = []
    for model, column in model_columns.items():
        why = undefined_reason(column.human(), column.judge)
        if why:
            reasons.append(f"{model}: {why}")
    value = paper_mean(
        correlation(column.human(rows.added_last), column.judge)
        for column in model_columns.values()
    )
    return Estimate(value, n=_sample_count(aspect, rows), reasons=tuple(reasons))


def _sample_count(aspect: str, rows: ImageModelRows) -> int:
    return sum(len(column.groups) for column in rows.columns[aspect].values())


def _consistency(aspect: str, rows: ImageModelRows) -> Estimate:
    """NaN where no sample was judged twice."""
    times = max((len(observation.repeats) for observation in rows.imputed), default=0)
    if times < 2:
        return Estimate(math.nan)
    unscored = [math.nan] * times
    table = []
    for observation in rows.imputed:
        scores = [repeat.get(aspect, math.nan) for repeat in observation.repeats]
        table.append(scores or unscored)
    return Estimate(krippendorff_alpha(np.array(table).T, "interval"))


def human_agreement(
    observations: Sequence[Observation],
    aspects: Sequence[str],
    name: str,
    options: StatisticsOptions,
) -> dict[str, Agreement]:
    """Leave-one-out agreement of human raters, averaged over raters and image models: the ceiling
    of a part.

    Args:
        observations: all rated samples of the part, in any order, each with as many raters; two or
            more.
        aspects: those that people rated.
        name: that of the part (`benchmark/part`); it joins the seed.
        options: how many draws, and the seed.

    Returns:
        By aspect the corrected average and the published one, in [-1, 1]; NaN where every rater is
        constant.

    Raises:
        ValueError: for fewer than two raters.

    Source: Ku et al., VIEScore (ACL 2024), "human-human correlation".

    >>> from vieval_plugin.judges.protocol import Status
    >>> rated = [(0.0, 0.0), (0.5, 1.0), (1.0, 0.5)]
    >>> rows = [Observation("model", str(n), {"SC": both}, {}, Status.OK) for n, both in enumerate(rated)]
    >>> found = human_agreement(rows, ("SC",), "mine/all", StatisticsOptions(draws=10))["SC"]
    >>> round(found[0].value, 4), found[0].n
    (0.5, 3)
    """
    result = {}
    counts = resampled_counts(observations, name, options)
    n = len(observations)
    for aspect in aspects:
        values = list[float]()
        papers = []
        resampled = list[Floats]()
        reasons = []
        for model, rated in rating_columns(observations, aspect).items():
            per_annotator = leave_one_out(rated.ratings)
            values.extend(per_annotator)
            papers.append(paper_mean(per_annotator, rounded=False))
            group_counts = counts(rated.groups)
            resampled.extend(leave_one_out_resampled(rated.ratings, group_counts))
            for rater in np.flatnonzero(np.isnan(per_annotator)):
                reasons.append(f"{model}: all ratings of rater {rater + 1} are equal")
        average = fisher_average(values, resampled, n, reasons, options)
        paper = Estimate(paper_mean(papers), n=n, reasons=tuple(reasons))
        result[aspect] = bias_corrected(average), paper
    return result


def fisher_over_parts(parts: Sequence[Estimate]) -> Estimate:
    """Fisher's average over a benchmark's parts, with an interval from their independent resamples.

    Args:
        parts: one correlation a part, all with the same number of resamples; not none.

    Returns:
        The average, in [-1, 1], over the parts where it is defined.

    >>> tied = Estimate(0.5, 0.4, 0.6, np.array([0.4, 0.6]), 10)
    >>> both = fisher_over_parts([tied, tied])
    >>> round(both.value, 4), both.n
    (0.5, 20)
    """
    resampled = fisher_mean_over([part.resamples for part in parts])
    low, high = interval(resampled)
    mean = fisher_mean([part.value for part in parts])
    n = sum(part.n for part in parts)
    reasons = _joined(part.reasons for part in parts)
    zeros = _joined(part.zeros for part in parts)
    coverages = [astuple(part.coverage) for part in parts]
    coverage = ImageModelCoverage(*map(sum, zip(*coverages, strict=True)))
    return Estimate(
        value=mean,
        low=low,
        high=high,
        resamples=resampled,
        n=n,
        reasons=reasons,
        zeros=zeros,
        coverage=coverage,
    )


def paper_over_parts(parts: Sequence[Estimate]) -> Estimate:
    """The published average over a benchmark's parts; arguments as for `fisher_over_parts`.

    >>> round(paper_over_parts([Estimate(0.5), Estimate(0.5)]).value, 4)
    0.4621
    """
    mean = paper_mean(part.value for part in parts)
    n = sum(part.n for part in parts)
    reasons = _joined(part.reasons for part in parts)
    return Estimate(mean, n=n, reasons=reasons)


def _joined(sequences: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(sequences)))


def missing_value_reason(human: Floats) -> str:
    """Reason why an image model has no correlation with these human ratings, whatever the judge;
    empty where it has.

    >>> missing_value_reason(np.arange(9.0)), missing_value_reason(np.arange(10.0)), missing_value_reason(np.zeros(20))
    ('needs 10 samples, got 9', '', 'all mean ratings are equal')
    """
    if not len(human):
        return "no sample has both ratings and a score"
    if len(human) < LEAST_FOR_A_CORRELATION:
        return f"needs {LEAST_FOR_A_CORRELATION} samples, got {len(human)}"
    if (human == human[0]).all():
        return "all mean ratings are equal"
    return ""


def undefined_reason(human: Floats, judge: Floats) -> str:
    """Reason why a judge's correlation with human means is undefined; empty where it is defined."""
    return (
        undefined(human, judge)
        .replace("values of the first variable", "mean ratings")
        .replace("values of the second variable", "scores of the judge")
    )


def columns(
    observations: Sequence[Observation], aspects: Sequence[str], aspect: str
) -> dict[str, Columns]:
    """Columns to correlate on an aspect, by image model.

    Args:
        observations: samples in any order, failures already imputed.
        aspects: those that the judge rates; a sample counts only if all were scored, and people
            rated this one.
        aspect: the one in question.

    Returns:
        Columns by image model in alphabetical order, empty ones for a model without such a sample.
    """
    columns_by_model = {}
    judged_aspects = set(aspects)
    for model, rows in _group_by_model(observations).items():
        groups = []
        ratings = []
        scores = []
        for observation in rows:
            if (
                aspect in observation.ratings
                and judged_aspects <= observation.scores.keys()
            ):
                groups.append(observation.group)
                ratings.append(observation.ratings[aspect])
                scores.append(observation.scores.get(aspect, np.nan))
        rated = np.array(ratings, dtype=float).T
        judged = np.array(scores, dtype=float)
        columns_by_model[model] = Columns(tuple(groups), rated, judged)
    return columns_by_model


def rating_columns(
    observations: Sequence[Observation], aspect: str
) -> dict[str, Columns]:
    """The columns of all samples that people rated on an aspect; no entry for a model without any.

    >>> from vieval_plugin.judges.protocol import Status
    >>> row = Observation("model", "1", {"SC": (0.0, 0.5)}, {}, Status.REFUSAL)
    >>> rating_columns([row], "SC")["model"].ratings.tolist()
    [[0.0], [0.5]]
    """
    by_model = columns(observations, (), aspect)
    return {model: column for model, column in by_model.items() if column.groups}


def generator_pairs(
    observations: Sequence[Observation], aspect: str
) -> tuple[int, list[PairAgreement]]:
    """The number of image models of a part, and a judge's agreement with people on each two of
    them.

    A judge's difference is over the prompts that it scored of both, people's over those that they
    rated of both.

    Args:
        observations: the part's samples in any order, failures already imputed.
        aspect: the one that both rate.
    """
    rated_rows = [
        observation for observation in observations if observation.ratings.get(aspect)
    ]
    judged = []
    rated = []
    for rows in _group_by_model(rated_rows).values():
        judged.append(
            {
                observation.group: observation.scores[aspect]
                for observation in rows
                if aspect in observation.scores
            }
        )
        rated.append(
            {
                observation.group: float(np.mean(observation.ratings[aspect]))
                for observation in rows
            }
        )
    pairs = []
    for first, second in combinations(range(len(rated)), 2):
        by_judge = _differences(judged[first], judged[second])
        if by_judge:
            by_people = _differences(rated[first], rated[second])
            pairs.append(pair_agreement(first, second, by_judge, by_people))
    return len(rated), pairs


def _differences(
    first: Mapping[str, float], second: Mapping[str, float]
) -> list[float]:
    return [first[group] - second[group] for group in first if group in second]


def _group_by_model(
    observations: Sequence[Observation],
) -> dict[str, list[Observation]]:
    ordered = sorted(
        observations, key=lambda observation: (observation.image_model, observation.uid)
    )
    return grouped((observation.image_model, observation) for observation in ordered)


# all judges' intervals on all aspects of a part come from the same draws
_cached_counts = lru_cache(maxsize=8)(cluster_counts)


def resampled_counts(
    observations: Sequence[Observation], name: str, options: StatisticsOptions
) -> Callable[[Sequence[str]], Counts]:
    """Bootstrap counts of the groups of a part: one set of resamples, shared by its image models.

    Args:
        observations: all of the part.
        name: that of the part (`benchmark/part`); it joins the seed.
        options: how many resamples, the seed.
    """
    groups = tuple(sorted({observation.group for observation in observations}))
    seed = (options.seed, zlib.crc32(name.encode()))
    group_counts = _cached_counts(groups, options.draws, seed)
    index_of = {group: index for index, group in enumerate(groups)}

    def counts(row_groups: Sequence[str]) -> Counts:
        indices = [index_of[group] for group in row_groups]
        return group_counts[:, indices]

    return counts
