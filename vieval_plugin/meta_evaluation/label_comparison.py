"""Judges compared on labels, preferences or human scores: the statistics of `label_statistics` that have a paired test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_correlations, compared_means
from vieval_plugin.meta_evaluation.comparison import CommonSamples, ComparedStatistic, System
from vieval_plugin.meta_evaluation.label_statistics import (
    ASPECT,
    FIRST_AND_SECOND,
    IMAGES_AND_TEXTS,
    compared_aspect,
    examples_of,
    of_aspect,
    scored_observations,
    scores_and_ratings,
)
from vieval_plugin.meta_evaluation.observations import Observation, observe
from vieval_plugin.records import Run
from vieval_plugin.stats import binary, compositional
from vieval_plugin.stats.options import StatisticsOptions

Points: TypeAlias = Callable[[Sequence[Observation]], dict[str, JudgedItem]]


def compared_with_labels(
    parts: Sequence[str],
    runs: Sequence[Run],
    statistics: Sequence[str],
    options: StatisticsOptions,
    aspect: str = ASPECT,
) -> list[ComparedStatistic]:
    """An entry a part and statistic; parts and statistics are compared each for itself.

    Args:
        parts: all parts of the benchmark, in order.
        runs: one a judge, labels all different.
        statistics: names among `label_statistics.STATISTICS`.
        options: what failed verdicts are.
        aspect: what people rated.

    Returns:
        Those of the statistics that have a paired test; where none has, one entry a part that says so.
    """
    comparisons = []
    for part in dict.fromkeys((*parts, *(part for run in runs for part in run.records))):
        observed = {
            run.label: scored_observations(
                of_aspect(
                    [observe(judged) for judged in run.records[part]],
                    aspect,
                    compared_aspect(aspect, run.aspects, run.against_all),
                ),
                options,
            )
            for run in runs
            if part in run.records
        }
        if not observed:
            continue
        able = [
            _compared(part, aspect, statistic, observed)
            for statistic in statistics
            if statistic in (*_POINTS, *_CORRELATIONS)
        ]
        comparisons += able or [_unable(part, aspect, statistics[0], observed)]
    return comparisons


def _compared(
    part: str, aspect: str, statistic: str, observed: Mapping[str, Sequence[Observation]]
) -> ComparedStatistic:
    if coefficient := _CORRELATIONS.get(statistic):
        judged = {label: _scored(rows) for label, rows in observed.items()}
        return compared_correlations(part, aspect, coefficient, judged)
    points = _POINTS[statistic]
    judged = {label: points(rows) for label, rows in observed.items()}
    return compared_means(part, aspect, statistic.replace("_", " "), judged, "examples")


def _unable(part: str, aspect: str, statistic: str, observed: Mapping[str, Sequence[Observation]]) -> ComparedStatistic:
    judges = tuple(System(label, len(rows)) for label, rows in observed.items())
    reason = f"judges cannot be compared yet by {statistic}, which has no paired test here"
    return ComparedStatistic(
        part, aspect, statistic, judges, lambda first, second: CommonSamples(0, reason=reason), untestable=reason
    )


def _scored(observations: Sequence[Observation]) -> dict[str, JudgedItem]:
    judged, rated = scores_and_ratings(observations)
    return {
        f"{o.uid}/{o.image_model}": JudgedItem(o.group, score, people)
        for o, score, people in zip(observations, judged.tolist(), rated.tolist(), strict=True)
    }


def _preferences(observations: Sequence[Observation]) -> dict[str, JudgedItem]:
    first, second = FIRST_AND_SECOND
    return {
        name: JudgedItem(
            name,
            binary.preference_accuracy(
                [dict(example[first].ratings)[ASPECT][0]],
                [dict(example[first].scores)[ASPECT]],
                [dict(example[second].scores)[ASPECT]],
            ),
        )
        for name, example in examples_of(observations, FIRST_AND_SECOND).items()
    }


def _compositional_points(statistic_index: int) -> Points:
    def points(observations: Sequence[Observation]) -> dict[str, JudgedItem]:
        examples = examples_of(observations, IMAGES_AND_TEXTS)
        scores = [[dict(example[place].scores)[ASPECT] for place in IMAGES_AND_TEXTS] for example in examples.values()]
        right = compositional.right(np.array(scores, dtype=float).reshape(-1, 2, 2))[statistic_index]
        return {name: JudgedItem(name, float(point)) for name, point in zip(examples, right, strict=True)}

    return points


_CORRELATIONS: Mapping[str, Literal["pearson", "spearman"]] = MappingProxyType(
    {"pearson": "pearson", "spearman": "spearman"}
)
_POINTS: Mapping[str, Points] = MappingProxyType(
    {
        "preference_accuracy": _preferences,
        "text_score": _compositional_points(0),
        "image_score": _compositional_points(1),
        "group_score": _compositional_points(2),
    }
)
