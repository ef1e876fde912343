"""The report of benchmarks with named annotators: agreement with each and with their mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from vieval_plugin.meta_evaluation.annotator_agreement import (
    COEFFICIENTS,
    MEAN,
    OVERALL,
    Annotated,
    AnnotatedRows,
    annotator_correlation,
    correlations,
    mean_grade,
    metric_stem,
)
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.estimates import Bootstrap, mean_over_parts
from vieval_plugin.meta_evaluation.findings import (
    CEILING_LABEL,
    CONSTANT_LABEL,
    Findings,
    Layout,
    Number,
    RankedStatistic,
    Role,
    layouts,
)
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

WITH_ALL = "annotators, with the mean of all"
WITH_OTHERS = "annotators, with the mean of the others"
PAPER = (
    "Table 1 follows the layout of Table 1 in Tu et al., Automatic Evaluation for "
    "Text-to-Image Generation (2024). Its numbers are computed from these runs."
)
#: Grades are shown as Tu et al. ask for them, from 0 to 5; a verdict has them in [0, 1].
HIGHEST_GRADE = 5.0
_LEADING = metric_stem(OVERALL, MEAN, "spearman")
_WHY = (
    "Differences between annotators cancel out in their mean. Only the order counts, so the "
    "judge's scale does not matter."
)
_SYMBOLS = {"spearman": "rho", "kendall": "tau"}


@dataclass(frozen=True)
class WithAnnotators(Annotated, Report):
    """Agreement with each annotator and with their mean, overall, and by dimension for judges that
    score dimensions.

    `dimensions` are what was rated beside the whole, `overall` is the aspect that holds the overall
    ratings (a judge that does not rate it is compared by SC), `annotator_count` how many annotators
    there are; a sample has NaN for one who gave none.
    """

    def statistics(self, rating: Rating) -> tuple[Statistic, ...]:
        """Overall with each annotator and their mean, the dimensions that the judge scores with the
        mean, mean grades.

        >>> report = WithAnnotators(("appearance",), "O", 3)
        >>> len(report.statistics(Rating(("O",), ("appearance",), ("quality",))))
        12
        """
        dimensions = [
            dimension for dimension in self.dimensions if dimension in rating.dimensions
        ]
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

    def findings(
        self,
        benchmark: str,
        parts: Sequence[str],
        runs: Sequence[Run],
        options: StatisticsOptions,
    ) -> Findings:
        """The numbers of T2I-Eval's Table 1 and their like for each dimension, annotators among
        themselves, grades.
        """
        numbers: list[Number] = []
        ranked = []
        for part in parts_of(parts, runs):
            bootstrap = Bootstrap.for_part(f"{benchmark}/{part}", options)
            judged = {
                run.label: self._judged(run, rows, options)
                for run, rows in observed(runs, part)
            }
            rated = {
                observation.uid: observation
                for rows in judged.values()
                for observation in rows.judged
            }
            rated_by_uid = sorted(
                rated.values(), key=lambda observation: observation.uid
            )
            first_rows = next(iter(judged.values()))
            annotator_rows = replace(first_rows, judged=tuple(rated_by_uid))
            annotator_numbers = list(
                self._annotator_numbers(annotator_rows, part, bootstrap)
            )
            numbers += annotator_numbers
            for run in (run for run in runs if run.label in judged):
                numbers += self._judge_numbers(run, judged[run.label], part, bootstrap)
            ends = (-1.0, 1.0)
            statistic = RankedStatistic(
                part=part,
                aspect=OVERALL,
                statistic=_LEADING,
                measured="Spearman",
                title=f"Spearman's correlation of overall scores with the mean of all annotators, {part}",
                why=_WHY,
                ends=ends,
                compared=partial(self._compared, part, runs),
                references=tuple(_references(annotator_numbers, part)),
            )
            ranked.append(statistic)
        return Findings(
            tuple(numbers), tuple(ranked), tuple(self._layouts(numbers)), paper=PAPER
        )

    def _judged(
        self, run: Run, observations: Sequence[Observation], options: StatisticsOptions
    ) -> AnnotatedRows:
        scored = {name for observation in observations for name in observation.scores}
        dimensions = tuple(
            dimension for dimension in self.dimensions if dimension in scored
        )
        rating = replace(Rating.from_run(run), dimensions=dimensions)
        return AnnotatedRows.from_observations(observations, rating, self, options)

    def _annotator_numbers(
        self, rows: AnnotatedRows, part: str, bootstrap: Bootstrap
    ) -> Iterator[Number]:
        """Annotators among themselves, over all rated samples."""
        rated = Estimate(len(rows.judged), n=len(rows.judged))
        dimensions = (OVERALL, *self.dimensions)
        for label, leave_one_out in ((WITH_ALL, False), (WITH_OTHERS, True)):
            for dimension in dimensions:
                yield Number(
                    system=label,
                    estimate=rated,
                    part=part,
                    aspect=dimension,
                    statistic="scored",
                    role="ceiling",
                )
            for statistic in annotator_correlation(
                dimensions, self.annotators[:-1], leave_one_out
            ):
                estimate = replace(
                    estimate_of(statistic, rows, bootstrap), n=len(rows.judged)
                )
                yield _number(label, estimate, part, statistic, "ceiling")

    def _judge_numbers(
        self, run: Run, rows: AnnotatedRows, part: str, bootstrap: Bootstrap
    ) -> Iterator[Number]:
        counts = self._counts(rows)
        failed = len(rows.judged) - len(rows.scored)
        for dimension, n in counts.items():
            scored_count = Estimate(n, n=n)
            failed_count = Estimate(failed, n=failed)
            yield Number(run.label, scored_count, part, dimension, "scored")
            yield Number(run.label, failed_count, part, dimension, "failed")
        for statistic in correlations([*counts], self.annotators):
            estimate = estimate_of(statistic, rows, bootstrap)
            estimate = replace(estimate, n=counts[statistic.aspect])
            yield _number(run.label, estimate, part, statistic)
            is_leading = statistic.name == metric_stem(
                statistic.aspect, MEAN, "spearman"
            )
            if is_leading and statistic.aspect != OVERALL:
                yield Number(
                    run.label,
                    estimate,
                    part,
                    OVERALL,
                    _LEADING,
                    breakdown="dimension",
                    value=statistic.aspect,
                )
        scored_names = {
            name for observation in rows.judged for name in observation.scores
        }
        for name in sorted(scored_names - {*run.aspects, *self.dimensions}):
            grade = _grade(name, rows, bootstrap)
            yield Number(run.label, grade, part, name, "grade")

    def _counts(self, rows: AnnotatedRows) -> dict[str, int]:
        counts = {OVERALL: len(rows.scored)}
        for dimension in self.dimensions:
            n = sum(dimension in observation.scores for observation in rows.judged)
            if n:
                counts[dimension] = n
        return counts

    def _layouts(self, numbers: Sequence[Number]) -> Iterator[Layout]:
        """Table 1 for the overall scores, its like for each dimension that a judge scores,
        intervals and grades.
        """
        table_1, intervals, grades = layouts("annotators")
        judged = {
            number.aspect
            for number in numbers
            if number.role == "judge" and number.statistic != "grade"
        }
        for dimension in (OVERALL, *self.dimensions):
            if dimension not in judged:
                continue
            names = {}
            for annotator, coefficient in product(self.annotators, COEFFICIENTS):
                stem = metric_stem(dimension, annotator, coefficient)
                names[stem] = f"manual {annotator} {_SYMBOLS[coefficient]}"
            is_overall = dimension == OVERALL
            title = f"{dimension.capitalize()} score"
            table_name = dimension
            if is_overall:
                title = "Table 1. Overall score"
                table_name = table_1.name
            yield replace(
                table_1,
                name=table_name,
                title=f"{title}, with each annotator",
                statistics=("scored", "failed", *names),
                aspect=dimension,
                words={"scored": "n", **names},
            )
            yield replace(
                intervals,
                name=f"{intervals.name}_{dimension}",
                title=f"{title}, with 95% intervals",
                statistics=tuple(names),
                aspect=dimension,
                words=names,
            )
        yield grades

    def _compared(
        self, part: str, runs: Sequence[Run], options: StatisticsOptions
    ) -> ComparedStatistic:
        def rows_of(run: Run, observations: Sequence[Observation]) -> AnnotatedRows:
            return AnnotatedRows.from_observations(
                observations, Rating.from_run(run), self, options
            )

        return compared_runs(correlations([OVERALL], [MEAN])[0], part, runs, rows_of)


def _grade(name: str, rows: AnnotatedRows, bootstrap: Bootstrap) -> Estimate:
    """The mean of a grade on its own scale."""
    graded = sum(name in observation.scores for observation in rows.judged)
    mean = estimate_of(mean_grade(name), rows, bootstrap)
    value, low, high = (
        HIGHEST_GRADE * end for end in (mean.value, mean.low, mean.high)
    )
    return Estimate(value, low, high, n=graded, reasons=mean.reasons)


def _number(
    label: str,
    estimate: Estimate,
    part: str,
    statistic: Statistic,
    role: Role = "judge",
) -> Number:
    key = Key(
        table="statistics",
        task=part,
        image_model="",
        judge=label,
        statistic=statistic.name,
        aspect=statistic.aspect,
    )
    return Number(
        system=label,
        estimate=estimate,
        part=part,
        aspect=statistic.aspect,
        statistic=statistic.name,
        role=role,
        key=key,
    )


def _references(annotator_numbers: Sequence[Number], part: str) -> Iterator[Number]:
    """References for judges: annotators against the others, on average, and a constant answer."""
    leave_one_out = (
        number
        for number in annotator_numbers
        if number.system == WITH_OTHERS and number.aspect == OVERALL
    )
    correlations = [
        number.estimate
        for number in leave_one_out
        if number.statistic.endswith("spearman")
    ]
    if correlations:
        mean = replace(mean_over_parts(correlations), n=correlations[0].n)
        yield Number(
            system=CEILING_LABEL,
            estimate=mean,
            part=part,
            aspect=OVERALL,
            statistic=_LEADING,
            role="ceiling",
        )
    yield Number(
        system=CONSTANT_LABEL,
        estimate=Estimate(0.0),
        part=part,
        aspect=OVERALL,
        statistic=_LEADING,
        role="baseline",
    )
