"""The report of benchmarks with named annotators: agreement with each and with their mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vieval_plugin.meta_evaluation.annotator_agreement import (
    MEAN,
    OVERALL,
    Annotated,
    MeanGrade,
    RequestedStatistic,
    annotator_agreement,
    comparisons,
)
from vieval_plugin.meta_evaluation.annotator_headline import compared_overall
from vieval_plugin.meta_evaluation.annotator_tables import annotator_tables
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.observations import Observation, Summary
from vieval_plugin.meta_evaluation.reports import Rating
from vieval_plugin.meta_evaluation.tables import Tables
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions


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
