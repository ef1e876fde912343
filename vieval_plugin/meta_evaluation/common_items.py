"""Systems compared on items that stand by themselves, such as labelled pairs or contests: means, and one correlation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from vieval_plugin.meta_evaluation.comparison import CommonSamples, ComparedStatistic, System, coverage
from vieval_plugin.stats.comparison import MeanDifference
from vieval_plugin.stats.paired_correlations import CorrelationDifference


class JudgedItem(NamedTuple):
    """A system's value of an item: its score, or 1 where it is right and 0 where not; `group` is the item's cluster, `human`
    the rating that scores are correlated with.
    """

    group: str
    value: float
    human: float = float("nan")


PairedCoefficient: TypeAlias = Literal["spearman", "pearson"]


@dataclass(frozen=True)
class PairedTest:
    """The paired test of a statistic: `items` are a system's by their names, from the rows that the statistic is of.

    Their values' means are compared or, with a `coefficient`, their correlations with human ratings; `unit` is what
    items are called.
    """

    items: Callable[[Any], Mapping[str, JudgedItem]]
    coefficient: PairedCoefficient | None = None
    unit: str = "samples"


def compared_means(
    part: str,
    aspect: str,
    statistic: str,
    items: Mapping[str, Mapping[str, JudgedItem]],
    unit: str = "samples",
    entrants: str = "judges",
    lacking: Mapping[str, list[str]] | None = None,
) -> ComparedStatistic:
    """Systems compared by the mean of their values on common items, such as their accuracies.

    Args:
        part: the benchmark's.
        aspect: what is rated.
        statistic: what the mean is, in words.
        items: by the system's label, its items by their names.
        unit: what items are called.
        entrants: what systems are called.
        lacking: by label, the parts that a system has no item of.

    >>> right = {"a": JudgedItem("a", 1.0), "b": JudgedItem("b", 0.0)}
    >>> judges = {"first": right, "second": {"a": JudgedItem("a", 0.0)}}
    >>> compared_means("edit", "votes", "accuracy", judges).pair(0, 1).n
    1
    """
    labels = list(items)

    def pair(first: int, second: int) -> CommonSamples:
        first_items, second_items = items[labels[first]], items[labels[second]]
        names = sorted(first_items.keys() & second_items.keys())
        if not names:
            return CommonSamples(0, reason=f"no {unit} in common")
        first_values, second_values = ([system[name].value for name in names] for system in (first_items, second_items))
        groups = [first_items[name].group for name in names]
        return CommonSamples(len(names), MeanDifference(first_values, second_values, groups))

    return ComparedStatistic(part, aspect, statistic, _systems(items, unit, lacking or {}), pair, unit, entrants)


def compared_correlations(
    part: str,
    aspect: str,
    coefficient: PairedCoefficient,
    items: Mapping[str, Mapping[str, JudgedItem]],
) -> ComparedStatistic:
    """Judges compared by the correlation of their scores with human ratings, over all common items at once.

    Args:
        part: the benchmark's.
        aspect: what is rated.
        coefficient: `spearman` or `pearson`.
        items: as for `compared_means`.

    >>> scores = {str(n): JudgedItem(str(n), n, n % 3) for n in range(9)}
    >>> compared = compared_correlations("all", "SC", "pearson", {"first": scores, "second": scores})
    >>> round(compared.pair(0, 1).statistic.estimates()[0], 3)
    0.316
    """
    labels = list(items)

    def pair(first: int, second: int) -> CommonSamples:
        first_items, second_items = items[labels[first]], items[labels[second]]
        names = sorted(first_items.keys() & second_items.keys())
        if not names:
            return CommonSamples(0, reason="no samples in common")
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
        return CommonSamples(len(names), statistic)

    described = f"{coefficient.capitalize()}'s correlation with people"
    return ComparedStatistic(part, aspect, described, _systems(items, "samples", {}), pair)


def _systems(
    items: Mapping[str, Mapping[str, JudgedItem]], unit: str, missing_parts: Mapping[str, list[str]]
) -> tuple[System, ...]:
    available = max(map(len, items.values()), default=0)
    return tuple(
        System(
            label,
            len(system_items),
            "" if system_items else f"no {unit} with a score",
            coverage(len(system_items), available, missing_parts.get(label, ()), unit),
        )
        for label, system_items in items.items()
    )
