"""The report of benchmarks with labels, preferences or human scores of their own kind: one row a part, judge and aspect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.estimates import Bootstrap, Computed
from vieval_plugin.meta_evaluation.headline import Headline
from vieval_plugin.meta_evaluation.label_statistics import ASPECT, STATISTICS, LabelRows
from vieval_plugin.meta_evaluation.observations import Observation
from vieval_plugin.meta_evaluation.statistics import (
    SCORED,
    Rating,
    Statistic,
    asked_sample_count,
    compared_judge_statistic,
    estimates_of,
    observed,
    parts_of,
    statistic_cells,
)
from vieval_plugin.meta_evaluation.tables import Key, Table, Tables, with_interval
from vieval_plugin.records import Run
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions


@dataclass(frozen=True)
class RowsByAspect:
    """The rows of each aspect that a judge is compared on."""

    by_aspect: Mapping[str, LabelRows]

    @property
    def scored(self) -> tuple[Observation, ...]:
        """The samples with a score, of the aspect that has fewest."""
        return min((rows.scored for rows in self.by_aspect.values()), key=len, default=())


@dataclass(frozen=True)
class _JudgedAspect:
    """A judge on a part by one aspect: the estimates by metric, and those of the samples under each tag."""

    run: Run
    part: str
    aspect: str
    rows: LabelRows
    estimates: Mapping[str, Estimate]
    by_tag: Mapping[str, tuple[LabelRows, Mapping[str, Estimate]]]


@dataclass(frozen=True)
class WithLabels:
    """Some statistics, by their names in `label_statistics.STATISTICS` or your own, on each aspect that people rated.

    >>> WithLabels(("auc",))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: no statistic 'auc'; known: pearson, spearman, kendall, ...
    """

    statistic_names: tuple[str | Statistic, ...]
    aspects: tuple[str, ...] = (ASPECT,)

    def __post_init__(self) -> None:
        if unknown := [name for name in self.statistic_names if isinstance(name, str) and name not in STATISTICS]:
            raise ValueError(f"no statistic {unknown[0]!r}; known: {', '.join(STATISTICS)}")

    @property
    def columns(self) -> tuple[Statistic, ...]:
        """The statistics of one aspect's rows."""
        return tuple(STATISTICS[s] if isinstance(s, str) else s for s in self.statistic_names)

    def statistics(self, rating: Rating) -> tuple[Statistic, ...]:
        """Each statistic, and how many samples have a score; where people rated several aspects, by each that is judged.

        >>> [statistic.metric for statistic in WithLabels(("auroc",)).statistics(Rating(("SC",)))]
        ['auroc_value', 'scored_count']
        >>> [statistic.name for statistic in WithLabels(("spearman",), ("SC", "PQ")).statistics(Rating(("PQ", "O")))]
        ['PQ_spearman', 'scored']
        """
        return (*(self._on(aspect, column) for aspect in self._compared(rating) for column in self.columns), SCORED)

    def _on(self, aspect: str, column: Statistic) -> Statistic:
        def compute(rows: RowsByAspect) -> Computed | Estimate:
            return column.compute(rows.by_aspect[aspect])

        name = column.name if len(self.aspects) == 1 else f"{aspect}_{column.name}"
        return replace(column, name=name, compute=compute, primary=column is self.columns[0], aspect=aspect)

    def rows(
        self,
        observations: Sequence[Observation],
        rating: Rating,
        benchmark: str,
        part: str,
        options: StatisticsOptions,
    ) -> RowsByAspect:
        """The rows of each aspect that the judge is compared on."""
        return RowsByAspect({aspect: _rows(observations, rating, aspect, options) for aspect in self._compared(rating)})

    def _compared(self, rating: Rating) -> tuple[str, ...]:
        """The aspects that a judge is compared on: a benchmark of one aspect compares every judge on that."""
        if len(self.aspects) == 1 or rating.against_all:
            return self.aspects
        return tuple(aspect for aspect in self.aspects if aspect in rating.aspects)

    def tables(self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions) -> Tables:
        """A row a part, judge and aspect, one a skill where samples have tags, and the numbers as cells (`statistics`)."""
        judged = [row for run in runs for part in run.records for row in self._judged(run, benchmark, part, options)]
        with_aspect = len(self.aspects) > 1
        leading_cells = [(row.part, row.run.label, *([row.aspect] if with_aspect else [])) for row in judged]
        rows = [(*head, *_cells(row.rows, row.estimates)) for head, row in zip(leading_cells, judged, strict=True)]
        by_skill = [
            (*head, tag, *_cells(*of_tag))
            for head, row in zip(leading_cells, judged, strict=True)
            for tag, of_tag in row.by_tag.items()
        ]
        cells: dict[Key, float] = {}
        reasons: dict[Key, str] = {}
        for row in judged:
            columns = [replace(column, aspect=row.aspect) for column in self.columns]
            statistic_cells(columns, row.estimates, row.part, row.run.label, cells, reasons)
        head = ("task", "judge", *(["aspect"] if with_aspect else []))
        header = ("scored", "exact", *(column.name for column in self.columns))
        tables = (
            Table("statistics", "Statistics [95% interval]", (*head, *header), tuple(rows)),
            Table("skills", "By skill", (*head, "skill", *header), tuple(by_skill)),
        )
        headlines = tuple(
            self._headline(aspect, part, judged, runs, options)
            for aspect in self.aspects
            for part in dict.fromkeys(row.part for row in judged if row.aspect == aspect)
        )
        return Tables(tuple(table for table in tables if table.rows), cells, reasons=reasons, headlines=headlines)

    def _judged(self, run: Run, benchmark: str, part: str, options: StatisticsOptions) -> list[_JudgedAspect]:
        [(_, observations)] = observed([run], part)
        name, rows = f"{benchmark}/{part}", self.rows(observations, Rating.from_run(run), benchmark, part, options)
        tags = sorted({tag for o in observations for tag in o.tags})
        return [
            _JudgedAspect(
                run,
                part,
                aspect,
                of_aspect,
                estimates_of(self.columns, of_aspect, Bootstrap.for_part(name, options)),
                {
                    tag: (tagged, estimates_of(self.columns, tagged, Bootstrap.for_part(f"{name}/{tag}", options)))
                    for tag in tags
                    for tagged in [of_aspect.with_tag(tag)]
                },
            )
            for aspect, of_aspect in rows.by_aspect.items()
        ]

    def _headline(
        self, aspect: str, part: str, judged: Sequence[_JudgedAspect], runs: Sequence[Run], options: StatisticsOptions
    ) -> Headline:
        """The first statistic on a part."""
        first, with_part = self.columns[0], len({row.part for row in judged if row.aspect == aspect}) > 1
        rows = [row for row in judged if (row.aspect, row.part) == (aspect, part)]
        by_tag = {
            tag: {row.run.label: row.by_tag[tag][1][first.metric] for row in rows if tag in row.by_tag}
            for tag in dict.fromkeys(tag for row in rows for tag in row.by_tag)
        }
        return Headline(
            aspect,
            f"{first.title}{f', {part}' if with_part else ''}",
            "It is the first of the statistics that this benchmark was published with.",
            "samples",
            first.ends,
            {row.run.label: row.estimates[first.metric] for row in rows},
            partial(self._test, first, aspect, part, runs),
            {} if first.constant is None else {"scores that never look": Estimate(first.constant)},
            {"tag": by_tag} if by_tag else {},
            statistic=first.title,
        )

    def compared(
        self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions
    ) -> Sequence[ComparedStatistic]:
        """Each aspect, part and statistic that has a paired test; where none has, one entry a part that says so."""
        testable = [column for column in self.columns if column.paired] or self.columns[:1]
        return [
            self._test(column, aspect, part, runs, options)
            for aspect in self.aspects
            for part in parts_of(parts, runs)
            for column in testable
        ]

    def _test(
        self, column: Statistic, aspect: str, part: str, runs: Sequence[Run], options: StatisticsOptions
    ) -> ComparedStatistic:
        rows = {
            run.label: _rows(observations, Rating.from_run(run), aspect, options)
            for run, observations in observed(runs, part)
        }
        return compared_judge_statistic(
            replace(column, aspect=aspect), part, rows, asked_sample_count(runs, part, column)
        )


def _rows(observations: Sequence[Observation], rating: Rating, aspect: str, options: StatisticsOptions) -> LabelRows:
    """The rows of an aspect that people rated: scores of the same aspect, or of a judge's only one."""
    judged = rating.aspects[0] if rating.against_all and rating.aspects else aspect
    return LabelRows.from_observations(observations, aspect, judged, options)


def _cells(rows: LabelRows, estimates: Mapping[str, Estimate]) -> list[str]:
    exact = sum(o.exact for o in rows.scored)
    return [str(len(rows.scored)), str(exact), *map(with_interval, estimates.values())]
