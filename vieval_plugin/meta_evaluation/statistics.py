"""The statistics of a benchmark, and their estimates: the one place where a report's numbers
come from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.common_items import (
    PairedTestSpec,
    compared_correlations,
    compared_means,
)
from vieval_plugin.meta_evaluation.comparison import (
    CommonSamplesStatistic,
    ComparedStatistic,
    System,
    unranked_reason,
)
from vieval_plugin.meta_evaluation.estimates import (
    Bootstrap,
    Computed,
    mean_over_parts,
    sum_over_parts,
)
from vieval_plugin.meta_evaluation.findings import Findings, Role
from vieval_plugin.meta_evaluation.observations import Observation, observe
from vieval_plugin.records import Run
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions


@dataclass(frozen=True)
class Rating:
    """Properties of a judge that a report depends on."""

    #: Aspects that it rates.
    aspects: tuple[str, ...]
    #: Further scores that it gives.
    dimensions: tuple[str, ...] = ()
    #: Scores whose means are reported.
    grades: tuple[str, ...] = ()
    #: True where its scores may be known to an interval only.
    intervals: bool = False
    #: Verdicts of each sample.
    repeats: int = 1
    #: True where its one score is compared with every aspect that people rated.
    against_all: bool = False

    @classmethod
    def from_run(cls, run: Run) -> Rating:
        """Return the findings on a run's judge."""
        return cls(run.aspects, against_all=run.against_all)


class StatisticRows(Protocol):
    """A part's observations as a report's statistics compute from them; `scored` are those with
    a score.
    """

    @property
    def scored(self) -> Sequence[Observation]: ...


