"""Image models ranked by the contests that a judge, or people, say they won: strengths with
ties, by Davidson's model.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.findings import (
    Findings,
    Leaderboard,
    Number,
    RankedStatistic,
)
from vieval_plugin.meta_evaluation.leaderboards import leaderboard
from vieval_plugin.meta_evaluation.measures import OPINION, Measure
from vieval_plugin.meta_evaluation.observations import apply_contest_policy, observe
from vieval_plugin.meta_evaluation.vote_answers import (
    VOTES,
    Pairs,
    judge_codes,
    judged_pairs,
    subjects_of,
)
from vieval_plugin.meta_evaluation.win_rates import win_rate_statistic
from vieval_plugin.records import JudgeName, Run
from vieval_plugin.stats.bootstrap import Ints, cluster_counts, factorize, interval
from vieval_plugin.stats.bradley_terry import resampled_strengths, strengths, win_shares
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.decisions import MOST_UNDEFINED
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.votes import FIRST, NONE, SECOND

#: The voter of people's votes.
PEOPLE = "people"
STRENGTH = Measure("log strength", "Log strength", OPINION)
SEPARATED = (
    "the image models split into two sets, one of which never won or tied against the "
    "other"
)


@dataclass(frozen=True, eq=False)
class ContestRanking:
    """Image models ranked by the contests of a part; ranks and pairs come from win rates between
    two models.
    """

    #: Natural logarithms of strengths, all of sum 0, by the votes of a judge or of people.
    board: Leaderboard
    #: Strengths, and how votes came out.
    strengths: ContestStrengths


@dataclass(frozen=True, eq=False)
class ContestStrengths:
    """Strengths of image models by one voter's answers."""

    #: Natural logarithms of strengths, all of sum 0.
    numbers: tuple[Number, ...]
    #: Expected share of wins against another, a tie being half a win.
    shares: Mapping[str, float]
    #: Readiness of equals to tie.
    tie: float
    #: Number of pairs of candidates with an answer.
    answered_pairs: int
    #: Number of all pairs of candidates.
    pairs_asked: int
    #: Reason why there are no strengths.
    reason: str


def by_strength(numbers: Iterable[Number]) -> list[Number]:
    """Strengths from the largest, those that are not known among the mean ones."""
    return sorted(numbers, key=_falling_value)


def _falling_value(number: Number) -> float:
    return -number.estimate.value if number.estimate.defined else 0


def rank_contests(
    runs: Sequence[Run], options: StatisticsOptions
) -> list[ContestRanking]:
    """Rankings of a benchmark's image models by part: by people where they voted, and by each
    judge.

    A judge that scores candidates votes for the higher score; equal scores are a tie.

    Args:
        runs: one a judge, all of one benchmark; samples are left out.
        options: how many draws, the seed.
    """
    rankings = []
    for part in dict.fromkeys(part for run in runs for part in run.records):
        by_annotators = []
        by_judges = []
        for run in runs:
            judged = run.records.get(part, [])
            voted = [records for records in judged if records[0].votes is not None]
            observed = apply_contest_policy(map(observe, voted), options)
            pairs = judged_pairs(observed)
            if not len(pairs.contest):
                continue
            ranked = partial(_ranked, run.benchmark, part, pairs, options)
            if (pairs.human != NONE).any():
                compared = win_rate_statistic(VOTES, pairs, pairs.human)
                by_annotators.append(ranked(PEOPLE, pairs.human, compared))
            for subject in subjects_of(observed, run.aspects):
                codes = judge_codes(pairs, subject)
                compared = win_rate_statistic(subject, pairs)
                by_judges.append(ranked(str(run.name), codes, compared))
        # people voted on the same contests whoever judged them; most of them count
        by_annotators.sort(key=lambda ranking: -ranking.strengths.answered_pairs)
        rankings += [*by_annotators[:1], *by_judges]
    return rankings


