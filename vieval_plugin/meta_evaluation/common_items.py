"""Systems compared on items that stand by themselves, such as labelled pairs or contests: means, and one correlation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from vieval_plugin.meta_evaluation.comparison import (
    CommonSamplesStatistic,
    ComparedStatistic,
    System,
    correlates,
    unranked_reason,
)
from vieval_plugin.stats.bootstrap import Seed
from vieval_plugin.stats.comparison import MeanDifference, paired_comparison
from vieval_plugin.stats.paired_correlations import CorrelationDifference


class JudgedItem(NamedTuple):
    """A system's value of an item: its score, or 1 where it is right and 0 where not; `group` is the item's cluster, `human`
    the rating that scores are correlated with.
    """

    group: str
    value: float
    human: float = float("nan")


PairedCoefficientName: TypeAlias = Literal["spearman", "pearson"]


@dataclass(frozen=True)
class PairedTestSpec:
    """The paired test of a statistic: `items` are a system's by their names, from the rows that the statistic is of.

    Their values' means are compared or, with a `coefficient`, their correlations with human ratings; `unit` is what
    items are called.
    """

    items: Callable[[Any], Mapping[str, JudgedItem]]
    coefficient: PairedCoefficientName | None = None
    unit: str = "samples"


def compared_means(
    part: str,
    aspect: str,
    statistic: str,
    items: Mapping[str, Mapping[str, JudgedItem]],
    unit: str = "samples",
    entrants: str = "judges",
    missing_parts: Mapping[str, list[str]] | None = None,
    total: int = 0,
    constants: Sequence[Mapping[str, float]] = (),
) -> ComparedStatistic:
    """Systems compared by the mean of their values on common items, such as their accuracies.

    Args:
        part: the benchmark's.
        aspect: what is rated.
        statistic: what the mean is, in words.
        items: by the system's label, its items by their names.
        unit: what items are called.
        entrants: what systems are called.
        missing_parts: by label, the parts that a system has no item of.
        total: number of items that any system was asked about, where that may be more than any has.
        constants: values of answers that never look, by the names of items; a system stands beside the best on its own.

    >>> right = {"a": JudgedItem("a", 1.0), "b": JudgedItem("b", 0.0)}
    >>> judges = {"first": right, "second": {"a": JudgedItem("a", 0.0)}}
    >>> compared_means("edit", "votes", "accuracy", judges).pair(0, 1).n
    1
    """
    labels = list(items)

    def pair(first: int, second: int) -> CommonSamplesStatistic:
        first_items, second_items = items[labels[first]], items[labels[second]]
        names = sorted(first_items.keys() & second_items.keys())
        if not names:
            return CommonSamplesStatistic(0, reason=f"no {unit} in common")
        first_values, second_values = ([system[name].value for name in names] for system in (first_items, second_items))
        groups = [first_items[name].group for name in names]
        return CommonSamplesStatistic(len(names), MeanDifference(first_values, second_values, groups))

    def above_constant(index: int, seed: Seed) -> float:
        own_items = items[labels[index]]
        names = sorted(own_items)
        best = max(([constant[name] for name in names] for constant in constants), key=math.fsum)
        groups = [own_items[name].group for name in names]
        difference = MeanDifference([own_items[name].value for name in names], best, groups)
        result = paired_comparison(difference, 0, seed, intervals=False)
        return result.p if result.difference.value > 0 else 1.0

    systems = _systems(items, unit, missing_parts or {}, total)
    test = above_constant if constants else None
    return ComparedStatistic(part, aspect, statistic, systems, pair, unit, entrants, above_constant=test)


def compared_correlations(
    part: str,
    aspect: str,
    coefficient: PairedCoefficientName,
    items: Mapping[str, Mapping[str, JudgedItem]],
    total: int = 0,
) -> ComparedStatistic:
    """Judges compared by the correlation of their scores with human ratings, over all common items at once.

    Args:
        part: the benchmark's.
        aspect: what is rated.
        coefficient: `spearman` or `pearson`.
        items, total: as for `compared_means`.

    >>> scores = {str(n): JudgedItem(str(n), n, n % 3) for n in range(9)}
    >>> compared = compared_correlations("all", "SC", "pearson", {"first": scores, "second": scores})
    >>> round(compared.pair(0, 1).statistic.estimates()[0], 3)
    0.316
    """
    labels = list(items)

    def pair(first: int, second: int) -> CommonSamplesStatistic:
        first_items, second_items = items[labels[first]], items[labels[second]]
        names = sorted(first_items.keys() & second_items.keys())
        if not names:
            return CommonSamplesStatistic(0, reason="no samples in common")
        first_scores, second_scores, human = (
            np.array(values, dtype=float)[:, None]
            for values in (
                [first_items[name].value for name in names],
                [second_items[name].value for name in names],
                [first_items[name].human for name in names],
            )
        )
        groups = [first_items[name].group for name in names]
        statistic = CorrelationDifference(first_scores, second_scores, human, groups, coefficient=coefficient)
        return CommonSamplesStatistic(len(names), statistic)

    described = f"{coefficient.capitalize()}'s correlation with the ratings"
    systems = _systems(items, "samples", {}, total)
    return ComparedStatistic(part, aspect, described, systems, pair, above_constant=correlates(pair))


def _systems(
    items: Mapping[str, Mapping[str, JudgedItem]], unit: str, missing_parts: Mapping[str, list[str]], total: int
) -> tuple[System, ...]:
    available_count = max(total, *map(len, items.values()), 0)
    return tuple(
        System(
            label,
            len(system_items),
            "" if system_items else f"no {unit} with a score",
            unranked_reason(len(system_items), available_count, missing_parts.get(label, ()), unit),
        )
        for label, system_items in items.items()
    )
