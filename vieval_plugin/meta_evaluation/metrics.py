"""Summaries as metrics by name, for any host: one name a number.

No metric name is part of another: hosts look for names as substrings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.findings import preferred
from vieval_plugin.meta_evaluation.statistics import Rating, Report, Statistic, Summary
from vieval_plugin.meta_evaluation.tables import interval_text
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.text.wording import nan_to_none

REMARKS = "remarks"
#: What begins the reasons for undefined numbers in it.
UNDEFINED = "undefined: "

_STATUSES = {f"status_{status}_share": status for status in Status}


def names(report: Report, rating: Rating) -> tuple[str, ...]:
    """Metric names of a task: what the benchmark's report has for the judge, and what every task
    has.

    Args:
        report: the benchmark's.
        rating: what is to be known of the judge.

    Returns:
        Those of the report's statistics; `exact_share` where scores may be known to an interval
        only; the share of samples by status; `remarks`, the one in words.

    >>> from vieval_plugin.meta_evaluation.labels import WithLabels
    >>> names(WithLabels(("auroc",)), Rating(("SC",), intervals=True))[3:6]
    ('scored_count', 'exact_share', 'status_ok_share')
    """
    metrics = list[str]()
    for statistic in report.statistics(rating):
        metrics += statistic.metrics
    if rating.intervals:
        metrics.append("exact_share")
    return (*metrics, *_STATUSES, REMARKS)


def primary_statistic(statistics: Sequence[Statistic]) -> Statistic:
    """The statistic of a task that a host's own table has room for: of the marked ones that of O,
    or else of SC.

    >>> from vieval_plugin.meta_evaluation.labels import WithLabels
    >>> primary_statistic(WithLabels(("auroc",)).statistics(Rating(("SC",)))).metric
    'auroc_value'
    """
    marked = {
        statistic.aspect: statistic for statistic in statistics if statistic.primary
    }
    return marked[preferred(list(marked))[0]]


def host_table_cell(summary: Summary) -> str:
    """The primary statistic in a cell of a host's own table, with its interval, n and failures.

    Samples that the judge does not apply to have not failed.
    """
    estimate = summary.estimates[primary_statistic(summary.statistics).metric]
    failed = 0
    for status, n in summary.statuses.items():
        if not status.usable and status is not Status.NOT_APPLICABLE:
            failed += n
    # `remarks` has the reason of each image model
    short_reason = estimate.reason.partition(":")[0]
    estimate = replace(estimate, reasons=(short_reason,))
    return f"{interval_text(estimate, 3)}, n {estimate.sample_count}, failed {failed}"


def higher_is_better(name: str) -> bool | None:
    """True where more of a metric is better, False where less is.

    Args:
        name: one that `names` gave.

    Returns:
        None where the question makes no sense, as for counts, ends of intervals and remarks.

    >>> higher_is_better("SC_fisher"), higher_is_better("status_refusal_share"), higher_is_better("SC_count")
    (True, False, None)
    """
    if name in ("status_ok_share", "exact_share"):
        return True
    if name in _STATUSES or name.endswith("_inconsistent_share_value"):
        return False
    # an upper bound is none of the judge's own, and what an image costs says nothing of it
    if "_upper_bound_" in name or name.startswith(("generation_", "judging_")):
        return None
    if name.endswith(("_fisher", "_paper", "_consistency", "_value")):
        return True
    return None


def value(summary: Summary, name: str) -> float | str | None:
    """The value of a metric in a summary.

    Args:
        summary: what `summary_of`, or `combine`, gave.
        name: one that `names` gave for the same report and judge.

    Returns:
        A number; a text for `remarks`; None for an undefined number, whose reason stands in
        `remarks`.

    Raises:
        KeyError: for a name that the summary does not have.

    >>> from vieval_plugin.stats.options import StatisticsOptions
    >>> half = Summary((), {}, {Status.OK: 1, Status.REFUSAL: 1}, StatisticsOptions(draws=10), scored=1)
    >>> value(half, "status_refusal_share"), value(half, "remarks")
    (0.5, 'failures: drop; 10 draws; seed 0')
    """
    if name == REMARKS:
        return _remarks(summary)
    if name in _STATUSES:
        count = summary.statuses.get(_STATUSES[name], 0)
        return count / max(summary.total, 1)
    return nan_to_none(_number(summary, name))


def _number(summary: Summary, name: str) -> float:
    if name == "exact_share":
        if summary.scored:
            return summary.exact / summary.scored
        return math.nan
    for statistic in summary.statistics:
        if name in statistic.metrics:
            estimate = summary.estimates[statistic.metric]
            ends = (estimate.value, estimate.low, estimate.high)
            return ends[statistic.metrics.index(name)]
    raise KeyError(name)


def _remarks(summary: Summary) -> str:
    options = summary.options
    parts = [
        f"failures: {summary.failures or options.policy}",
        f"{options.draws} draws",
        f"seed {options.seed}",
    ]
    if options.missing_ratings != "drop":
        parts.append(f"missing ratings: {options.missing_ratings}")
    # of what has one name, such as a correlation and its number of samples, the first says it for
    # all
    estimates: dict[str, Estimate] = {}
    for statistic in summary.statistics:
        estimates.setdefault(statistic.name, summary.estimates[statistic.metric])
    undefined = list[str]()
    constant = list[str]()
    for name, estimate in estimates.items():
        undefined += [f"{name} {reason}" for reason in estimate.reasons]
        constant += [f"{name} {reason}" for reason in estimate.zeros]
    if undefined:
        parts.append(UNDEFINED + ", ".join(undefined))
    if constant:
        parts.append("counted as 0: " + ", ".join(constant))
    return "; ".join(parts)
