"""Agreement between a judge's verdicts and human ratings, per image model, per part and over parts.

Protocols: `paper` repeats the published computation, `fisher` is the corrected default (see stats/correlation.py).
Both use only samples for which every aspect of the judge was scored.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache

import numpy as np

from vieval_plugin.meta_evaluation.estimates import Counts
from vieval_plugin.meta_evaluation.observations import Agreement, Coverage, Observation, Summary, against_all, fill
from vieval_plugin.stats.agreement import krippendorff_alpha, leave_one_out, leave_one_out_resampled, rater_mean
from vieval_plugin.stats.bootstrap import cluster_counts, interval
from vieval_plugin.stats.correlation import (
    Floats,
    correlation,
    fisher_mean,
    fisher_mean_over,
    paper_mean,
    resampled_correlations,
    undefined,
)
from vieval_plugin.stats.options import StatisticsOptions

LEAST = 10
"""Samples of an image model that a correlation needs. Fewer are nearly always biased or at the end of the scale."""


@dataclass(frozen=True)
class Columns:
    """Samples of one image model, in uid order: what each is drawn together with, human means, the judge's scores."""

    groups: tuple[str, ...]
    human: Floats
    judge: Floats


@dataclass(frozen=True)
class RatingColumns:
    """Rated samples of one image model, in uid order: what each is drawn together with, ratings (raters, samples)."""

    groups: tuple[str, ...]
    ratings: Floats


@lru_cache(maxsize=16)
def agreement_by_image_model(
    observations: tuple[Observation, ...],
    aspects: tuple[str, ...],
    name: str,
    added_last: int | None,
    options: StatisticsOptions,
    rated: tuple[str, ...] = (),
) -> Summary:
    """A part's agreement by aspect, averaged over image models both ways, with 95% intervals.

    Cached, because a host asks once for every metric.

    Args:
        observations: the part's samples, in any order.
        aspects: those that the judge rates.
        name: that of the part (`benchmark/part`); it joins the seed, so that parts are resampled independently.
        added_last: the place of the rater whose O the published code adds last, from 0.
        options: what failed verdicts are, how many draws, the seed.
        rated: what people rated, where the judge's one score is compared with all of it.

    Returns:
        An `Agreement` an aspect, in [-1, 1]; NaN where it is undefined, with reasons.

    Source: Ku et al., VIEScore (ACL 2024), "Meta-evaluation"; the order of operations is that of its released code.

    >>> from vieval_plugin.judges.protocol import Status
    >>> rows = tuple(
    ...     Observation("model", str(n), (("SC", (n / 12,)),), (("SC", (n / 12) ** 2),), Status.OK) for n in range(12)
    ... )
    >>> found = agreement_by_image_model(rows, ("SC",), "mine/all", None, StatisticsOptions(draws=10))
    >>> round(found.aspects["SC"].fisher, 4), found.aspects["SC"].count
    (0.9999, 12)
    """
    compared_rows, compared = compare(observations, aspects, rated, options)
    return Summary(
        {aspect: _agreement(compared_rows, compared, aspect, name, added_last, options) for aspect in compared},
        Counter(o.status for o in observations),
        options,
        scored=sum(bool(o.scores) for o in observations),
        exact=sum(bool(o.scores) and o.exact for o in observations),
    )


def compare(
    observations: Sequence[Observation], aspects: tuple[str, ...], rated: tuple[str, ...], options: StatisticsOptions
) -> tuple[list[Observation], tuple[str, ...]]:
    """Observations as they are compared, failures filled, and the aspects that they are compared on.

    Args:
        observations: in any order.
        aspects: those that the judge rates.
        rated: what people rated, where the judge's one score is compared with all of it; else empty.
        options: what failed verdicts are.
    """
    filled_rows = fill(observations, aspects, options)
    return (against_all(filled_rows, aspects[0], rated), rated) if rated else (filled_rows, aspects)


