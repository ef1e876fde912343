"""People's votes beside their own ratings of the candidates: how often one follows from the other,
and who leads by each.

A rating says for each pair which candidate is better, as a judge's scores do. So people stand among
the judges, on all pairs and on those that a judge scored: what they reach is what a judge of single
images can be asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from vieval_plugin.meta_evaluation.contest_ranking import (
    ContestStrengths,
    by_strength,
    contest_strengths,
)
from vieval_plugin.meta_evaluation.estimates import Bootstrap
from vieval_plugin.meta_evaluation.findings import Number, Role, preferred
from vieval_plugin.meta_evaluation.tables import Key, Table, interval_text, number
from vieval_plugin.meta_evaluation.vote_answers import VOTES, Pairs
from vieval_plugin.meta_evaluation.vote_statistics import JudgedPart, default_subjects
from vieval_plugin.stats.agreement import mean_of_known
from vieval_plugin.stats.bootstrap import Ints
from vieval_plugin.stats.comparison import Bools
from vieval_plugin.stats.correlation import Floats, correlation
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.thresholds import vote_of_scores
from vieval_plugin.stats.votes import FIRST, NONE, SECOND, points

PEOPLE = "people's ratings"
SCORED = "right_of_scored"
UNTIED = "right_of_untied"
_ALL_PAIRS = "all pairs"
_JUDGED_PAIRS_LABEL = "its own pairs"


def rating_comparison(
    benchmark: str, judged: Sequence[JudgedPart], options: StatisticsOptions
) -> tuple[list[Number], list[Table]]:
    """Numbers of people's ratings and of judges on the same pairs, and tables of image models'
    strengths.

    Args:
        benchmark: its name.
        judged: its parts, with all that stand in their tables.
        options: how many draws, the seed.

    Returns:
        How often the higher score is people's choice, for people's ratings and for judges, each
        time on the same pairs; and the strengths of image models by votes, ratings and judges side
        by side.
    """
    numbers = list[Number]()
    tables = []
    for part_votes in judged:
        numbers += _numbers(part_votes)
        tables.append(_strengths(benchmark, part_votes, options))
    return numbers, tables


def _numbers(judged: JudgedPart) -> Iterator[Number]:
    pairs = _all_pairs(judged)
    rated = _rated(pairs)
    for aspect in rated:
        yield from _right(
            judged, PEOPLE, aspect, _ALL_PAIRS, pairs, _rating_vote(pairs, aspect)
        )
    for judge in judged.judges if rated else ():
        answered_pairs = judge.answers.pairs
        votes = judge.answers.codes["decisive"]
        label = judge.label
        subject = judge.subject
        aspect = _compared_aspect(subject, rated)
        yield from _right(
            judged, label, subject, _JUDGED_PAIRS_LABEL, answered_pairs, votes
        )
        rating_votes = _rating_vote(answered_pairs, aspect)
        on_the_same = np.where(votes == NONE, NONE, rating_votes)
        pairs_name = f"pairs of {label} ({subject})"
        yield from _right(
            judged, PEOPLE, aspect, pairs_name, answered_pairs, on_the_same
        )


def _right(
    judged: JudgedPart,
    voter: str,
    aspect: str,
    pairs_name: str,
    pairs: Pairs,
    votes: Ints,
) -> Iterator[Number]:
    """Agreement of votes from scores with people's: over the pairs with two scores, and over
    those with two different ones.
    """
    right = points(votes, pairs.human, "decisive")
    role: Role = "judge"
    if voter == PEOPLE:
        role = "ceiling"
    for statistic, counts in (
        (SCORED, votes != NONE),
        (UNTIED, np.isin(votes, (FIRST, SECOND))),
    ):
        yield Number(
            system=voter,
            estimate=_share(judged.bootstrap, right, counts, pairs),
            part=judged.part,
            aspect=aspect,
            statistic=statistic,
            role=role,
            breakdown="pairs",
            value=pairs_name,
            key=Key(
                table="ratings",
                task=judged.part,
                image_model="",
                judge=f"{voter}, {pairs_name}",
                statistic=statistic,
                aspect=aspect,
            ),
            scale=100,
        )


def _share(
    bootstrap: Bootstrap, right: Floats, counts: Bools, pairs: Pairs
) -> Estimate:
    counted_points = np.where(counts, right, np.nan)
    return bootstrap.share(counted_points, pairs.groups)


def _strengths(benchmark: str, judged: JudgedPart, options: StatisticsOptions) -> Table:
    """Image models by strength: by votes, by ratings and by each judge, with the agreement of the
    orders.
    """
    pairs = _all_pairs(judged)
    title = (
        "Image models ranked by contests, decided by people's votes or by higher "
        "scores: place and log strength [95% interval] (Bradley-Terry with ties); n "
        "is the number of pairs"
    )
    rated = _rated(pairs)
    if not rated:
        return Table(
            name="strengths",
            title=title,
            header=(),
            rows=(),
        )
    overall = _compared_aspect(VOTES, rated)
    rankings = {
        name: contest_strengths(benchmark, judged.part, "", *votes, options)
        for name, votes in _voters(judged, pairs, overall).items()
    }
    first, *following = rankings.values()
    rows = []
    for n in by_strength(first.numbers):
        row = [judged.part, n.system]
        for ranking in rankings.values():
            row += _strength(ranking, n.system)
        rows.append(tuple(row))
    header = ["task", "image model"]
    for voter in rankings:
        header += ["n", voter]
    agreement_row = [judged.part, "tau-b with the votes", "", ""]
    for ranking in following:
        tau = _tau(first, ranking)
        agreement_row += ["", number(tau, 3, "no strengths")]
    rows.append(tuple(agreement_row))
    return Table(
        name="strengths",
        title=title,
        header=tuple(header),
        rows=tuple(rows),
    )


def _voters(
    judged: JudgedPart, pairs: Pairs, overall: str
) -> dict[str, tuple[str, Pairs, Ints]]:
    """Subject, pairs and answers of people and of each judge, by the voter's heading."""
    rating_votes = _rating_vote(pairs, overall)
    voters = {
        "people's votes": (VOTES, pairs, pairs.human),
        f"{PEOPLE} ({overall})": (overall, pairs, rating_votes),
    }
    subjects = default_subjects(judged.judges)
    for judge in judged.judges:
        subject = judge.subject
        if subjects[judge.label] == subject:
            aspect = ""
            if subject != VOTES:
                aspect = f" ({subject})"
            answers = judge.answers
            codes = answers.codes["decisive"]
            voters[f"{judge.label}{aspect}"] = (subject, answers.pairs, codes)
    return voters


