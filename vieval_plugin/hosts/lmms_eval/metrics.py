"""Summaries as lmms-eval's metrics: one key a number, and the way from tasks to their group.

No metric name is part of another, because the host looks for a group's metric names as substrings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation import Summary, combine

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


_STATUSES = [f"status_{status}_share" for status in Status]
Tagged = TypeVar("Tagged", Number, Remark)


def names(
    aspects: Sequence[str], repeats: int = 1, statistics: Sequence[str] = (), intervals: bool = False
) -> list[str]:
    """All metric names of a task.

    `aspects` are those whose agreement it reports, `statistics` the benchmark's own in their place; `repeats` says how
    often each sample is judged, `intervals` whether the judge's scores may be known to an interval only.
    """
    if statistics:
        named = [f"{s}_{what}" for s in statistics for what in ("value", "ci_low", "ci_high")]
        return [*named, "scored_count", *(["exact_share"] if intervals else []), *_STATUSES, "remarks"]
    numbers = ["fisher", "ci_low", "ci_high", "paper", "count", *(["consistency"] if repeats > 1 else [])]
    of_aspects = [f"{a}_{what}" for a in aspects for what in numbers]
    return [*of_aspects, *(["exact_share"] if intervals else []), *_STATUSES, "remarks"]


def higher_is_better(name: str) -> bool | None:
    """Whether more of a metric is better; None where the question makes no sense."""
    if name in ("status_ok_share", "exact_share"):
        return True
    if name.startswith("status_"):
        return False
    return True if name.endswith(("_fisher", "_paper", "_consistency", "_value")) else None


def take(summary: Summary, name: str) -> Value:
    """One metric of a summary; None for an undefined number, whose reason stands in `remarks`."""
    if name == "remarks":
        return _tagged(Remark(_remarks(summary)), name, summary)
    if name.startswith("status_"):
        status = Status(name.removeprefix("status_").removesuffix("_share"))
        return _tagged(Number(summary.statuses.get(status, 0) / max(summary.total, 1)), name, summary)
    value = _value(summary, name)
    return None if math.isnan(value) else _tagged(Number(value), name, summary)


def _value(summary: Summary, name: str) -> float:
    if name == "scored_count":
        return summary.scored
    if name == "exact_share":
        return summary.exact / summary.scored if summary.scored else math.nan
    for statistic, estimate in summary.estimates.items():
        if name.startswith(f"{statistic}_"):
            what = name.removeprefix(f"{statistic}_")
            return {"value": estimate.value, "ci_low": estimate.low, "ci_high": estimate.high}[what]
    aspect, _, what = name.partition("_")
    agreement = summary.aspects[aspect]
    return {
        "fisher": agreement.fisher,
        "ci_low": agreement.low,
        "ci_high": agreement.high,
        "paper": agreement.paper,
        "count": agreement.count,
        "consistency": agreement.consistency,
    }[what]


def over_group(values: Sequence[Value], _sizes: Sequence[int], _weight_by_size: bool) -> Value:
    """A group's metric from its tasks' values: the average over tasks, by the rules of `combine`."""
    known = [value for value in values if isinstance(value, (Number, Remark))]
    return take(combine(tuple(v.summary for v in known)), known[0].name) if known else None


def _tagged(value: Tagged, name: str, summary: Summary) -> Tagged:
    value.name, value.summary = name, summary
    return value


def _remarks(summary: Summary) -> str:
    options = summary.options
    parts = [f"failures: {options.policy}", f"{options.draws} draws", f"seed {options.seed}"]
    parts += [f"missing ratings: {options.missing_ratings}"] if options.missing_ratings != "drop" else []
    undefined = [f"{aspect} {reason}" for aspect, a in summary.aspects.items() for reason in a.reasons]
    undefined += [f"{name} {estimate.reason}" for name, estimate in summary.estimates.items() if estimate.reason]
    return "; ".join([*parts, *(["undefined: " + ", ".join(undefined)] if undefined else [])])