def _agreement(
    observations: Sequence[Observation],
    aspects: tuple[str, ...],
    aspect: str,
    name: str,
    added_last: int | None,
    options: StatisticsOptions,
) -> Agreement:
    by_model = columns(observations, aspects, aspect)
    exact = columns(observations, aspects, aspect, added_last)
    counts = _counts(observations, name, options)
    values, papers, draws, reasons, constant, paper_reasons = [], [], [], [], [], []
    for model, c in by_model.items():
        papers.append(correlation(exact[model].human, exact[model].judge))
        paper_reasons += [f"{model}: {reason}"] if (reason := why_undefined(c)) else []
        if reason := why_no_value(c.human):
            reasons.append(f"{model}: {reason}")
            continue
        value = correlation(c.human, c.judge)
        if math.isnan(value):
            constant.append(f"{model}: the judge is constant")
        values.append(0.0 if math.isnan(value) else value)
        draws.append(resampled_correlations(c.human, c.judge, counts(c.groups), constant_second=0.0))
    averaged = fisher_mean_over(draws) if draws else np.full(options.draws, np.nan)
    low, high = interval(averaged)
    count = sum(len(c.groups) for c in by_model.values())
    return Agreement(
        fisher_mean(values),
        low,
        high,
        paper_mean(papers),
        count,
        averaged,
        tuple(reasons),
        _consistency(observations, aspect),
        tuple(constant),
        tuple(paper_reasons),
        Coverage(len(values), len(by_model), int(bool(values)), 1),
    )


def _consistency(observations: Sequence[Observation], aspect: str) -> float:
    """Alpha of repeated verdicts, each time of judging a rater; NaN where no sample was judged twice."""
    times = max((len(o.repeats) for o in observations), default=0)
    if times < 2:
        return math.nan
    unscored = [math.nan] * times
    table = [[dict(scores).get(aspect, math.nan) for scores in o.repeats] or unscored for o in observations]
    return krippendorff_alpha(np.array(table).T, "interval")


def human_agreement(
    observations: Sequence[Observation], aspects: Sequence[str], name: str, options: StatisticsOptions
) -> dict[str, Agreement]:
    """Leave-one-out agreement of human raters, averaged over raters and image models: the ceiling of a part.

    Args:
        observations: all rated samples of the part, in any order, each with as many raters; two or more.
        aspects: those that people rated.
        name: as for `agreement_by_image_model`.
        options: how many draws, and the seed.

    Returns:
        An `Agreement` an aspect, in [-1, 1]; NaN where every rater is constant.

    Raises:
        ValueError: for fewer than two raters.

    Source: Ku et al., VIEScore (ACL 2024), "human-human correlation".

    >>> from vieval_plugin.judges.protocol import Status
    >>> rated = [(0.0, 0.0), (0.5, 1.0), (1.0, 0.5)]
    >>> rows = [Observation("model", str(n), (("SC", both),), (), Status.OK) for n, both in enumerate(rated)]
    >>> found = human_agreement(rows, ("SC",), "mine/all", StatisticsOptions(draws=10))["SC"]
    >>> round(found.fisher, 4), found.count
    (0.5, 3)
    """
    result = {}
    counts = _counts(observations, name, options)
    for aspect in aspects:
        values: list[float] = []
        papers: list[float] = []
        draws: list[Floats] = []
        reasons: list[str] = []
        for model, rated in rating_columns(observations, aspect).items():
            per_rater = leave_one_out(rated.ratings)
            values.extend(per_rater)
            papers.append(paper_mean(per_rater, rounded=False))
            draws.extend(leave_one_out_resampled(rated.ratings, counts(rated.groups)))
            reasons.extend(f"{model}: rater {r + 1} is constant" for r in np.flatnonzero(np.isnan(per_rater)))
        averaged = fisher_mean_over(draws)
        low, high = interval(averaged)
        count = len(observations)
        result[aspect] = Agreement(
            fisher_mean(values),
            low,
            high,
            paper_mean(papers),
            count,
            averaged,
            tuple(reasons),
            paper_reasons=tuple(reasons),
        )
    return result


def agreement_over_parts(parts: Sequence[Agreement]) -> Agreement:
    """The average over a benchmark's parts of their averages, both ways, with an interval from their independent draws.

    Args:
        parts: one agreement a part, on the same aspect and with the same number of draws; not none.

    Returns:
        The averages, in [-1, 1], over the parts where agreement is defined. `count` is the sum, and `consistency` the
        plain mean.

    >>> tied = Agreement(0.5, 0.4, 0.6, 0.5, 10, np.array([0.4, 0.6]))
    >>> found = agreement_over_parts([tied, tied])
    >>> round(found.fisher, 4), round(found.paper, 4), found.count
    (0.5, 0.4621, 20)
    """
    draws = fisher_mean_over([part.draws for part in parts])
    low, high = interval(draws)
    return Agreement(
        fisher_mean([part.fisher for part in parts]),
        low,
        high,
        paper_mean(part.paper for part in parts),
        sum(part.count for part in parts),
        draws,
        tuple(dict.fromkeys(reason for part in parts for reason in part.reasons)),
        math.fsum(part.consistency for part in parts) / len(parts),
        tuple(dict.fromkeys(reason for part in parts for reason in part.constant)),
        tuple(dict.fromkeys(reason for part in parts for reason in part.paper_reasons)),
        Coverage(*map(sum, zip(*(astuple(part.coverage) for part in parts), strict=True))),
    )


