"""Image models ranked by the contests that a judge, or people, say they won: strengths with ties, by Davidson's model."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from vieval_plugin.meta_evaluation.comparison import LEVEL
from vieval_plugin.meta_evaluation.observations import apply_contest_policy, observe
from vieval_plugin.meta_evaluation.vote_answers import VOTES, Pairs, judged_pairs, orders_of, subjects_of
from vieval_plugin.records import Run
from vieval_plugin.stats.bootstrap import Ints, cluster_counts, factorize, interval, sign_p
from vieval_plugin.stats.bradley_terry import Strengths, resampled_strengths, strengths, win_shares
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.orders import overall_votes
from vieval_plugin.stats.ranking import holm, rank_ranges
from vieval_plugin.stats.thresholds import vote_of_scores
from vieval_plugin.stats.votes import FIRST, NONE, SECOND

PEOPLE = "people"
"""The voter of people's votes."""
_TAIL = 0.025
SEPARATED = "the contests fall into two sets of image models of which one never won or tied against the other"


@dataclass(frozen=True)
class RankedModel:
    """An image model in a ranking by contests.

    `strength` is the natural logarithm of its strength, all of sum 0; `share` how often it is to
    be expected to win against another, a tie being half a win. `ranks` are the best and the worst that the tests leave,
    None where there is no estimate. `contests` counts pairs that it was in and that have an answer.
    """

    image_model: str
    strength: Estimate
    share: float
    ranks: tuple[int, int] | None
    contests: int


@dataclass(frozen=True)
class ModelPair:
    """Two image models: the difference of their logarithms of strengths, p, and p adjusted by Holm."""

    first: str
    second: str
    difference: Estimate
    p: float
    adjusted: float


@dataclass(frozen=True)
class ContestRanking:
    """Image models ranked by the contests of a part: `voter` is a judge, or people; `subject` what its votes come from.

    `tie` is how readily equals tie, `answered` how many of `pairs_asked` pairs of candidates have an answer. `why` says
    why there is no ranking.
    """

    benchmark: str
    part: str
    voter: str
    subject: str
    models: tuple[RankedModel, ...]
    pairs: tuple[ModelPair, ...]
    tie: float
    answered: int
    pairs_asked: int
    why: str = ""


def rank_contests(runs: Sequence[Run], options: StatisticsOptions) -> list[ContestRanking]:
    """Rankings of a benchmark's image models by part: by people where they voted, and by each judge.

    A judge that scores candidates votes for the higher score; equal scores are a tie.

    Args:
        runs: one a judge, all of one benchmark; samples are left out.
        options: how many draws, the seed.
    """
    rankings = []
    for part in dict.fromkeys(part for run in runs for part in run.records):
        by_people: list[ContestRanking] = []
        by_judges: list[ContestRanking] = []
        for run in (run for run in runs if part in run.records):
            voted = [judged for judged in run.records[part] if judged[0].votes is not None]
            observed = apply_contest_policy(map(observe, voted), options)
            pairs = judged_pairs(observed)
            if not len(pairs.contest):
                continue
            if (pairs.human != NONE).any():
                by_people.append(ranked(run.benchmark, part, PEOPLE, VOTES, pairs, pairs.human, options))
            by_judges += [
                ranked(run.benchmark, part, str(run.name), subject, pairs, judge_codes(pairs, subject), options)
                for subject in subjects_of(observed, run.aspects)
            ]
        # people voted on the same contests whoever judged them; most of them count
        rankings += [*sorted(by_people, key=lambda ranking: -ranking.answered)[:1], *by_judges]
    return rankings


def judge_codes(pairs: Pairs, subject: str) -> Ints:
    """The judge's code for each pair, `NONE` where it gave no answer; it votes for the higher score, equal ones tie.

    Args:
        pairs: of candidates, with the judge's votes, preferences or scores.
        subject: `votes`, or the aspect whose scores are compared.
    """
    if subject != VOTES:
        return vote_of_scores(*pairs.scores(subject))
    orders = orders_of(pairs)
    if any(o.contest.preferences for o in pairs.observations if o.contest is not None):
        preferred = pairs.preferences(orders)
        return vote_of_scores(preferred, np.zeros(preferred.shape))
    votes = [pairs.vote_codes_of_order(order) for order in orders]
    return overall_votes(votes[0], votes[-1]) if votes else np.full(len(pairs.contest), NONE)


