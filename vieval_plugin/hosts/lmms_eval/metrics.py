"""Summaries as lmms-eval's metrics: values that carry their summary from tasks to their group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from vieval_plugin.meta_evaluation.metrics import primary_statistic, value
from vieval_plugin.meta_evaluation.statistics import Summary, combine
from vieval_plugin.text.escaping import console

#: The name of the metric by which judges are ranked.
PRIMARY = "primary_metric"
Value = float | str | None
Aggregation = Callable[[Sequence[Any]], Value]


class Number(float):
    """A metric's value that remembers which metric it is and the summary it was taken from."""

    name: str
    summary: Summary


class Remark(str):
    """A metric in words, which remembers the same."""

    name: str
    summary: Summary


Tagged = TypeVar("Tagged", Number, Remark)


def take(summary: Summary, name: str) -> Value:
    """Take a metric out of a summary; None for an undefined number, whose reason stands in
    `remarks`.
    """
    number = (
        primary_statistic(summary.statistics).metric
        if name == PRIMARY
        else value(summary, name)
    )
    if number is None:
        return None
    if isinstance(number, str):
        return _tagged(
            Remark(console(number)), name, summary
        )  # the host prints it as it is
    return _tagged(Number(number), name, summary)


def over_group(
    values: Sequence[Value], _sizes: Sequence[int], _weight_by_size: bool
) -> Value:
    """A group's metric from its tasks' values: the average over tasks, by the rules of
    `combine`.
    """
    tagged = [value for value in values if isinstance(value, (Number, Remark))]
    return (
        take(
            _combined(tuple(value.summary for value in tagged)),
            tagged[0].name,
        )
        if tagged
        else None
    )


@lru_cache(maxsize=16)
def _combined(summaries: tuple[Summary, ...]) -> Summary:
    """Cached, because the host asks once for every metric."""
    return combine(summaries)


def _tagged(value: Tagged, name: str, summary: Summary) -> Tagged:
    value.name = name
    value.summary = summary
    return value
