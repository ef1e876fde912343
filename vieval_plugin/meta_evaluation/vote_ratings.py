"""People's votes beside their own ratings of the candidates: how often one follows from the other, and who leads by each.

A rating says for each pair which candidate is better, as a judge's scores do. So people stand among the judges, on all
pairs and on those that a judge scored: what they reach is what a judge of single images can be asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vieval_plugin.meta_evaluation.contest_ranking import ContestRanking, RankedModel, by_strength
from vieval_plugin.meta_evaluation.estimates import Bootstrap
from vieval_plugin.meta_evaluation.headline import preferred
from vieval_plugin.meta_evaluation.observations import ContestObservation
from vieval_plugin.meta_evaluation.tables import Key, Table, in_percent, number, with_interval
from vieval_plugin.meta_evaluation.vote_answers import VOTES, Pairs
from vieval_plugin.meta_evaluation.vote_statistics import Entrant, JudgedPart
from vieval_plugin.stats.agreement import mean_of_known
from vieval_plugin.stats.bootstrap import Ints
from vieval_plugin.stats.comparison import Bools
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.ranking import rank_tau
from vieval_plugin.stats.thresholds import vote_of_scores
from vieval_plugin.stats.votes import FIRST, NONE, SECOND, points

PEOPLE = "people's ratings"
SCORED, UNTIED = "right_of_scored", "right_of_untied"
_ALL, _JUDGED_PAIRS_LABEL = "all pairs", "its own pairs"


@dataclass(frozen=True)
class _Row:
    """Votes from scores against people's votes: over the pairs with two scores, and over those with two different ones."""

    part: str
    voter: str
    aspect: str
    pairs: str
    scored: Estimate
    untied: Estimate


def beside_ratings(
    benchmark: str, judged: Sequence[JudgedPart], options: StatisticsOptions
) -> tuple[list[Table], dict[Key, float]]:
    """Two tables, some perhaps without rows, and the numbers of the first as cells, in percent.

    Args:
        benchmark: its name.
        judged: its parts, with all that stand in their tables.
        options: how many draws, the seed.

    Returns:
        How often the higher score is people's choice, for people's ratings and for judges, each time on the same pairs;
        and the strengths of image models by votes, ratings and judges side by side.
    """
    rows = [row for of_part in judged for row in _rows(of_part)]
    cells = {
        Key("ratings", row.part, "", f"{row.voter}, {row.pairs}", statistic, row.aspect): 100 * share.value
        for row in rows
        for statistic, share in ((SCORED, row.scored), (UNTIED, row.untied))
    }
    return [_accuracy(rows), *(_strengths(benchmark, of_part, options) for of_part in judged)], cells


def _rows(judged: JudgedPart) -> list[_Row]:
    judges = [entrant for entrant in judged.entrants if not entrant.constant]
    pairs = _all_pairs(judged)
    rated = _rated(pairs)
    rows = [_row(judged, PEOPLE, aspect, _ALL, pairs, _by_ratings(pairs, aspect)) for aspect in rated]
    for judge in judges if rated else ():
        answered_pairs, aspect = judge.answers.pairs, _compared_aspect(judge.subject, rated)
        votes = judge.answers.codes["decisive"]
        rows.append(_row(judged, judge.label, judge.subject, _JUDGED_PAIRS_LABEL, answered_pairs, votes))
        on_the_same = np.where(votes == NONE, NONE, _by_ratings(answered_pairs, aspect))
        rows.append(
            _row(judged, PEOPLE, aspect, f"pairs of {judge.label} ({judge.subject})", answered_pairs, on_the_same)
        )
    return rows


def _row(judged: JudgedPart, voter: str, aspect: str, pairs_name: str, pairs: Pairs, votes: Ints) -> _Row:
    right = points(votes, pairs.human, "decisive")
    return _Row(
        judged.part,
        voter,
        aspect,
        pairs_name,
        _share(judged.bootstrap, right, votes != NONE, pairs),
        _share(judged.bootstrap, right, np.isin(votes, (FIRST, SECOND)), pairs),
    )


def _share(bootstrap: Bootstrap, right: Floats, counts: Bools, pairs: Pairs) -> Estimate:
    return bootstrap.share(np.where(counts, right, np.nan), pairs.groups)


def _accuracy(rows: Sequence[_Row]) -> Table:
    title = (
        "Pairs in which the higher score is people's choice, % [95% interval]: of those with two scores, equal scores being "
        "wrong, and of those with two different scores"
    )
    header = ("task", "judge", "votes from", "pairs", "n", "right", "n", "right of the untied")
    cells = [
        (
            *(row.part, row.voter, row.aspect, row.pairs),
            *(cell for share in (row.scored, row.untied) for cell in (str(share.n), in_percent(share))),
        )
        for row in rows
    ]
    return Table("ratings", title, header, tuple(cells))


