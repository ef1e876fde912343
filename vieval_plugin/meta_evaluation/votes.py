"""The report of benchmarks of contests: how often a judge's choices are those of people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.observations import Observation, Summary
from vieval_plugin.meta_evaluation.reports import Rating
from vieval_plugin.meta_evaluation.tables import Tables
from vieval_plugin.meta_evaluation.vote_answers import TIE_HANDLINGS, VOTES
from vieval_plugin.meta_evaluation.vote_comparison import compared_votes
from vieval_plugin.meta_evaluation.vote_statistics import names_of, vote_statistics
from vieval_plugin.meta_evaluation.vote_tables import vote_tables
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions


@dataclass(frozen=True)
class ByVotes:
    """Accuracy against people's votes, in every way of counting that the benchmark's scheme of votes allows.

    `scheme` is one of `judges.contests`: `four_way`, `three_way`, `two_way` or `ranking`. `rated` says that people
    rated the candidates as well: what follows from their ratings then stands beside the judges (see `vote_ratings`).

    >>> ByVotes("five_way")
    Traceback (most recent call last):
    ValueError: no scheme of votes 'five_way'; known: four_way, three_way, two_way, ranking
    """

    scheme: str = "four_way"
    rated: bool = False

    def __post_init__(self) -> None:
        if self.scheme not in TIE_HANDLINGS:
            raise ValueError(f"no scheme of votes {self.scheme!r}; known: {', '.join(TIE_HANDLINGS)}")

    def names(self, rating: Rating) -> tuple[str, ...]:
        """Each statistic with the ends of its interval, and how many contests have an answer.

        >>> ByVotes("two_way").names(Rating(("O",)))[:3]
        ('O_accuracy_decisive_value', 'O_accuracy_decisive_ci_low', 'O_accuracy_decisive_ci_high')
        """
        named = [statistic for subject in _subjects(rating) for statistic in names_of(subject, self.scheme)]
        return (
            *(f"{statistic}_{what}" for statistic in named for what in ("value", "ci_low", "ci_high")),
            "scored_count",
        )

    def shown(self, rating: Rating) -> tuple[str, ...]:
        """Accuracy in the most detailed way of counting, and how far it is above the best fixed answer.

        >>> ByVotes("two_way").shown(Rating(("O",)))
        ('O_accuracy_decisive_value', 'O_above_constant_decisive_value')
        """
        tie_handling = TIE_HANDLINGS[self.scheme][0]
        whats = (f"{what}_{tie_handling}" for what in ("accuracy", "above_constant"))
        return tuple(f"{subject}_{what}_value" for what in whats for subject in _subjects(rating))

    def summarise(
        self,
        observations: tuple[Observation, ...],
        rating: Rating,
        benchmark: str,
        part: str,
        options: StatisticsOptions,
    ) -> Summary:
        """A part's statistics; see `vote_statistics`."""
        return vote_statistics(observations, _subjects(rating), self.scheme, f"{benchmark}/{part}", options)

    def tables(self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions) -> Tables:
        """Tables with the constant baselines above the judges; see `vote_tables`."""
        return vote_tables(benchmark, parts, runs, self.scheme, options, self.rated)

    def compared(
        self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions
    ) -> Sequence[ComparedStatistic]:
        """Each part, aspect and way of counting; see `compared_votes`."""
        return compared_votes(benchmark, parts, runs, self.scheme, options)


def _subjects(rating: Rating) -> tuple[str, ...]:
    """A judge that votes itself rates no aspects of its own."""
    return rating.aspects or (VOTES,)
