"""Headlines of benchmarks with named annotators: Spearman's correlation of overall scores with their mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from vieval_plugin.meta_evaluation.annotator_agreement import OVERALL, Annotated, overall_items
from vieval_plugin.meta_evaluation.common_items import compared_correlations
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.estimates import mean_over_parts
from vieval_plugin.meta_evaluation.headline import Headline, HeadlineNumber
from vieval_plugin.meta_evaluation.observations import Estimate, observe
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions

HEADLINE_COEFFICIENT: Final = "spearman"


def annotator_headline(
    part: str,
    judges: Mapping[str, tuple[Estimate, int]],
    people: Sequence[Estimate],
    rated: int,
    dimensions: Mapping[str, Mapping[str, tuple[Estimate, int]]],
    compared: Callable[[], ComparedStatistic],
) -> Headline:
    """The headline of a part.

    Args:
        part: the benchmark's.
        judges: by label, the coefficient and of how many samples it is.
        people: of each annotator, the coefficient with the mean of the others.
        rated: how many samples people rated.
        dimensions: the judges' coefficients by dimension, as `judges`.
        compared: see `Headline`.
    """
    ceiling = mean_over_parts(people) if people else None
    nothing = HeadlineNumber("best constant: the same score for all", 0.0, math.nan, math.nan, 0)
    top = [_number("human ceiling: each annotator with the others", ceiling, rated)] if ceiling else []
    return Headline(
        OVERALL,
        f"Spearman's correlation of overall scores with the mean of all annotators, {part}",
        "What annotators disagree on cancels out in their mean, and the order is what counts, whatever scale the judge uses.",
        "samples",
        (-1.0, 1.0),
        tuple(_number(label, *correlation) for label, correlation in judges.items()),
        compared,
        (*top, nothing),
        {
            "dimension": {
                name: [_number(label, *correlation) for label, correlation in of_judges.items()]
                for name, of_judges in dimensions.items()
                if of_judges
            }
        },
    )


def compared_overall(
    part: str, annotated: Annotated, runs: Sequence[Run], options: StatisticsOptions
) -> ComparedStatistic:
    """Overall scores with the mean of all annotators, on the samples of a part that all judges scored.

    Args:
        part: the benchmark's, which all of the runs judged.
        annotated: what its annotators rated.
        runs: one a judge.
        options: what failed verdicts and ratings not given are.
    """
    judged = {
        run.label: overall_items([observe(records) for records in run.records[part]], run.aspects, annotated, options)
        for run in runs
    }
    return compared_correlations(part, OVERALL, HEADLINE_COEFFICIENT, judged)


def _number(label: str, estimate: Estimate, n: int) -> HeadlineNumber:
    return HeadlineNumber(label, estimate.value, estimate.low, estimate.high, n, estimate.reason)