def why_no_value(human: Floats) -> str:
    """Reason why an image model has no correlation with these human ratings, whatever the judge; empty where it has.

    >>> why_no_value(np.arange(9.0)), why_no_value(np.arange(10.0)), why_no_value(np.zeros(20))
    ('9 samples, 10 are needed', '', 'the human mean is constant')
    """
    if len(human) < LEAST:
        return f"{len(human)} samples, {LEAST} are needed"
    return "the human mean is constant" if (human == human[0]).all() else ""


def why_undefined(correlated: Columns) -> str:
    """Reason why a judge's correlation with human means is undefined; empty where it is defined."""
    why = undefined(correlated.human, correlated.judge)
    return why.replace("first variable", "human mean").replace("second variable", "judge")


def columns(
    observations: Sequence[Observation], aspects: Sequence[str], aspect: str, added_last: int | None = None
) -> dict[str, Columns]:
    """Columns to correlate on an aspect, by image model.

    Args:
        observations: samples in any order, failures already filled.
        aspects: those that the judge rates; a sample counts only if all were scored, and people rated this one.
        aspect: the one in question.
        added_last: as for `stats.agreement.rater_mean`.

    Returns:
        Columns by image model in alphabetical order, empty ones for a model without such a sample. Human means are on
        the benchmark's own scale, the judge's scores in [0, 1].
    """
    columns_by_model = {}
    for model, rows in _by_model(observations).items():
        complete = [o for o in rows if set(aspects) <= {name for name, _ in o.scores} and aspect in dict(o.ratings)]
        ratings = np.array([dict(o.ratings)[aspect] for o in complete], dtype=float).T
        columns_by_model[model] = Columns(
            tuple(o.group for o in complete),
            rater_mean(ratings, added_last) if complete else np.zeros(0),
            np.array([dict(o.scores)[aspect] for o in complete], dtype=float),
        )
    return columns_by_model


def rating_columns(observations: Sequence[Observation], aspect: str) -> dict[str, RatingColumns]:
    """Ratings on an aspect, by image model in alphabetical order.

    Args:
        observations: samples in any order; those that people did not rate on the aspect are left out.
        aspect: the one in question.

    Returns:
        Ratings of shape (raters, samples), on the benchmark's own scale; no entry for a model without any.

    >>> from vieval_plugin.judges.protocol import Status
    >>> row = Observation("model", "1", (("SC", (0.0, 0.5)),), (), Status.REFUSAL)
    >>> rating_columns([row], "SC")["model"].ratings.tolist()
    [[0.0], [0.5]]
    """
    rated = [o for o in observations if aspect in dict(o.ratings)]
    return {
        model: RatingColumns(
            tuple(o.group for o in rows), np.array([dict(o.ratings)[aspect] for o in rows], dtype=float).T
        )
        for model, rows in _by_model(rated).items()
    }


def _by_model(observations: Sequence[Observation]) -> dict[str, list[Observation]]:
    grouped: dict[str, list[Observation]] = {}
    for observation in sorted(observations, key=lambda o: (o.image_model, o.uid)):
        grouped.setdefault(observation.image_model, []).append(observation)
    return grouped


@lru_cache(maxsize=8)
def _group_counts(groups: tuple[str, ...], draws: int, seed: tuple[int, int]) -> Counts:
    """Cached, because all judges' intervals on all aspects of a part come from the same draws."""
    return cluster_counts(groups, draws, seed)


def _counts(
    observations: Sequence[Observation], name: str, options: StatisticsOptions
) -> Callable[[Sequence[str]], Counts]:
    """Bootstrap counts of the groups of a part: one set of resamples, shared by its image models."""
    groups = tuple(sorted({o.group for o in observations}))
    group_counts = _group_counts(groups, options.draws, (options.seed, zlib.crc32(name.encode())))
    place = {group: number for number, group in enumerate(groups)}
    return lambda row_groups: group_counts[:, [place[group] for group in row_groups]]
