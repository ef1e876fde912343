"""Headlines of benchmarks in which people rated the outputs of several image models: agreement by aspect."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TypeAlias

from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.headline import WHY_PREFERRED, Headline, HeadlineNumber, preferred
from vieval_plugin.meta_evaluation.image_model_cells import ALL_PARTS, HUMAN, Numbers
from vieval_plugin.meta_evaluation.image_model_comparison import Cell, RatedSample, compared_on, scored_samples
from vieval_plugin.meta_evaluation.observations import Agreement
from vieval_plugin.meta_evaluation.tables import because
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions

Scored: TypeAlias = Mapping[str, Mapping[str, Mapping[Cell, RatedSample]]]
"""By judge and aspect, the samples that count."""


def image_model_headlines(
    numbers: Numbers, runs: Sequence[Run], options: StatisticsOptions, rated: tuple[str, ...]
) -> tuple[Headline, ...]:
    """Headlines by aspect that any judge rates, the default first.

    Args:
        numbers: what `numbers_by_image_model` found of these runs.
        runs: one a judge.
        options: what failed verdicts are.
        rated: what people rated.
    """
    judges = [run.label for run in runs]
    rated_aspects = [aspect for label, part, aspect in numbers.agreement if part == ALL_PARTS and label in judges]
    aspects = preferred(
        list(dict.fromkeys(rated_aspects)), {aspect: rated_aspects.count(aspect) for aspect in rated_aspects}
    )

    @cache
    def scored() -> Scored:
        return {run.label: scored_samples(run, numbers.parts, rated, options) for run in runs}

    return tuple(_headline(aspect, judges, numbers, scored) for aspect in aspects)


def _headline(aspect: str, judges: Sequence[str], numbers: Numbers, scored: Callable[[], Scored]) -> Headline:
    by_kind = {part: _of(part, aspect, (*judges, HUMAN), numbers) for part in numbers.parts}
    nothing = HeadlineNumber("best constant: the same score for all", 0.0, math.nan, math.nan, 0)
    people = [_renamed(ceiling) for ceiling in _of(ALL_PARTS, aspect, [HUMAN], numbers)]
    return Headline(
        aspect,
        f"Spearman's correlation with people on {aspect}, averaged over image models and kinds (Fisher)",
        WHY_PREFERRED,
        "samples",
        (-1.0, 1.0),
        _of(ALL_PARTS, aspect, judges, numbers),
        _comparing(aspect, scored),
        (*people, nothing),
        {"kind": {part: row_numbers for part, row_numbers in by_kind.items() if row_numbers}},
    )


def _of(part: str, aspect: str, labels: Sequence[str], numbers: Numbers) -> tuple[HeadlineNumber, ...]:
    agreements = {label: numbers.agreement.get((label, part, aspect)) for label in labels}
    return tuple(_number(label, agreement) for label, agreement in agreements.items() if agreement)


def _number(label: str, agreement: Agreement) -> HeadlineNumber:
    reason = because(agreement.reasons) if math.isnan(agreement.fisher) else ""
    return HeadlineNumber(
        label, agreement.fisher, agreement.low, agreement.high, agreement.count, reason, str(agreement.coverage)
    )


def _renamed(people: HeadlineNumber) -> HeadlineNumber:
    label = "human ceiling: each rater with the others"
    return HeadlineNumber(label, people.value, people.low, people.high, people.n, people.reason)


def _comparing(aspect: str, scored: Callable[[], Scored]) -> Callable[[], ComparedStatistic]:
    """The statistic of an aspect; samples are read when it is asked for, once for all aspects."""
    return lambda: compared_on(
        aspect, {label: samples[aspect] for label, samples in scored().items() if aspect in samples}
    )