def _strength(ranking: ContestStrengths, image_model: str) -> tuple[str, str]:
    """The number of pairs that a model was in, and its place and strength."""
    for rank, strength in enumerate(by_strength(ranking.numbers), start=1):
        if strength.system == image_model:
            estimate = replace(strength.estimate, reasons=(ranking.reason,))
            text = interval_text(estimate, digits=2)
            if estimate.defined:
                text = f"{rank}: {text}"
            return str(strength.total), text
    return "0", "undefined (in no pair)"


def _tau(votes: ContestStrengths, by_scores: ContestStrengths) -> float:
    by_votes = {n.system: n.estimate.value for n in votes.numbers}
    first = []
    second = []
    for n in by_scores.numbers:
        if n.system in by_votes:
            first.append(by_votes[n.system])
            second.append(n.estimate.value)
    return correlation(first, second, "kendall")


def _all_pairs(judged: JudgedPart) -> Pairs:
    """Pairs that any judge was asked about, answered or not: a constant baseline answers each of
    them.
    """
    return next(
        entrant.answers.pairs for entrant in judged.entrants if entrant.constant
    )


def _compared_aspect(subject: str, aspects: Sequence[str]) -> str:
    """The aspect of these that a subject is compared with: its own, else the one that is about
    the whole image.
    """
    if subject in aspects:
        return subject
    return preferred(aspects)[0]


def _rated(pairs: Pairs) -> tuple[str, ...]:
    """The aspects of which all candidates have ratings."""
    candidate_ratings = [
        ratings for contest in pairs.contests for ratings in contest.rated or ({},)
    ]
    if not candidate_ratings:
        return ()
    return tuple(
        aspect
        for aspect in candidate_ratings[0]
        if all(aspect in ratings for ratings in candidate_ratings)
    )


def _rating_vote(pairs: Pairs, aspect: str) -> Ints:
    """The vote that people's mean ratings of each pair stand for; equal means are a tie."""
    means = []
    for contest in pairs.contests:
        columns = [[[value] for value in ratings[aspect]] for ratings in contest.rated]
        means.append([float(mean_of_known(column)[0]) for column in columns])
    rows = []
    for index, (first, second) in zip(pairs.contest, pairs.indices, strict=True):
        contest_means = means[index]
        rows.append((contest_means[first], contest_means[second]))
    first_means, second_means = np.array(rows, dtype=float).reshape(-1, 2).T
    return vote_of_scores(first_means, second_means)
