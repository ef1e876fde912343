"""The report of benchmarks of contests: how often a judge's choices are those of people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_means
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.estimates import Bootstrap
from vieval_plugin.meta_evaluation.observations import Observation, apply_contest_policy
from vieval_plugin.meta_evaluation.statistics import SCORED, Rating, Statistic, parts_of
from vieval_plugin.meta_evaluation.tables import Tables
from vieval_plugin.meta_evaluation.vote_answers import TIE_HANDLINGS, VOTES, Answers, answers_of, pairs_of
from vieval_plugin.meta_evaluation.vote_statistics import Entrant, VoteRows, entrants_of, vote_statistics
from vieval_plugin.meta_evaluation.vote_tables import vote_tables
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.votes import VoteScheme

_LEAST_ANSWERED = 0.95  # a judge that answered less than this share is told of


def compared_votes(
    benchmark: str, parts: Sequence[str], runs: Sequence[Run], scheme: str, options: StatisticsOptions
) -> list[ComparedStatistic]:
    """An entry a part, aspect and way of counting.

    A judge that votes itself stands beside those that score, whichever aspect they are compared on. A missing
    answer is wrong, so a contest that a judge failed on counts.

    Args:
        benchmark: its name; with the part it joins the seed of the folds in which thresholds are chosen.
        parts: all parts of the benchmark, in order.
        runs: one a judge, labels all different.
        scheme: that of the benchmark's votes.
        options: the seed.
    """
    comparisons = []
    for part in parts_of(parts, runs):
        bootstrap = Bootstrap.for_part(f"{benchmark}/{part}", options)
        entrants = entrants_of(part, runs, scheme, bootstrap, options)
        judges = [entrant for entrant in entrants if not entrant.constant]
        fixed_answers = [entrant for entrant in entrants if entrant.constant and entrant.accepted]
        scored = tuple(dict.fromkeys(entrant.subject for entrant in judges if not entrant.voting))
        for aspect in scored or ((VOTES,) if judges else ()):
            compared = [entrant for entrant in judges if entrant.voting or entrant.subject == aspect]
            comparisons += [
                _compared(part, aspect, tie_handling, compared, fixed_answers) for tie_handling in TIE_HANDLINGS[scheme]
            ]
    return comparisons


def _compared(
    part: str, aspect: str, tie_handling: VoteScheme, entrants: Sequence[Entrant], fixed_answers: Sequence[Entrant]
) -> ComparedStatistic:
    judged = {entrant.label: _items(entrant.answers, tie_handling) for entrant in entrants}
    constants = [
        {name: item.value for name, item in _items(fixed.answers, tie_handling).items()} for fixed in fixed_answers
    ]
    statistic = f"accuracy {tie_handling.replace('_', '-')}"
    compared = compared_means(part, aspect, statistic, judged, "pairs of candidates", constants=constants)
    return replace(compared, notes=(*compared.notes, *_unanswered(entrants)))


def _unanswered(entrants: Sequence[Entrant]) -> list[str]:
    """Notes on the number of contests that each judge answered, where some answered far fewer."""
    answered_counts_by_judge = {
        entrant.label: (len(entrant.answers.complete), len(entrant.answers.pairs.observations)) for entrant in entrants
    }
    if all(answers >= _LEAST_ANSWERED * contests for answers, contests in answered_counts_by_judge.values()):
        return []
    counts_text = ", ".join(
        f"{label} {answers} of {contests}" for label, (answers, contests) in answered_counts_by_judge.items()
    )
    return [f"a missing answer is wrong; answered: {counts_text}"]


def _items(answers: Answers, tie_handling: VoteScheme) -> Mapping[str, JudgedItem]:
    pairs = answers.pairs
    return {
        f"{pairs.observations[contest].uid}/{first}/{second}": JudgedItem(group, point)
        for contest, (first, second), group, point in zip(
            pairs.contest.tolist(),
            pairs.indices.tolist(),
            pairs.groups,
            answers.points(tie_handling).tolist(),
            strict=True,
        )
        if not np.isnan(point)
    }


@dataclass(frozen=True)
class ByVotes:
    """Accuracy against people's votes, in every way of counting that the benchmark's scheme of votes allows.

    `scheme` is one of `judges.contests`: `four_way`, `three_way`, `two_way` or `ranking`. `rated` says that people
    rated the candidates as well: what follows from their ratings then stands beside the judges (see `vote_ratings`).
    `tie_handling` is that of the headline, the most detailed one where none is named.

    >>> ByVotes("five_way")
    Traceback (most recent call last):
    ValueError: no scheme of votes 'five_way'; known: four_way, three_way, two_way, ranking
    """

    scheme: str = "four_way"
    rated: bool = False
    tie_handling: VoteScheme | None = None

    def __post_init__(self) -> None:
        if self.scheme not in TIE_HANDLINGS:
            raise ValueError(f"no scheme of votes {self.scheme!r}; known: {', '.join(TIE_HANDLINGS)}")

    def statistics(self, rating: Rating) -> tuple[Statistic, ...]:
        """Shares of each subject, and how many contests have an answer.

        >>> [statistic.metric for statistic in ByVotes("two_way").statistics(Rating(("O",)))]
        ['O_accuracy_decisive_value', 'O_above_constant_decisive_value', 'scored_count']
        """
        return (*(s for subject in _subjects(rating) for s in vote_statistics(subject, self.scheme)), SCORED)

    def rows(
        self,
        observations: Sequence[Observation],
        rating: Rating,
        benchmark: str,
        part: str,
        options: StatisticsOptions,
    ) -> VoteRows:
        """The judge's answers; ValueError for a contest whose votes are in another scheme."""
        bootstrap = Bootstrap.for_part(f"{benchmark}/{part}", options)
        pairs = pairs_of(apply_contest_policy(observations, options), self.scheme)
        subjects = _subjects(rating)
        answers = {subject: answers_of(pairs, subject, self.scheme, bootstrap.seed) for subject in subjects}
        return VoteRows(pairs, answers, bootstrap)

    def tables(self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions) -> Tables:
        """Tables with the constant baselines above the judges; see `vote_tables`."""
        return vote_tables(benchmark, parts, runs, self.scheme, options, self.rated, self.tie_handling)

    def compared(
        self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions
    ) -> Sequence[ComparedStatistic]:
        """Each part, aspect and way of counting; see `compared_votes`."""
        return compared_votes(benchmark, parts, runs, self.scheme, options)


def _subjects(rating: Rating) -> tuple[str, ...]:
    """A judge that votes itself rates no aspects of its own."""
    return rating.aspects or (VOTES,)