def _strengths(benchmark: str, judged: JudgedPart, options: StatisticsOptions) -> Table:
    """Image models by strength: by votes, by ratings, and by what each judge says; and how alike the orders are."""
    judges = [entrant for entrant in judged.entrants if not entrant.constant]
    pairs = _all_pairs(judged)
    title = (
        "Image models ranked by contests: by people's votes, and by which candidate has the higher score; place and log strength "
        "[95% interval] (Bradley-Terry with ties), n counts pairs"
    )
    if not (rated := _rated(pairs)):
        return Table("strengths", title, (), ())
    overall = _compared_aspect(VOTES, rated)
    rankings = [by_strength(benchmark, judged.part, "people's votes", VOTES, pairs, pairs.human, options)]
    rankings.append(by_strength(benchmark, judged.part, PEOPLE, overall, pairs, _by_ratings(pairs, overall), options))
    rankings += [
        by_strength(
            *(benchmark, judged.part, judge.label, judge.subject, judge.answers.pairs),
            *(judge.answers.codes["decisive"], options),
        )
        for judge in _by_one_aspect(judges)
    ]
    models = _ordered(rankings[0])
    voter_names = [
        ranking.voter if ranking.subject == VOTES else f"{ranking.voter} ({ranking.subject})" for ranking in rankings
    ]
    rows = [
        (
            judged.part,
            model.image_model,
            *(cell for ranking in rankings for cell in _strength(ranking, model.image_model)),
        )
        for model in models
    ]
    alike = [cell for ranking in rankings[1:] for cell in ("", number(_tau(rankings[0], ranking), 3, "no strengths"))]
    header = ("task", "image model", *(cell for voter in voter_names for cell in ("n", voter)))
    return Table("strengths", title, header, (*rows, (judged.part, "tau-b with the votes", "", "", *alike)))


def _strength(ranking: ContestRanking, image_model: str) -> tuple[str, str]:
    """The number of pairs that a model was in, and its place and strength."""
    for rank, model in enumerate(_ordered(ranking), start=1):
        if model.image_model == image_model:
            strength = with_interval(replace(model.strength, reasons=(ranking.why,)), digits=2)
            return str(model.contests), f"{rank}: {strength}" if model.strength.defined else strength
    return "0", "undefined (in no pair)"


def _ordered(ranking: ContestRanking) -> list[RankedModel]:
    return sorted(ranking.models, key=lambda model: -model.strength.value if model.strength.defined else 0)


def _tau(votes: ContestRanking, by_scores: ContestRanking) -> float:
    strengths: list[Mapping[str, float]] = [
        {m.image_model: m.strength.value for m in ranking.models} for ranking in (votes, by_scores)
    ]
    common = [model for model in strengths[0] if model in strengths[1]]
    return rank_tau(*([strength_of[model] for model in common] for strength_of in strengths))


def _all_pairs(judged: JudgedPart) -> Pairs:
    """Pairs that any judge was asked about, answered or not: a constant baseline answers each of them."""
    return next(entrant.answers.pairs for entrant in judged.entrants if entrant.constant)


def _by_one_aspect(judges: Sequence[Entrant]) -> list[Entrant]:
    """Each judge once: by its own votes, or by O, or by what it has in its place."""
    subjects: dict[str, list[str]] = {}
    for judge in judges:
        subjects.setdefault(judge.label, []).append(judge.subject)
    return [judge for judge in judges if judge.subject == _compared_aspect(VOTES, subjects[judge.label])]


def _compared_aspect(subject: str, aspects: Sequence[str]) -> str:
    """The aspect of these that a subject is compared with: its own, else the one that is about the whole image."""
    return subject if subject in aspects else preferred(aspects)[0]


def _rated(pairs: Pairs) -> tuple[str, ...]:
    """The aspects of which all candidates have ratings."""
    candidate_ratings = [ratings for contest in _contests(pairs) for ratings in contest.rated or ({},)]
    return tuple(
        aspect
        for aspect in (candidate_ratings[0] if candidate_ratings else ())
        if all(aspect in ratings for ratings in candidate_ratings)
    )


def _by_ratings(pairs: Pairs, aspect: str) -> Ints:
    """The vote that people's mean ratings of each pair stand for; equal means are a tie."""
    means = [[float(mean_of_known([[v] for v in ratings[aspect]])[0]) for ratings in c.rated] for c in _contests(pairs)]
    first, second = (
        [means[contest][index] for contest, index in zip(pairs.contest, side, strict=True)] for side in pairs.indices.T
    )
    return vote_of_scores(np.array(first, dtype=float), np.array(second, dtype=float))


def _contests(pairs: Pairs) -> list[ContestObservation]:
    return [o.contest for o in pairs.observations if o.contest is not None]
