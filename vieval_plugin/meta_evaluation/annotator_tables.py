"""Tables of benchmarks with named annotators: the shape of T2I-Eval's Table 1, overall and a dimension each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vieval_plugin.meta_evaluation.annotator_agreement import (
    COEFFICIENTS,
    MEAN,
    OVERALL,
    Annotated,
    AnnotatorCorrelation,
    MeanGrade,
    among_themselves,
    annotator_agreement,
    comparisons,
)
from vieval_plugin.meta_evaluation.annotator_headline import HEADLINE_COEFFICIENT, annotator_headline, compared_overall
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.headline import Headline
from vieval_plugin.meta_evaluation.observations import Estimate, Observation, observe
from vieval_plugin.meta_evaluation.tables import Key, Table, Tables, number, with_interval
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions

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
