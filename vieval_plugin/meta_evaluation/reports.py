"""The protocol of a benchmark's report object; every benchmark has one, and nothing asks which kind it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.observations import Observation, Summary
from vieval_plugin.meta_evaluation.tables import Tables
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions


@dataclass(frozen=True)
class Rating:
    """Properties of a judge that a report depends on.

    `aspects` are those it rates, `dimensions` further scores it gives, `grades` scores whose means are reported;
    `intervals` says whether its scores may be known to an interval only, `repeats` how often each sample is judged,
    `against_all` whether its one score is compared with every aspect that people rated.
    """

    aspects: tuple[str, ...]
    dimensions: tuple[str, ...] = ()
    grades: tuple[str, ...] = ()
    intervals: bool = False
    repeats: int = 1
    against_all: bool = False


class Report(Protocol):
    """Statistics and tables of a benchmark. Hosts report the numbers of a `Summary` by the names that `names` gives."""

    def names(self, rating: Rating) -> tuple[str, ...]:
        """The names of all numbers that a judge's task reports, none part of another, less those every task has."""
        ...

    def shown(self, rating: Rating) -> tuple[str, ...]:
        """Return the handful of these names that a host's own table shows, best known first."""
        ...

    def summarise(
        self,
        observations: tuple[Observation, ...],
        rating: Rating,
        benchmark: str,
        part: str,
        options: StatisticsOptions,
    ) -> Summary:
        """A part's numbers for one judge, with intervals."""
        ...

    def tables(self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions) -> Tables:
        """The tables and cells of all judges; `parts` are all parts of the benchmark, in order."""
        ...

    def compared(
        self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions
    ) -> Sequence[ComparedStatistic]:
        """Statistics on which the judges of these runs are compared (see `comparison`); arguments as for `tables`.
        A statistic that has no paired test says so in `untestable`."""
        ...