@dataclass(frozen=True)
class Statistic:
    """A statistic of a benchmark."""

    #: With `ending` the name of its metric, `SC_fisher`.
    name: str
    #: Makes it of the rows of a part, whose type is its report's (`LabelRows` for `WithLabels`, see
    #: `Report.rows`); a `Computed` gets an interval by bootstrap, an `Estimate`
    #: stays as it is.
    compute: Callable[[Any], Computed | Estimate]
    #: End of the name of its metric.
    ending: str = "value"
    #: True where the ends of its interval are metrics as well.
    interval: bool = True
    #: Makes that of a benchmark of those of its parts.
    over_parts: Callable[[Sequence[Estimate]], Estimate] = mean_over_parts
    #: True for that of its aspect by which judges are put in order.
    primary: bool = False
    #: The rated aspect, or empty.
    aspect: str = ""
    #: Lowest and highest value that it can have.
    ends: tuple[float, float] = (0.0, 1.0)
    #: Value of a constant baseline, None without one.
    constant: float | None = None
    #: What judges stand beside, computed of rows that people rated.
    references: Callable[[Any], Mapping[Role, Estimate]] | None = None
    #: Test by which two judges are compared, None without one.
    paired: PairedTestSpec | None = None
    #: Number of samples of an image model in a part that it needs.
    least_samples: int = 1

    @property
    def title(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")

    @property
    def metric(self) -> str:
        """The name of its metric."""
        return f"{self.name}_{self.ending}"

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of all its metrics."""
        if self.interval:
            return (self.metric, f"{self.name}_ci_low", f"{self.name}_ci_high")
        return (self.metric,)


def count_of(rows: StatisticRows) -> Estimate:
    """The number of samples with a score."""
    return Estimate(float(len(rows.scored)))


#: The number of samples with a score, as a statistic.
SCORED = Statistic(
    "scored", count_of, "count", interval=False, over_parts=sum_over_parts
)


class Report(Protocol):
    """Statistics of a benchmark and their findings."""

    #: True where people voted on contests.
    rates_contests: ClassVar[bool] = False

    def statistics(self, rating: Rating) -> tuple[Statistic, ...]:
        """The statistics of a judge's task, none of whose metrics' names is part of another's."""
        ...

    def rows(
        self,
        observations: Sequence[Observation],
        rating: Rating,
        benchmark: str,
        part: str,
        options: StatisticsOptions,
    ) -> StatisticRows:
        """Rows that the statistics are computed from: a part's observations, failed verdicts
        imputed.
        """
        ...

    def findings(
        self,
        benchmark: str,
        parts: Sequence[str],
        runs: Sequence[Run],
        options: StatisticsOptions,
    ) -> Findings:
        """The numbers of all judges, and by which of them they are ranked; `parts` are all parts
        of the benchmark.
        """
        ...


@dataclass(frozen=True, eq=False)
class Summary:
    """The estimates of a part, or several."""

    statistics: tuple[Statistic, ...]
    #: Estimates by the name of their metric.
    estimates: Mapping[str, Estimate]
    #: Number of samples by status.
    statuses: Mapping[Status, int]
    options: StatisticsOptions
    #: Number of samples with a score.
    scored: int = 0
    #: Number of those whose scores are known to the fourth decimal.
    exact: int = 0
    #: What failed verdicts count as, where that is not the options' policy.
    failures: str = ""

    @property
    def total(self) -> int:
        """The number of samples."""
        return sum(self.statuses.values())


def summary_of(
    report: Report,
    observations: Sequence[Observation],
    rating: Rating,
    benchmark: str,
    part: str,
    options: StatisticsOptions,
) -> Summary:
    """The estimates of a part.

    Args:
        report: the benchmark's.
        observations: the part's samples or contests, in any order.
        rating: what is to be known of the judge.
        benchmark, part: their names; together they join the seed, so that parts are resampled
            independently.
        options: what failed verdicts are, how many resamples, the seed.
    """
    rows = report.rows(observations, rating, benchmark, part, options)
    statistics = report.statistics(rating)
    bootstrap = Bootstrap.for_part(f"{benchmark}/{part}", options)
    estimates = {
        statistic.metric: estimate_of(statistic, rows, bootstrap)
        for statistic in statistics
    }
    statuses = Counter(observation.status for observation in observations)
    exact = sum(observation.exact for observation in rows.scored)
    failures = ""
    if report.rates_contests:
        failures = "count as wrong"
    return Summary(
        statistics=statistics,
        estimates=estimates,
        statuses=statuses,
        options=options,
        scored=len(rows.scored),
        exact=exact,
        failures=failures,
    )


def estimate_of(
    statistic: Statistic, rows: StatisticRows, bootstrap: Bootstrap
) -> Estimate:
    """The estimate of a statistic from some rows."""
    computed = statistic.compute(rows)
    if isinstance(computed, Estimate):
        return computed
    return replace(bootstrap.estimate(computed), n=len(rows.scored))


def combine(summaries: Sequence[Summary]) -> Summary:
    """The summary of several parts from theirs; each statistic over the parts that have it.

    Args:
        summaries: one a part, in any order but always the same; not none. All resampled under the
            same options.

    Returns:
        Estimates averaged as each statistic is, with intervals from the parts' independent
        resamples; statuses and counts are sums.

    >>> part = Summary((), {}, {Status.OK: 3}, StatisticsOptions(), scored=3)
    >>> combine((part, part)).total
    6
    """
    statistics = {
        statistic.metric: statistic
        for summary in summaries
        for statistic in summary.statistics
    }
    statuses: Counter[Status] = Counter()
    for summary in summaries:
        statuses.update(summary.statuses)
    estimates = {}
    for metric, statistic in statistics.items():
        parts = [
            summary.estimates[metric]
            for summary in summaries
            if metric in summary.estimates
        ]
        estimates[metric] = statistic.over_parts(parts)
    scored = sum(summary.scored for summary in summaries)
    exact = sum(summary.exact for summary in summaries)
    first = summaries[0]
    return Summary(
        statistics=tuple(statistics.values()),
        estimates=estimates,
        statuses=statuses,
        options=first.options,
        scored=scored,
        exact=exact,
        failures=first.failures,
    )


def compared_runs(
    statistic: Statistic,
    part: str,
    runs: Sequence[Run],
    rows_of: Callable[[Run, Sequence[Observation]], StatisticRows],
) -> ComparedStatistic:
    """A statistic on which judges are compared; without a paired test it says so.

    A judge that has a score for fewer than half of the samples, or whatever the test's items are,
    that any was asked about is not ranked.

    Args:
        statistic: of the benchmark.
        part: the benchmark's.
        runs: the judges'.
        rows_of: what the statistic is computed from, of a judge's observations.
    """
    aspect = statistic.aspect
    test = statistic.paired
    judged = list(observed(runs, part))
    rows = {run.label: rows_of(run, observations) for run, observations in judged}
    applicable = [
        [
            observation
            for observation in observations
            if observation.status is not Status.NOT_APPLICABLE
        ]
        for _, observations in judged
    ]
    by_group = test is not None and test.unit != "samples"
    total = 0
    for samples in applicable:
        n = len(samples)
        if by_group:
            n = len({observation.group for observation in samples})
        total = max(total, n)
    if test:
        items = {label: test.items(judge_rows) for label, judge_rows in rows.items()}
        if test.coefficient:
            title = f"{test.coefficient.capitalize()}'s correlation with the ratings"
            return compared_correlations(
                part, aspect, title, items, test.coefficient, total
            )
        names = {name for judge_items in items.values() for name in judge_items}
        if statistic.constant is None:
            constants = []
        else:
            constants = [dict.fromkeys(names, statistic.constant)]
        return compared_means(
            part,
            aspect,
            statistic.title,
            items,
            test.unit,
            total=total,
            constants=constants,
        )
    return _untestable(rows, total, statistic, part, aspect)


def _untestable(
    rows: dict[str, StatisticRows],
    total: int,
    statistic: Statistic,
    part: str,
    aspect: str,
) -> ComparedStatistic:
    """Statistic on which judges are not compared."""
    counts = {label: len(judge_rows.scored) for label, judge_rows in rows.items()}
    systems = []
    for label, n in counts.items():
        unranked = unranked_reason(n, max(total, n))
        value = statistic.compute(rows[label]).value
        systems.append(System(label, n, unranked=unranked, value=value))
    return ComparedStatistic(
        part=part,
        aspect=aspect,
        statistic=statistic.name,
        systems=tuple(systems),
        pair=lambda first, second: CommonSamplesStatistic(0),
        untestable_reason=(
            f"judges cannot be compared by {statistic.name}, "
            "because it has no paired test"
        ),
    )


def parts_of(parts: Sequence[str], runs: Sequence[Run]) -> tuple[str, ...]:
    """The parts of which any run has records: the benchmark's in order, then what else runs
    hold.
    """
    run_parts = (part for run in runs for part in run.records)
    ordered_parts = dict.fromkeys((*parts, *run_parts))
    return tuple(
        part for part in ordered_parts if any(part in run.records for run in runs)
    )


def observed(
    runs: Sequence[Run], part: str
) -> Iterator[tuple[Run, tuple[Observation, ...]]]:
    """Each run of a part with its observations there."""
    for run in runs:
        if part in run.records:
            yield run, tuple(observe(records) for records in run.records[part])
