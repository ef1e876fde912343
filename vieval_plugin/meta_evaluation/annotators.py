"""The report of benchmarks with named annotators: agreement with each and with their mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from vieval_plugin.meta_evaluation.annotator_agreement import (
    COEFFICIENTS,
    MEAN,
    OVERALL,
    Annotated,
    AnnotatorCorrelation,
    MeanGrade,
    RequestedStatistic,
    among_themselves,
    annotator_agreement,
    comparisons,
    overall_items,
)
from vieval_plugin.meta_evaluation.common_items import compared_correlations
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.estimates import mean_over_parts
from vieval_plugin.meta_evaluation.headline import Headline, HeadlineNumber
from vieval_plugin.meta_evaluation.observations import Estimate, Observation, Summary, observe
from vieval_plugin.meta_evaluation.reports import Rating
from vieval_plugin.meta_evaluation.tables import Key, Table, Tables, number, with_interval
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions

HEADLINE_COEFFICIENT: Final = "spearman"


def annotator_headline(
    part: str,
    judges: Mapping[str, tuple[Estimate, int]],
    people: Sequence[Estimate],
    rated: int,
    dimensions: Mapping[str, Mapping[str, tuple[Estimate, int]]],
    compared: Callable[[], ComparedStatistic],
) -> Headline:
    """The headline of a part.

    Args:
        part: the benchmark's.
        judges: by label, the coefficient and of how many samples it is.
        people: of each annotator, the coefficient with the mean of the others.
        rated: how many samples people rated.
        dimensions: the judges' coefficients by dimension, as `judges`.
        compared: see `Headline`.
    """
    ceiling = mean_over_parts(people) if people else None
    nothing = HeadlineNumber("best constant: the same score for all", 0.0, math.nan, math.nan, 0)
    top = [_number("human ceiling: each annotator with the others", ceiling, rated)] if ceiling else []
    return Headline(
        OVERALL,
        f"Spearman's correlation of overall scores with the mean of all annotators, {part}",
        "What annotators disagree on cancels out in their mean, and the order is what counts, whatever scale the judge uses.",
        "samples",
        (-1.0, 1.0),
        tuple(_number(label, *correlation) for label, correlation in judges.items()),
        compared,
        (*top, nothing),
        {
            "dimension": {
                name: [_number(label, *correlation) for label, correlation in of_judges.items()]
                for name, of_judges in dimensions.items()
                if of_judges
            }
        },
    )


def compared_overall(
    part: str, annotated: Annotated, runs: Sequence[Run], options: StatisticsOptions
) -> ComparedStatistic:
    """Overall scores with the mean of all annotators, on the samples of a part that all judges scored.

    Args:
        part: the benchmark's, which all of the runs judged.
        annotated: what its annotators rated.
        runs: one a judge.
        options: what failed verdicts and ratings not given are.
    """
    judged = {
        run.label: overall_items([observe(records) for records in run.records[part]], run.aspects, annotated, options)
        for run in runs
    }
    return compared_correlations(part, OVERALL, HEADLINE_COEFFICIENT, judged)


def _number(label: str, estimate: Estimate, n: int) -> HeadlineNumber:
    return HeadlineNumber(label, estimate.value, estimate.low, estimate.high, n, estimate.reason)


WITH_ALL, WITH_OTHERS = "annotators, with the mean of all", "annotators, with the mean of the others"
PAPER = (
    "Table 1 has the shape of that table in Tu et al., Automatic Evaluation for Text-to-Image Generation (2024); the numbers are "
    "computed here, from these runs."
)
HIGHEST_GRADE = 5.0
"""Grades are shown as Tu et al. ask for them, from 0 to 5; a verdict has them in [0, 1]."""

_SYMBOLS = {"spearman": "rho", "kendall": "tau"}


@dataclass(frozen=True)
class Compared:
    """A judge, or the annotators themselves: `counts` of the scored samples a dimension, `failed` of all (None: humans)."""

    label: str
    estimates: Mapping[AnnotatorCorrelation, Estimate]
    counts: Mapping[str, int]
    failed: int | None


def annotator_tables(benchmark: str, annotated: Annotated, runs: Sequence[Run], options: StatisticsOptions) -> Tables:
    """Table 1 and its like for each dimension, all intervals, grades, and the numbers as cells (table `statistics`).

    Args:
        benchmark: its name, part of the seed.
        annotated: what its annotators rated.
        runs: one a judge, labels all different.
        options: what failed verdicts and ratings not given are, how many draws, the seed.
    """
    tables: list[Table] = []
    cells: dict[Key, float] = {}
    reasons: dict[Key, str] = {}
    headlines: list[Headline] = []
    for part in dict.fromkeys(part for run in runs for part in run.records):
        name, judging = f"{benchmark}/{part}", [run for run in runs if part in run.records]
        rows = _rows(name, annotated, judging, part, options)
        for dimension in (OVERALL, *annotated.dimensions):
            rated_rows = [row for row in rows if row.counts.get(dimension)]
            if any(row.failed is not None for row in rated_rows):
                tables.append(_like_table_1(annotated, dimension, rated_rows))
        tables.append(_intervals(rows))
        tables += _grades(name, annotated, judging, part, options)
        headlines.append(_headline(part, annotated, rows, judging, options))
        for row in rows:
            for correlation, estimate in row.estimates.items():
                key = Key("statistics", part, "", row.label, str(correlation), correlation.dimension)
                cells[key] = estimate.value
                reasons |= {key: estimate.reason} if estimate.reason else {}
    return Tables(tuple(tables), cells, reasons=reasons, headlines=tuple(headlines), paper=PAPER)


def _headline(
    part: str, annotated: Annotated, rows: Sequence[Compared], judging: Sequence[Run], options: StatisticsOptions
) -> Headline:
    """The overall scores of all judges beside the annotators with one another, and those of each dimension."""
    judges = [row for row in rows if row.failed is not None]
    [people] = [row for row in rows if row.label == WITH_OTHERS]
    of_dimension = {
        dimension: {
            row.label: (row.estimates[correlation], row.counts[dimension])
            for row in judges
            for correlation in [AnnotatorCorrelation(dimension, MEAN, HEADLINE_COEFFICIENT)]
            if correlation in row.estimates
        }
        for dimension in (OVERALL, *annotated.dimensions)
    }
    alone = [
        people.estimates[AnnotatorCorrelation(OVERALL, a, HEADLINE_COEFFICIENT)]
        for a in annotated.annotators
        if a != MEAN
    ]

    def compared() -> ComparedStatistic:
        return compared_overall(part, annotated, judging, options)

    overall = of_dimension.pop(OVERALL)
    return annotator_headline(part, overall, alone, people.counts[OVERALL], of_dimension, compared)


def _rows(
    name: str, annotated: Annotated, runs: Sequence[Run], part: str, options: StatisticsOptions
) -> list[Compared]:
    judges, rated = [], dict[str, Observation]()
    for run in runs:
        observed = tuple(observe(records) for records in run.records[part])
        rated |= {o.uid: o for o in observed}
        scored = {aspect for o in observed for aspect, _ in o.scores}
        dimensions = [OVERALL, *(d for d in annotated.dimensions if d in scored)]
        correlations = comparisons(dimensions, annotated.annotators)
        summary = annotator_agreement(observed, run.aspects, annotated, correlations, name, options)
        counts = {d: sum(d in dict(o.scores) for o in observed) for d in dimensions}
        estimates = {correlation: summary.estimates[str(correlation)] for correlation in correlations}
        judges.append(
            Compared(run.label, estimates, counts | {OVERALL: summary.scored}, summary.total - summary.scored)
        )
    humans = [_humans(list(rated.values()), annotated, leave_one_out, name, options) for leave_one_out in (False, True)]
    return [*humans, *judges]


def _humans(
    rated: Sequence[Observation], annotated: Annotated, leave_one_out: bool, name: str, options: StatisticsOptions
) -> Compared:
    """Agreement of annotators among themselves, over all rated samples."""
    dimensions = (OVERALL, *annotated.dimensions)
    estimates = {
        correlation: among_themselves(rated, annotated, correlation, leave_one_out, name, options)
        for correlation in comparisons(dimensions, [a for a in annotated.annotators if a != MEAN])
    }
    return Compared(WITH_OTHERS if leave_one_out else WITH_ALL, estimates, dict.fromkeys(dimensions, len(rated)), None)


def _like_table_1(annotated: Annotated, dimension: str, rows: Sequence[Compared]) -> Table:
    against = [(annotator, coefficient) for annotator in annotated.annotators for coefficient in COEFFICIENTS]
    header = ("judge", "n", "failed", *(f"manual {annotator} {_SYMBOLS[c]}" for annotator, c in against))
    lines = tuple(
        (
            row.label,
            str(row.counts[dimension]),
            "" if row.failed is None else str(row.failed),
            *(_value(row.estimates.get(AnnotatorCorrelation(dimension, annotator, c))) for annotator, c in against),
        )
        for row in rows
    )
    title = "Table 1. Overall score" if dimension == OVERALL else f"{dimension.capitalize()} score"
    return Table("table_1" if dimension == OVERALL else dimension, f"{title}, with each annotator", header, lines)


def _intervals(rows: Sequence[Compared]) -> Table:
    lines = []
    for row in rows:
        for correlation in row.estimates:
            if correlation.coefficient == COEFFICIENTS[0]:
                estimates = [
                    row.estimates[AnnotatorCorrelation(correlation.dimension, correlation.annotator, c)]
                    for c in COEFFICIENTS
                ]
                lines.append(
                    (
                        row.label,
                        correlation.dimension,
                        f"manual {correlation.annotator}",
                        *map(_with_interval, estimates),
                    )
                )
    header = ("judge", "score", "with", *(_SYMBOLS[c] for c in COEFFICIENTS))
    return Table("intervals", "With 95% intervals", header, tuple(lines))


def _grades(name: str, annotated: Annotated, runs: Sequence[Run], part: str, options: StatisticsOptions) -> list[Table]:
    """The means of what verdicts have beside aspects and dimensions: grades of explanations; no table without any."""
    observed = {run.label: tuple(observe(records) for records in run.records[part]) for run in runs}
    rating_names = {run.label: {*run.aspects, *annotated.dimensions} for run in runs}
    grade_names = {
        a for label, rows in observed.items() for o in rows for a, _ in o.scores if a not in rating_names[label]
    }
    grades = tuple(map(MeanGrade, sorted(grade_names)))
    lines = []
    for run in runs:
        rows = observed[run.label]
        estimates = annotator_agreement(rows, run.aspects, annotated, grades, name, options).estimates
        graded = [sum(grade.score in dict(o.scores) for o in rows) for grade in grades]
        if any(graded):
            means = [_with_interval(estimates[str(grade)], HIGHEST_GRADE) for grade in grades]
            cells = (cell for pair in zip(map(str, graded), means, strict=True) for cell in pair)
            lines.append((run.label, *cells))
    header = ("judge", *(cell for grade in grades for cell in ("n", grade.score.replace("_", " "))))
    title = "Grades beside the ratings, such as those of explanations against the annotators', 0 to 5"
    return [Table("explanations", title, header, tuple(lines))] if lines else []


def _value(estimate: Estimate | None) -> str:
    return "" if estimate is None else number(estimate.value, reason=estimate.reason)


def _with_interval(estimate: Estimate, scale: float = 1.0) -> str:
    return with_interval(estimate.value * scale, estimate.low * scale, estimate.high * scale, estimate.reason)


@dataclass(frozen=True)
class WithAnnotators(Annotated):
    """Agreement with each annotator and with their mean, overall, and by dimension for judges that score dimensions.

    `dimensions` are what was rated beside the whole, `overall` is the aspect that holds the overall ratings (a judge
    that does not rate it is compared by SC), `raters` how many annotators there are; a sample has NaN for one who gave
    none.
    """

    def names(self, rating: Rating) -> tuple[str, ...]:
        """Each comparison and mean grade with the ends of its interval, and how many samples have a score.

        >>> WithAnnotators((), "O", 1).names(Rating(("O",)))[:3]
        ('overall_manual_1_spearman_value', 'overall_manual_1_spearman_ci_low', 'overall_manual_1_spearman_ci_high')
        """
        named = [
            f"{statistic}_{what}" for statistic in self.requested(rating) for what in ("value", "ci_low", "ci_high")
        ]
        return (*named, "scored_count")

    def shown(self, rating: Rating) -> tuple[str, ...]:
        """Overall agreement with the annotators' mean.

        >>> WithAnnotators((), "O", 3).shown(Rating(("O",)))
        ('overall_manual_avg_spearman_value', 'overall_manual_avg_kendall_value')
        """
        return tuple(f"{correlation}_value" for correlation in comparisons([OVERALL], [MEAN]))

    def requested(self, rating: Rating) -> tuple[RequestedStatistic, ...]:
        """Statistics that a judge's task reports: overall with each annotator and their mean, the dimensions it scores
        with the mean, and the means of its grades.

        >>> len(WithAnnotators(("appearance",), "O", 3).requested(Rating(("O",), ("appearance",), ("quality",))))
        11
        """
        dimensions = [dimension for dimension in self.dimensions if dimension in rating.dimensions]
        return (
            *comparisons([OVERALL], self.annotators),
            *comparisons(dimensions, [MEAN]),
            *map(MeanGrade, rating.grades),
        )

    def summarise(
        self,
        observations: tuple[Observation, ...],
        rating: Rating,
        benchmark: str,
        part: str,
        options: StatisticsOptions,
    ) -> Summary:
        """A part's comparisons; see `annotator_agreement`."""
        name = f"{benchmark}/{part}"
        return annotator_agreement(observations, rating.aspects, self, self.requested(rating), name, options)

    def tables(self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions) -> Tables:
        """Table 1 of T2I-Eval and its like for each dimension, with the annotators among themselves above the judges."""
        return annotator_tables(benchmark, self, runs, options)

    def compared(
        self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions
    ) -> Sequence[ComparedStatistic]:
        """Overall scores with the mean of all annotators, by Spearman's coefficient, each part for itself."""
        compared_parts = []
        for part in dict.fromkeys((*parts, *(part for run in runs for part in run.records))):
            judging = [run for run in runs if part in run.records]
            compared_parts += [compared_overall(part, self, judging, options)] if judging else []
        return compared_parts