def contest_strengths(
    benchmark: str,
    part: str,
    voter: str,
    subject: str,
    pairs: Pairs,
    codes: Ints,
    options: StatisticsOptions,
) -> ContestStrengths:
    """Strengths of image models by one voter's answers.

    Args:
        benchmark, part: what was voted on; they join the seed.
        voter: a judge, or people.
        subject: what the votes come from.
        pairs: of candidates.
        codes: an answer a pair, shape (pairs,); `NONE` where there is none.
        options: how many draws, the seed.
    """
    models, won, tied = _outcomes(pairs, codes)
    answers = int((codes != NONE).sum())
    fitted = strengths(won.sum(axis=0), tied.sum(axis=0))
    logs = fitted.log_strengths
    decided = won + won.transpose(0, 2, 1)
    played = (decided + tied).sum(axis=(0, 2)).astype(int)
    reason = ""
    estimates = [Estimate(np.nan) for _ in models]
    shares = dict[str, float]()
    if np.isnan(logs).any():
        reason = "no contest has an answer"
        if answers:
            reason = SEPARATED
    else:
        name = f"{benchmark}/{part}"
        estimates = _strength_estimates(logs, won, tied, name, options)
        shares = dict(zip(models, win_shares(fitted).tolist(), strict=True))
    judge = JudgeName(voter, "", voter)
    numbers = []
    for model, estimate, contests in zip(
        models, estimates, played.tolist(), strict=True
    ):
        number = Number(
            system=model,
            estimate=replace(estimate, n=contests),
            part=part,
            aspect=subject,
            statistic=STRENGTH.name,
            role="generator",
            judge=judge,
            total=contests,
        )
        numbers.append(number)
    tie = fitted.tie if shares else np.nan
    return ContestStrengths(
        numbers=tuple(numbers),
        shares=shares,
        tie=tie,
        answered_pairs=answers,
        pairs_asked=len(codes),
        reason=reason,
    )


def _strength_estimates(
    logs: Floats, won: Floats, tied: Floats, name: str, options: StatisticsOptions
) -> list[Estimate]:
    """Log strengths with their intervals by bootstrap over groups of contests; `name` joins the
    seed.
    """
    groups = [str(number) for number in range(len(won))]
    seed = [options.seed, zlib.crc32(name.encode())]
    counts = cluster_counts(groups, options.draws, seed)
    resamples = resampled_strengths(won, tied, counts)
    estimates = []
    for n, log in enumerate(logs):
        low, high = _interval(resamples[:, n])
        estimates.append(Estimate(float(log), low, high))
    return estimates


def _ranked(
    benchmark: str,
    part: str,
    pairs: Pairs,
    options: StatisticsOptions,
    voter: str,
    codes: Ints,
    compared: ComparedStatistic,
) -> ContestRanking:
    voter_strengths = contest_strengths(
        benchmark, part, voter, compared.aspect, pairs, codes, options
    )
    compared = replace(compared, untestable_reason=voter_strengths.reason)
    statistic = RankedStatistic(
        part=part,
        aspect=compared.aspect,
        statistic=STRENGTH.name,
        measured=STRENGTH.name,
        title=f"Log strength, contests by {voter}",
        why="",
        ends=(-math.inf, math.inf),
        compared=lambda _: compared,
        is_headline=False,
        judge=JudgeName(voter, "", voter),
        measure=STRENGTH,
    )
    findings = Findings(voter_strengths.numbers)
    board = leaderboard(statistic, findings, benchmark, (), options)
    return ContestRanking(board, voter_strengths)


def _outcomes(pairs: Pairs, codes: Ints) -> tuple[list[str], Floats, Floats]:
    """The image models by name, and wins and ties of each group of contests, shape (groups,
    models, models).
    """
    model_pairs = pairs.image_models
    models = sorted({model for model_pair in model_pairs for model in model_pair})
    index_of = {model: number for number, model in enumerate(models)}
    groups, group = factorize(pairs.groups)
    shape = (len(groups), len(models), len(models))
    won = np.zeros(shape)
    tied = np.zeros(shape)
    index_pairs = [[index_of[model] for model in pair] for pair in model_pairs]
    first, second = np.array(index_pairs).reshape(-1, 2).T
    counts = (codes != NONE) & (first != second)
    decisive = np.isin(codes, (FIRST, SECOND))
    better, worse = np.where(codes == SECOND, [second, first], [first, second])
    is_decided = counts & decisive
    decided_cells = (group[is_decided], better[is_decided], worse[is_decided])
    np.add.at(won, decided_cells, 1)
    is_tied = counts & ~decisive
    tied_cells = (group[is_tied], first[is_tied], second[is_tied])
    np.add.at(tied, tied_cells, 1)
    return models, won, tied + tied.transpose(0, 2, 1)


def _interval(resamples: Floats) -> tuple[float, float]:
    """The interval of a strength; undefined where its ends may be among draws without a finite
    one.
    """
    if np.isnan(resamples).mean() < MOST_UNDEFINED:
        return interval(resamples)
    return (np.nan, np.nan)
