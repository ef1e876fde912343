"""The report of benchmarks with named annotators: agreement with each and with their mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from vieval_plugin.meta_evaluation.annotator_agreement import (
    COEFFICIENTS,
    MEAN,
    OVERALL,
    Annotated,
    AnnotatedRows,
    among_annotators,
    correlations,
    mean_grade,
    metric_stem,
)
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.estimates import Bootstrap, mean_over_parts
from vieval_plugin.meta_evaluation.headline import CONSTANT_BASELINE_LABEL, Headline
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
from vieval_plugin.meta_evaluation.tables import Key, Table, Tables, number, with_interval
from vieval_plugin.records import Run
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

WITH_ALL, WITH_OTHERS = "annotators, with the mean of all", "annotators, with the mean of the others"
PAPER = (
    "Table 1 has the shape of that table in Tu et al., Automatic Evaluation for Text-to-Image Generation (2024); the numbers are "
    "computed here, from these runs."
)
HIGHEST_GRADE = 5.0
"""Grades are shown as Tu et al. ask for them, from 0 to 5; a verdict has them in [0, 1]."""

_HEADLINE_COEFFICIENT: Final = "spearman"
_SYMBOLS = {"spearman": "rho", "kendall": "tau"}


@dataclass(frozen=True)
class _Line:
    """A judge, or the annotators themselves: `counts` of the scored samples a dimension, `failed` of all (None: humans)."""

    label: str
    estimates: Mapping[str, Estimate]
    counts: Mapping[str, int]
    failed: int | None

    def at(self, dimension: str, annotator: str, coefficient: str) -> Estimate | None:
        """Return the correlation of a dimension with an annotator, None where there is none."""
        return self.estimates.get(f"{metric_stem(dimension, annotator, coefficient)}_value")


@dataclass(frozen=True)
class WithAnnotators(Annotated):
    """Agreement with each annotator and with their mean, overall, and by dimension for judges that score dimensions.

    `dimensions` are what was rated beside the whole, `overall` is the aspect that holds the overall ratings (a judge
    that does not rate it is compared by SC), `annotator_count` how many annotators there are; a sample has NaN for one
    who gave none.
    """

    def statistics(self, rating: Rating) -> tuple[Statistic, ...]:
        """Overall with each annotator and their mean, the dimensions that the judge scores with the mean, mean grades.

        >>> report = WithAnnotators(("appearance",), "O", 3)
        >>> len(report.statistics(Rating(("O",), ("appearance",), ("quality",))))
        12
        """
        dimensions = [dimension for dimension in self.dimensions if dimension in rating.dimensions]
        return (
            *correlations([OVERALL], self.annotators),
            *correlations(dimensions, [MEAN]),
            *map(mean_grade, rating.grades),
            SCORED,
        )

    def rows(
        self,
        observations: Sequence[Observation],
        rating: Rating,
        benchmark: str,
        part: str,
        options: StatisticsOptions,
    ) -> AnnotatedRows:
        """The samples beside all annotators' ratings."""
        return AnnotatedRows.from_observations(observations, rating, self, options)

    def tables(self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions) -> Tables:
        """Table 1 of T2I-Eval and its like for each dimension, with the annotators among themselves above the judges.

        All intervals, grades, and the numbers as cells (table `statistics`) as well.
        """
        tables: list[Table] = []
        cells: dict[Key, float] = {}
        reasons: dict[Key, str] = {}
        headlines: list[Headline] = []
        for part in parts_of((), runs):
            bootstrap = Bootstrap.for_part(f"{benchmark}/{part}", options)
            judged = {run.label: self._judged(run, rows, options) for run, rows in observed(runs, part)}
            lines = self._lines(judged, part, bootstrap, cells, reasons)
            for dimension in (OVERALL, *self.dimensions):
                rated = [line for line in lines if line.counts.get(dimension)]
                if any(line.failed is not None for line in rated):
                    tables.append(self._like_table_1(dimension, rated))
            tables.append(self._intervals(lines))
            tables += self._grades(judged, runs, bootstrap)
            headlines.append(self._headline(part, lines, runs, options))
        return Tables(tuple(tables), cells, reasons=reasons, headlines=tuple(headlines), paper=PAPER)

    def _judged(self, run: Run, observations: Sequence[Observation], options: StatisticsOptions) -> AnnotatedRows:
        scored = {name for o in observations for name in o.scores}
        dimensions = tuple(dimension for dimension in self.dimensions if dimension in scored)
        return AnnotatedRows.from_observations(
            observations, replace(Rating.from_run(run), dimensions=dimensions), self, options
        )

    def _lines(
        self,
        judged: Mapping[str, AnnotatedRows],
        part: str,
        bootstrap: Bootstrap,
        cells: dict[Key, float],
        reasons: dict[Key, str],
    ) -> list[_Line]:
        """The annotators among themselves, over all rated samples, and the judges."""
        all_dimensions = (OVERALL, *self.dimensions)
        rated = {o.uid: o for rows in judged.values() for o in rows.judged}
        rated_rows = replace(next(iter(judged.values())), judged=tuple(sorted(rated.values(), key=lambda o: o.uid)))
        lines = []

        def add(
            label: str,
            statistics: Sequence[Statistic],
            rows: AnnotatedRows,
            counts: Mapping[str, int],
            failed: int | None,
        ) -> None:
            estimates = estimates_of(statistics, rows, bootstrap)
            lines.append(_Line(label, estimates, counts, failed))
            statistic_cells(statistics, estimates, part, label, cells, reasons)

        annotators = self.annotators[:-1]
        for label, leave_one_out in ((WITH_ALL, False), (WITH_OTHERS, True)):
            among = among_annotators(all_dimensions, annotators, leave_one_out)
            add(label, among, rated_rows, dict.fromkeys(all_dimensions, len(rated)), None)
        for label, rows in judged.items():
            counts = {d: sum(d in o.scores for o in rows.judged) for d in self.dimensions}
            counts = {OVERALL: len(rows.scored)} | {d: n for d, n in counts.items() if n}
            failed = len(rows.judged) - len(rows.scored)
            add(label, correlations([*counts], self.annotators), rows, counts, failed)
        return lines

    def _like_table_1(self, dimension: str, lines: Sequence[_Line]) -> Table:
        against = [(annotator, coefficient) for annotator in self.annotators for coefficient in COEFFICIENTS]
        header = ("judge", "n", "failed", *(f"manual {annotator} {_SYMBOLS[c]}" for annotator, c in against))
        rows = tuple(
            (
                line.label,
                str(line.counts[dimension]),
                "" if line.failed is None else str(line.failed),
                *(number(line.at(dimension, *annotator)) for annotator in against),
            )
            for line in lines
        )
        title = "Table 1. Overall score" if dimension == OVERALL else f"{dimension.capitalize()} score"
        return Table("table_1" if dimension == OVERALL else dimension, f"{title}, with each annotator", header, rows)

    def _intervals(self, lines: Sequence[_Line]) -> Table:
        rows = [
            (line.label, dimension, f"manual {annotator}", *map(with_interval, estimates))
            for line in lines
            for dimension in line.counts
            for annotator in self.annotators
            if (estimates := [e for c in COEFFICIENTS if (e := line.at(dimension, annotator, c))])
        ]
        header = ("judge", "score", "with", *(_SYMBOLS[c] for c in COEFFICIENTS))
        return Table("intervals", "With 95% intervals", header, tuple(rows))

    def _grades(self, judged: Mapping[str, AnnotatedRows], runs: Sequence[Run], bootstrap: Bootstrap) -> list[Table]:
        """The means of what verdicts have beside aspects and dimensions: grades of explanations; no table without any."""
        ratings = {run.label: {*run.aspects, *self.dimensions} for run in runs}
        names = sorted(
            {
                name
                for label, rows in judged.items()
                for o in rows.judged
                for name in o.scores
                if name not in ratings[label]
            }
        )
        lines = []
        for label, rows in judged.items():
            graded = [str(sum(name in o.scores for o in rows.judged)) for name in names]
            means = estimates_of([mean_grade(name) for name in names], rows, bootstrap).values()
            if any(n != "0" for n in graded):
                mean_cells = [with_interval(mean, scale=HIGHEST_GRADE) for mean in means]
                lines.append((label, *(cell for pair in zip(graded, mean_cells, strict=True) for cell in pair)))
        header = ("judge", *(cell for name in names for cell in ("n", name.replace("_", " "))))
        title = "Grades beside the ratings, such as those of explanations against the annotators', 0 to 5"
        return [Table("explanations", title, header, tuple(lines))] if lines else []

    def _headline(self, part: str, lines: Sequence[_Line], runs: Sequence[Run], options: StatisticsOptions) -> Headline:
        """The overall scores of all judges beside the annotators with one another, and those of each dimension."""
        judges = [line for line in lines if line.failed is not None]
        [human] = [line for line in lines if line.label == WITH_OTHERS]

        def by_judge(dimension: str) -> dict[str, Estimate]:
            return {
                line.label: replace(estimate, n=line.counts[dimension])
                for line in judges
                if (estimate := line.at(dimension, MEAN, _HEADLINE_COEFFICIENT))
            }

        alone = [e for annotator in self.annotators[:-1] if (e := human.at(OVERALL, annotator, _HEADLINE_COEFFICIENT))]
        mean = replace(mean_over_parts(alone), n=human.counts[OVERALL]) if alone else None
        ceiling = {"human ceiling: each annotator with the others": mean} if mean else {}
        return Headline(
            OVERALL,
            f"Spearman's correlation of overall scores with the mean of all annotators, {part}",
            "What annotators disagree on cancels out in their mean, and the order is what counts, whatever scale the judge uses.",
            "samples",
            (-1.0, 1.0),
            by_judge(OVERALL),
            partial(self._compared, part, runs),
            {**ceiling, CONSTANT_BASELINE_LABEL: Estimate(0.0)},
            {"dimension": {dimension: values for dimension in self.dimensions if (values := by_judge(dimension))}},
            statistic="Spearman",
        )

    def compared(
        self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions
    ) -> Sequence[ComparedStatistic]:
        """Overall scores with the mean of all annotators, by Spearman's coefficient, each part for itself."""
        return [self._compared(part, runs, options) for part in parts_of(parts, runs)]

    def _compared(self, part: str, runs: Sequence[Run], options: StatisticsOptions) -> ComparedStatistic:
        rows = {
            run.label: AnnotatedRows.from_observations(observations, Rating.from_run(run), self, options)
            for run, observations in observed(runs, part)
        }
        statistic = correlations([OVERALL], [MEAN])[0]
        return compared_judge_statistic(statistic, part, rows, asked_sample_count(runs, part, statistic))
