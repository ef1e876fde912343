"""The report of benchmarks on which generators are judged: nobody rated these images, and means are over prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.generator_means import COSTS, PLACES, means_of_generator
from vieval_plugin.meta_evaluation.generator_tables import generator_tables
from vieval_plugin.meta_evaluation.observations import Observation, Summary
from vieval_plugin.meta_evaluation.reports import Rating
from vieval_plugin.meta_evaluation.tables import Tables
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions

_NUMBERS = ("value", "ci_low", "ci_high")


@dataclass(frozen=True)
class OfGenerators:
    """Scores of a generator's images by a judge: means over prompts with intervals, and what they cost."""

    def names(self, rating: Rating) -> tuple[str, ...]:
        """`<aspect>_mean_<what>` and, where a prompt has several images, `<aspect>_best_<what>`; counts; costs.

        >>> OfGenerators().names(Rating(("PQ",)))[:4]
        ('PQ_mean_value', 'PQ_mean_ci_low', 'PQ_mean_ci_high', 'scored_count')
        """
        scores = (*rating.aspects, *rating.dimensions)
        found = [f"{aspect}_mean_{number}" for aspect in scores for number in _NUMBERS]
        if rating.repeats > 1:
            found += [f"{aspect}_best_{number}" for aspect in scores for number in _NUMBERS]
        return (*found, "scored_count", *(f"{cost}_value" for cost in COSTS), *(f"{name}_value" for name in PLACES))

    def shown(self, rating: Rating) -> tuple[str, ...]:
        """The mean of each aspect.

        >>> OfGenerators().shown(Rating(("SC", "PQ")))
        ('SC_mean_value', 'PQ_mean_value')
        """
        return tuple(f"{aspect}_mean_value" for aspect in rating.aspects)

    def summarise(
        self,
        observations: tuple[Observation, ...],
        rating: Rating,
        benchmark: str,
        part: str,
        options: StatisticsOptions,
    ) -> Summary:
        """A part's means; see `means_of_generator`."""
        scores = (*rating.aspects, *rating.dimensions)
        return means_of_generator(observations, scores, f"{benchmark}/{part}", options, rating.repeats > 1)

    def tables(self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions) -> Tables:
        """Generators side by side, by part, kind, category and tag; and which of them the judge tells apart."""
        return generator_tables(benchmark, parts, runs, options)

    def compared(
        self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions
    ) -> Sequence[ComparedStatistic]:
        """Nothing: nobody rated these images, so that no judge is better on them."""
        return ()
