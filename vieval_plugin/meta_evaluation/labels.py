"""The report of benchmarks with labels, preferences or human scores of their own kind:
statistics by part and aspect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.estimates import Bootstrap, Computed
from vieval_plugin.meta_evaluation.findings import (
    CEILING_LABEL,
    CONSTANT_LABEL,
    Findings,
    Number,
    RankedStatistic,
    Role,
    layouts,
)
from vieval_plugin.meta_evaluation.label_statistics import ASPECT, STATISTICS, LabelRows
from vieval_plugin.meta_evaluation.observations import Observation
from vieval_plugin.meta_evaluation.statistics import (
    SCORED,
    Rating,
    Report,
    Statistic,
    compared_runs,
    estimate_of,
    observed,
    parts_of,
)
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.records import Run
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

_LABELS: Mapping[Role, str] = {"baseline": CONSTANT_LABEL, "ceiling": CEILING_LABEL}
_WHY = "This is the first statistic in the benchmark's publication."


@dataclass(frozen=True)
class RowsByAspect:
    """The rows of each aspect that a judge is compared on."""

    by_aspect: Mapping[str, LabelRows]

    @property
    def scored(self) -> tuple[Observation, ...]:
        """The samples with a score, of the aspect that has fewest."""
        return min(
            (rows.scored for rows in self.by_aspect.values()), key=len, default=()
        )


@dataclass(frozen=True)
class WithLabels(Report):
    """Some statistics, by their names in `label_statistics.STATISTICS` or your own, on each aspect
    that people rated.

    >>> WithLabels(("auc",))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: unknown statistic 'auc'; known statistics: pearson, spearman, kendall, ...
    """

    statistic_names: tuple[str | Statistic, ...]
    aspects: tuple[str, ...] = (ASPECT,)

    def __post_init__(self) -> None:
        unknown = [
            name
            for name in self.statistic_names
            if isinstance(name, str) and name not in STATISTICS
        ]
        if unknown:
            raise ValueError(
                f"unknown statistic {unknown[0]!r}; "
                f"known statistics: {', '.join(STATISTICS)}"
            )

    @property
    def columns(self) -> tuple[Statistic, ...]:
        """The statistics of one aspect's rows."""
        return tuple(
            STATISTICS[name] if isinstance(name, str) else name
            for name in self.statistic_names
        )

    def statistics(self, rating: Rating) -> tuple[Statistic, ...]:
        """Each statistic, and how many samples have a score; where people rated several aspects, by
        each that is judged.

        >>> [statistic.metric for statistic in WithLabels(("auroc",)).statistics(Rating(("SC",)))]
        ['auroc_value', 'scored_count']
        >>> [statistic.name for statistic in WithLabels(("spearman",), ("SC", "PQ")).statistics(Rating(("PQ", "O")))]
        ['PQ_spearman', 'scored']
        """
        return (
            *(
                self._aspect_statistic(aspect, column)
                for aspect in self._judged_aspects(rating)
                for column in self.columns
            ),
            SCORED,
        )

    def _aspect_statistic(self, aspect: str, column: Statistic) -> Statistic:
        def compute(rows: RowsByAspect) -> Computed | Estimate:
            return column.compute(rows.by_aspect[aspect])

        name = column.name
        if len(self.aspects) != 1:
            name = f"{aspect}_{column.name}"
        leads = column is self.columns[0]
        return replace(column, name=name, compute=compute, primary=leads, aspect=aspect)

    def rows(
        self,
        observations: Sequence[Observation],
        rating: Rating,
        benchmark: str,
        part: str,
        options: StatisticsOptions,
    ) -> RowsByAspect:
        """The rows of each aspect that the judge is compared on."""
        return RowsByAspect(
            {
                aspect: _rows(observations, rating, aspect, options)
                for aspect in self._judged_aspects(rating)
            }
        )

    def _judged_aspects(self, rating: Rating) -> tuple[str, ...]:
        """The aspects that a judge is compared on: a benchmark of one aspect compares every
        judge on that.
        """
        if len(self.aspects) == 1 or rating.against_all:
            return self.aspects
        return tuple(aspect for aspect in self.aspects if aspect in rating.aspects)

    def findings(
        self,
        benchmark: str,
        parts: Sequence[str],
        runs: Sequence[Run],
        options: StatisticsOptions,
    ) -> Findings:
        """Each statistic by part, judge and aspect, and by skill where samples have tags."""
        judged_parts = set[str]()
        numbers = list[Number]()
        for run in runs:
            judged_parts.update(run.records)
            for part in run.records:
                numbers += self._numbers(run, benchmark, part, options)
        judged_places = {(number.aspect, number.part) for number in numbers}
        column_keys = product(self.aspects, parts_of(parts, runs), self.columns)
        ranked = []
        for aspect, part, column in column_keys:
            is_compared = column.paired or column is self.columns[0]
            if is_compared and (aspect, part) in judged_places:
                ranked.append(
                    self._ranked(column, aspect, part, runs, len(judged_parts))
                )
        ranked.sort(key=lambda statistic: not statistic.is_headline)
        names = tuple(column.name for column in self.columns)
        hidden = []
        if len(self.aspects) <= 1:
            hidden = ["aspect"]
        tables = [
            replace(
                layout,
                statistics=("scored", "exact", *names),
                rows={
                    heading: name
                    for heading, name in layout.rows.items()
                    if heading not in hidden
                },
                roles=("judge",),
            )
            for layout in layouts("labels")
        ]
        return Findings(tuple(numbers), tuple(ranked), tuple(tables))

    def _numbers(
        self, run: Run, benchmark: str, part: str, options: StatisticsOptions
    ) -> list[Number]:
        [(_, observations)] = observed([run], part)
        rows = self.rows(observations, Rating.from_run(run), benchmark, part, options)
        tags = sorted({tag for observation in observations for tag in observation.tags})
        numbers = []
        for aspect, aspect_rows in rows.by_aspect.items():
            for tag in ("", *tags):
                tagged = aspect_rows
                if tag:
                    tagged = aspect_rows.having_tag(tag)
                bootstrap_name = "/".join(filter(None, (benchmark, part, tag)))
                bootstrap = Bootstrap.for_part(bootstrap_name, options)
                counts = {
                    "scored": len(tagged.scored),
                    "exact": sum(observation.exact for observation in tagged.scored),
                }
                estimates = {
                    name: Estimate(count, n=count) for name, count in counts.items()
                }
                estimates |= {
                    column.name: estimate_of(column, tagged, bootstrap)
                    for column in self.columns
                }
                breakdown = ""
                if tag:
                    breakdown = "tag"
                for name, estimate in estimates.items():
                    key = None
                    if not tag and name not in counts:
                        key = Key(
                            table="statistics",
                            task=part,
                            image_model="",
                            judge=run.label,
                            statistic=name,
                            aspect=aspect,
                        )
                    number = Number(
                        run.label,
                        estimate,
                        part,
                        aspect,
                        name,
                        breakdown=breakdown,
                        value=tag,
                        key=key,
                    )
                    numbers.append(number)
        return numbers

    def _ranked(
        self,
        column: Statistic,
        aspect: str,
        part: str,
        runs: Sequence[Run],
        part_count: int,
    ) -> RankedStatistic:
        title = column.title
        if part_count > 1:
            title = f"{title}, {part}"
        compared = partial(self._compared, column, aspect, part, runs)
        leads = column is self.columns[0]
        references = []
        for role, estimate in _references(column, aspect, part, runs).items():
            label = _LABELS[role]
            number = Number(
                system=label,
                estimate=estimate,
                part=part,
                aspect=aspect,
                statistic=column.name,
                role=role,
            )
            references.append(number)
        return RankedStatistic(
            part=part,
            aspect=aspect,
            statistic=column.name,
            measured=column.title,
            title=title,
            why=_WHY,
            ends=column.ends,
            compared=compared,
            references=tuple(references),
            is_headline=leads,
        )

    def _compared(
        self,
        column: Statistic,
        aspect: str,
        part: str,
        runs: Sequence[Run],
        options: StatisticsOptions,
    ) -> ComparedStatistic:
        def rows_of(run: Run, observations: Sequence[Observation]) -> LabelRows:
            return _rows(observations, Rating.from_run(run), aspect, options)

        return compared_runs(replace(column, aspect=aspect), part, runs, rows_of)


def _references(
    column: Statistic, aspect: str, part: str, runs: Sequence[Run]
) -> Mapping[Role, Estimate]:
    if column.references:
        rated = {
            (observation.image_model, observation.uid): observation
            for _, observations in observed(runs, part)
            for observation in observations
        }
        return column.references(LabelRows(tuple(rated.values()), aspect, aspect))
    if column.constant is None:
        return {}
    return {"baseline": Estimate(column.constant)}


def _rows(
    observations: Sequence[Observation],
    rating: Rating,
    aspect: str,
    options: StatisticsOptions,
) -> LabelRows:
    """The rows of an aspect that people rated: scores of the same aspect, or of a judge's only
    one.
    """
    judged = aspect
    if rating.against_all and rating.aspects:
        judged = rating.aspects[0]
    return LabelRows.from_observations(observations, aspect, judged, options)
