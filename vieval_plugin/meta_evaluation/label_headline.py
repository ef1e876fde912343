"""Headlines of benchmarks of labels, preferences or human scores of their own kind: their first statistic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.headline import Headline, HeadlineNumber
from vieval_plugin.meta_evaluation.label_comparison import compared_with_labels
from vieval_plugin.meta_evaluation.label_statistics import ASPECT
from vieval_plugin.meta_evaluation.observations import Summary
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions

UNSEEN: Mapping[str, float] = MappingProxyType(
    {
        "pearson": 0.0,
        "spearman": 0.0,
        "kendall": 0.0,
        "auroc": 0.5,
        "preference_accuracy": 0.5,
        "text_score": 1 / 4,
        "image_score": 1 / 4,
        "group_score": 1 / 6,
    }
)
"""Mean of a constant or random baseline, by statistic. Source of the last three: Thrush et al., Winoground (2022)."""


def label_headlines(
    statistics: Sequence[str],
    summaries: Mapping[tuple[str, str], Summary],
    tagged: Mapping[tuple[str, str], Mapping[str, Summary]],
    runs: Sequence[Run],
    options: StatisticsOptions,
    aspect: str = ASPECT,
) -> tuple[Headline, ...]:
    """Headlines, a part each.

    Args:
        statistics: those of the benchmark, the first of which is taken.
        summaries: by part and judge.
        tagged: the same by tag.
        runs: one a judge.
        options: what failed verdicts are.
        aspect: what people rated.
    """
    statistic = statistics[0]
    parts = list(dict.fromkeys(part for part, _ in summaries))
    return tuple(_headline(statistic, part, summaries, tagged, runs, options, len(parts) > 1, aspect) for part in parts)


def _headline(
    statistic: str,
    part: str,
    summaries: Mapping[tuple[str, str], Summary],
    tagged: Mapping[tuple[str, str], Mapping[str, Summary]],
    runs: Sequence[Run],
    options: StatisticsOptions,
    several: bool,
    aspect: str,
) -> Headline:
    labels = [label for judged_part, label in summaries if judged_part == part]
    words = dict.fromkeys(tag for label in labels for tag in tagged.get((part, label), {}))
    by_tag = {
        word: [
            _number(label, tagged[part, label][word], statistic)
            for label in labels
            if word in tagged.get((part, label), {})
        ]
        for word in words
    }
    unseen = UNSEEN.get(statistic)
    nothing = HeadlineNumber("scores that never look", unseen, math.nan, math.nan, 0) if unseen is not None else None
    correlated = statistic in ("pearson", "spearman", "kendall")
    return Headline(
        aspect,
        f"{statistic.replace('_', ' ')}{f', {part}' if several else ''}",
        "It is the first of the statistics that this benchmark was published with.",
        "samples",
        (-1.0 if correlated else 0.0, 1.0),
        tuple(_number(label, summaries[part, label], statistic) for label in labels),
        lambda: _compared(statistic, part, runs, options, aspect),
        (nothing,) if nothing else (),
        {"tag": by_tag} if by_tag else {},
    )


def _number(label: str, summary: Summary, statistic: str) -> HeadlineNumber:
    estimate = summary.estimates[statistic]
    return HeadlineNumber(label, estimate.value, estimate.low, estimate.high, summary.scored, estimate.reason)


def _compared(
    statistic: str, part: str, runs: Sequence[Run], options: StatisticsOptions, aspect: str
) -> ComparedStatistic:
    judging = [run for run in runs if part in run.records]
    [compared] = [
        statistic
        for statistic in compared_with_labels((part,), judging, (statistic,), options, aspect)
        if statistic.part == part
    ]
    return compared