def ranked(
    benchmark: str, part: str, voter: str, subject: str, pairs: Pairs, codes: Ints, options: StatisticsOptions
) -> ContestRanking:
    """The ranking of image models by one voter's answers.

    Args:
        benchmark, part: what was voted on; they join the seed.
        voter: a judge, or people.
        subject: what the votes come from.
        pairs: of candidates.
        codes: an answer a pair, shape (pairs,); `NONE` where there is none.
        options: how many draws, the seed.
    """
    models, won, tied = _outcomes(pairs, codes)
    answer_count, pair_count = int((codes != NONE).sum()), len(codes)
    fitted = strengths(won.sum(axis=0), tied.sum(axis=0))
    logs, played = fitted.log_strengths, (won + won.transpose(0, 2, 1) + tied).sum(axis=(0, 2))
    if np.isnan(logs).any():
        why = SEPARATED if answer_count else "no contest has an answer"
        alone = tuple(
            RankedModel(model, Estimate(np.nan), np.nan, None, int(n)) for model, n in zip(models, played, strict=True)
        )
        return ContestRanking(benchmark, part, voter, subject, alone, (), np.nan, answer_count, pair_count, why)
    seed = [options.seed, zlib.crc32(f"{benchmark}/{part}".encode())]
    names = [str(number) for number in range(len(won))]
    draws = resampled_strengths(won, tied, cluster_counts(names, options.draws, seed))
    compared = _pairs(models, logs, draws)
    return ContestRanking(
        benchmark,
        part,
        voter,
        subject,
        _models(models, fitted, draws, compared, played),
        compared,
        fitted.tie,
        answer_count,
        pair_count,
    )


def _outcomes(pairs: Pairs, codes: Ints) -> tuple[list[str], Floats, Floats]:
    """The image models by name, and wins and ties of each group of contests, shape (groups, models, models)."""
    named = pairs.image_models
    models = sorted({model for model_pair in named for model in model_pair})
    place = {model: number for number, model in enumerate(models)}
    groups, group = factorize(pairs.groups)
    won, tied = (np.zeros((len(groups), len(models), len(models))) for _ in range(2))
    for of_group, (first, second), code in zip(group, named, codes, strict=True):
        first_model_index, second_model_index = place[first], place[second]
        if code == NONE or first_model_index == second_model_index:
            continue
        if code in (FIRST, SECOND):
            won[
                (of_group, first_model_index, second_model_index)
                if code == FIRST
                else (of_group, second_model_index, first_model_index)
            ] += 1
        else:
            tied[of_group, first_model_index, second_model_index] += 1
            tied[of_group, second_model_index, first_model_index] += 1
    return models, won, tied


def _pairs(models: Sequence[str], logs: Floats, draws: Floats) -> tuple[ModelPair, ...]:
    two_by_two = list(combinations(range(len(models)), 2))
    p = [sign_p(draws[:, first] - draws[:, second]) for first, second in two_by_two]
    return tuple(
        ModelPair(
            *(models[first], models[second]),
            Estimate(float(logs[first] - logs[second]), *_interval(draws[:, first] - draws[:, second])),
            *(raw_p, float(adjusted)),
        )
        for (first, second), raw_p, adjusted in zip(two_by_two, p, holm(p), strict=True)
    )


def _interval(draws: Floats) -> tuple[float, float]:
    """The interval of a strength or a difference; undefined where its ends may be among draws without a finite one."""
    return interval(draws) if np.isnan(draws).mean() < _TAIL else (np.nan, np.nan)


def _models(
    models: Sequence[str], fitted: Strengths, draws: Floats, pairs: Sequence[ModelPair], played: Floats
) -> tuple[RankedModel, ...]:
    beats = np.zeros((len(models), len(models)), dtype=bool)
    for (first, second), pair in zip(combinations(range(len(models)), 2), pairs, strict=True):
        if pair.adjusted <= LEVEL:
            beats[(first, second) if pair.difference.value > 0 else (second, first)] = True
    logs = fitted.log_strengths
    best, worst = rank_ranges(beats)
    return tuple(
        RankedModel(
            *(model, Estimate(float(logs[n]), *_interval(draws[:, n])), float(share)),
            (int(best[n]), int(worst[n])),
            int(played[n]),
        )
        for n, (model, share) in enumerate(zip(models, win_shares(fitted), strict=True))
    )
