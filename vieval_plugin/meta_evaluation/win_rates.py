"""Image models ranked by how often they win contests, each two on the contests between them; and
position bias.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from vieval_plugin.judges.contests import FIRST, FORWARD, REVERSE, SECOND
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.comparison import (
    CommonSamplesStatistic,
    ComparedStatistic,
    System,
    SystemPair,
    compare_systems,
)
from vieval_plugin.meta_evaluation.estimates import Bootstrap, computed_mean
from vieval_plugin.meta_evaluation.findings import (
    ALL,
    Findings,
    Number,
    RankedStatistic,
    preferred,
)
from vieval_plugin.meta_evaluation.measures import OPINION, Measure, Outcome
from vieval_plugin.meta_evaluation.observations import (
    Observation,
    apply_contest_policy,
    observe,
)
from vieval_plugin.meta_evaluation.vote_answers import (
    VOTES,
    Pairs,
    judge_codes,
    judged_pairs,
    subjects_of,
)
from vieval_plugin.records import Record, Run
from vieval_plugin.stats import votes
from vieval_plugin.stats.bootstrap import Ints
from vieval_plugin.stats.comparison import MeanDifference
from vieval_plugin.stats.decisions import LEAST_COVERAGE
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

#: The win rate of equals, which differences are from.
EVEN = 0.5
WIN_RATE = Measure(
    "win rate",
    "Win rate",
    {
        **OPINION,
        Outcome.BEST: "{scope}{judge} ranks {first_possessive} images first of the {count}.",
        Outcome.BETTER: "{judge} prefers {first_possessive} images to {second_possessive}.",
    },
    even=EVEN,
    leads=True,
)
_WHY = "This is the judge's opinion. These contests have no human votes."


@dataclass(frozen=True)
class ContestOutcome:
    """A contest between two image models as one of them sees it: 1 where it won, 0 where it lost,
    1/2 for a tie.

    `failed` says of a contest without an answer whether this one's image failed, and the other's:
    then the one whose image failed has lost, and where nothing says whose did, each has as it sees
    it. `status` is the verdict's.
    """

    opponent: str
    group: str
    points: float
    failed: tuple[bool, bool] | None = None
    status: Status = Status.OK


def win_rate_findings(run: Run, options: StatisticsOptions) -> Findings:
    """Image models of a run by win rate, over all its contests: by its votes, or by each aspect
    that the judge scores.

    A model's own number is its rate over all its contests, ties counting half. Two models are
    compared by the contests between them alone: by how far the win rate of the first lies from one
    half.

    Args:
        run: one judge's; what is no contest is left out.
        options: how many draws (of the bootstrap and of the tests), the seed.
    """
    observed = apply_contest_policy(_observed(run), options)
    pairs = judged_pairs(observed)
    if len(pairs.contest):
        subjects = preferred(subjects_of(observed, run.aspects))
    else:
        subjects = []
    ranked = [_ranked(run, subject, pairs, observed, options) for subject in subjects]
    statistics = (
        replace(statistic, is_headline=index == 0)
        for index, (statistic, _) in enumerate(ranked)
    )
    numbers = chain.from_iterable(subject_numbers for _, subject_numbers in ranked)
    return Findings(tuple(numbers), tuple(statistics))


def _observed(run: Run) -> list[Observation]:
    """Contests with clusters named with their part: two parts may have a prompt of one uid."""
    return [
        replace(observation, group=f"{part}/{observation.group}")
        for part, judged in run.records.items()
        for records in judged
        if records[0].votes is not None
        for observation in [observe(records)]
    ]


def _ranked(
    run: Run,
    subject: str,
    pairs: Pairs,
    observed: Sequence[Observation],
    options: StatisticsOptions,
) -> tuple[RankedStatistic, list[Number]]:
    codes = judge_codes(pairs, subject)
    all_outcomes, contest_counts = _outcomes(pairs, codes, _failed(pairs, subject))
    compared = _compared(subject, all_outcomes, contest_counts)
    bootstrap = Bootstrap.for_part(f"{run.benchmark}/{ALL}", options)
    statistic = RankedStatistic(
        part=ALL,
        aspect=subject,
        statistic=WIN_RATE.name,
        measured=WIN_RATE.name,
        title=f"Share of contests won according to {run.name} (ties count as half)",
        why=_WHY,
        ends=(0.0, 1.0),
        compared=lambda _: compared,
        judge=run.name,
        measure=WIN_RATE,
    )
    if len(all_outcomes) == 2:
        tested = compare_systems(compared, run.benchmark, options).all_pairs
    else:
        tested = ()
    numbers = []
    for model, contests in _answered_contests(all_outcomes).items():
        points = [outcome.points for outcome in contests]
        groups = [outcome.group for outcome in contests]
        rate = bootstrap.estimate(
            computed_mean(points, groups, "no contest has an answer")
        )
        rate = _tested_rate(model, rate, tested)
        numbers.append(
            Number(
                system=model,
                estimate=rate,
                part=ALL,
                aspect=subject,
                statistic=WIN_RATE.name,
                role="generator",
                judge=run.name,
                total=contest_counts[model],
                statuses=_statuses(observed, model),
            )
        )
    return statistic, numbers


def _tested_rate(model: str, rate: Estimate, pairs: Sequence[SystemPair]) -> Estimate:
    """A win rate between two models with the interval of their difference, so that both have
    one; else as it is.
    """
    for pair in pairs:
        difference = pair.result.difference
        if pair.first != model:
            difference = pair.turned.result.difference
        is_same = math.isclose(EVEN + difference.value, rate.value)
        if is_same and difference.has_interval:
            return replace(rate, low=EVEN + difference.low, high=EVEN + difference.high)
    return rate


def win_rate_statistic(
    subject: str, pairs: Pairs, codes: Ints | None = None
) -> ComparedStatistic:
    """Image models compared two by two by the contests between them, on one voter's answers.

    Args:
        subject: what the judge's votes come from.
        pairs: of candidates.
        codes: annotators' answers in place of the judge's, one a pair, shape (pairs,); `NONE` where
            there is none.
    """
    if codes is None:
        codes = judge_codes(pairs, subject)
        return _compared(subject, *_outcomes(pairs, codes, _failed(pairs, subject)))
    return _compared(subject, *_outcomes(pairs, codes))


def outcomes_between(
    run: Run, subject: str, model: str, opponent: str, options: StatisticsOptions
) -> list[ContestOutcome]:
    """Contests between two image models as the first sees them, those without an answer too.

    Args:
        run: one judge's.
        subject: `votes`, or the aspect whose scores are compared.
        model, opponent: the two.
        options: as for `win_rate_findings`.
    """
    pairs = judged_pairs(apply_contest_policy(_observed(run), options))
    codes = judge_codes(pairs, subject)
    outcomes, _ = _outcomes(pairs, codes, _failed(pairs, subject))
    return [
        outcome for outcome in outcomes.get(model, ()) if outcome.opponent == opponent
    ]


def _outcomes(
    pairs: Pairs, codes: Ints, failures: Sequence[tuple[bool, bool]] = ()
) -> tuple[Mapping[str, list[ContestOutcome]], Counter[str]]:
    """Outcomes of each image model, in the order in which models come, and how many contests it was
    in.

    Contests without an answer are among them where `failures` says of each pair whose image failed.
    """
    statuses = [pairs.observations[number].status for number in pairs.contest]
    outcomes: dict[str, list[ContestOutcome]] = defaultdict(list)
    contest_counts: Counter[str] = Counter()
    for number, ((first, second), group, code) in enumerate(
        zip(pairs.image_models, pairs.groups, codes, strict=True)
    ):
        if first == second:
            continue
        contest_counts.update((first, second))
        points = {votes.FIRST: 1.0, votes.SECOND: 0.0}.get(int(code), EVEN)
        if code != votes.NONE:
            outcomes[first].append(ContestOutcome(second, group, points))
            outcomes[second].append(ContestOutcome(first, group, 1 - points))
        elif failures:
            status = statuses[number]
            first_failed, second_failed = failures[number]
            outcomes[first].append(
                _failed_outcome(second, group, first_failed, second_failed, status)
            )
            outcomes[second].append(
                _failed_outcome(first, group, second_failed, first_failed, status)
            )
    return {model: outcomes[model] for model in contest_counts}, contest_counts


def _failed_outcome(
    opponent: str, group: str, own_failed: bool, opponent_failed: bool, status: Status
) -> ContestOutcome:
    points = 0.0
    if own_failed and opponent_failed:
        points = EVEN
    elif opponent_failed:
        points = 1.0
    failed = (own_failed, opponent_failed)
    return ContestOutcome(
        opponent=opponent,
        group=group,
        points=points,
        failed=failed,
        status=status,
    )


def _answered_contests(
    outcomes: Mapping[str, Sequence[ContestOutcome]],
) -> dict[str, list[ContestOutcome]]:
    return {
        model: [outcome for outcome in contests if outcome.failed is None]
        for model, contests in outcomes.items()
    }


def _failed(pairs: Pairs, subject: str) -> list[tuple[bool, bool]]:
    """True for each candidate of each pair that is no image or, for a judge of samples, has no
    score.
    """
    without_image = [contest.without_image for contest in pairs.contests]
    unscored = np.zeros((2, len(pairs.contest)), dtype=bool)
    if subject != VOTES:
        unscored = np.isnan(pairs.scores(subject))
    failed = []
    for number, (first, second), (no_first, no_second) in zip(
        pairs.contest, pairs.indices.tolist(), unscored.T.tolist(), strict=True
    ):
        missing = without_image[number]
        if missing:
            failed.append((first in missing, second in missing))
        else:
            failed.append((no_first, no_second))
    return failed


def _compared(
    subject: str,
    all_outcomes: Mapping[str, Sequence[ContestOutcome]],
    contest_counts: Mapping[str, int],
) -> ComparedStatistic:
    outcomes = _answered_contests(all_outcomes)
    models = list(outcomes)

    def pair(
        first: int,
        second: int,
        by_model: Mapping[str, Sequence[ContestOutcome]] = outcomes,
    ) -> CommonSamplesStatistic:
        contests = [
            outcome
            for outcome in by_model[models[first]]
            if first == second or outcome.opponent == models[second]
        ]
        if not contests:
            return CommonSamplesStatistic(0)
        points = [outcome.points for outcome in contests]
        against = points
        if first != second:
            against = [EVEN] * len(points)
        groups = [outcome.group for outcome in contests]
        difference = MeanDifference(points, against, groups)
        return CommonSamplesStatistic(len(points), difference)

    def count_failures(first: int, second: int) -> CommonSamplesStatistic:
        """The pair with the contests lost in which the first one's image failed, or nothing says
        whose.
        """
        if not any(
            outcome.failed and outcome.opponent == models[second]
            for outcome in all_outcomes[models[first]]
        ):
            return CommonSamplesStatistic(0)
        by_opponent = {
            model: [
                outcome
                for outcome in contests
                if not outcome.failed or outcome.points < 1
            ]
            for model, contests in all_outcomes.items()
        }
        return pair(first, second, by_opponent)

    unit = "contests"
    if all(map(_is_one_per_prompt, outcomes.values())):
        unit = "prompts"
    return ComparedStatistic(
        part=ALL,
        aspect=subject,
        statistic=WIN_RATE.name,
        systems=_systems(outcomes, contest_counts),
        pair=pair,
        unit=unit,
        entrants="generators",
        with_failures=count_failures,
    )


def _systems(
    outcomes: Mapping[str, Sequence[ContestOutcome]], contest_counts: Mapping[str, int]
) -> tuple[System, ...]:
    """Image models with the number of their answered contests, and why one is not ranked."""
    systems = []
    for model, contests in outcomes.items():
        answered = len(contests)
        total = contest_counts[model]
        unranked = f"an answer to {answered} of {total} contests"
        if answered >= LEAST_COVERAGE * total:
            unranked = ""
        undefined = ""
        if not contests:
            undefined = "no contest has an answer"
        systems.append(
            System(
                label=model,
                n=answered,
                undefined=undefined,
                unranked=unranked,
            )
        )
    return tuple(systems)


def _is_one_per_prompt(contests: Sequence[ContestOutcome]) -> bool:
    """True where no opponent is met twice on a prompt."""
    return len({(outcome.opponent, outcome.group) for outcome in contests}) == len(
        contests
    )


def _statuses(observed: Sequence[Observation], model: str) -> Counter[Status]:
    """Statuses of a model's contests, less those that only others' missing images made fail."""
    contests = [
        (observation.status, observation.contest)
        for observation in observed
        if observation.contest
    ]
    statuses: Counter[Status] = Counter()
    for status, contest in contests:
        failed_models = [contest.image_models[n] for n in contest.without_image]
        if model in (failed_models or contest.image_models):
            statuses[status] += 1
    return statuses


@dataclass(frozen=True)
class PositionBias:
    """The preference of a judge that was asked in both orders for what it is shown first.

    `first_shown` is the share of answers for the candidate shown first, ties counting half: 0.5
    without bias. `contradicted` counts the `contests` in which each order's answer is for the other
    candidate.
    """

    first_shown: Estimate
    contradicted: int
    contests: int

    @property
    def biased(self) -> bool:
        """True where the interval does not hold one half."""
        return self.first_shown.low > EVEN or self.first_shown.high < EVEN

    @property
    def contradictory(self) -> bool:
        """True where the two orders disagree in half of the contests or more."""
        return 2 * self.contradicted >= self.contests


def position_bias(run: Run, options: StatisticsOptions) -> PositionBias | None:
    """The position bias of a run's judge; None where no contest of two has an answer in both
    orders.

    Args:
        run: one judge's.
        options: how many draws, the seed.

    Source: Zheng et al. 2023, Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena, on position
    bias.
    """
    shares = []
    groups = []
    contradicted = 0
    for records in run.records_by_sample:
        record = records[0]
        points = _first_shown(record)
        if len(points) != 2:
            continue
        shares.append(sum(points) / 2)
        groups.append(f"{record.id.part}/{record.group or record.id.uid}")
        if points in ([1.0, 1.0], [0.0, 0.0]):
            contradicted += 1
    if not shares:
        return None
    bootstrap = Bootstrap.for_part(f"{run.benchmark}/{ALL}", options)
    first_shown = bootstrap.share(shares, groups)
    return PositionBias(first_shown, contradicted, len(shares))


def _first_shown(record: Record) -> list[float]:
    """Points of each order that has an answer: 1 for the candidate shown first, 0 for the other,
    1/2 for neither.
    """
    choice = record.verdict.choice
    if choice is None or len(record.candidates) != 2:
        return []
    by_first = dict(choice.preferences)
    if not by_first:
        by_first = {
            order: {FIRST: 1.0, SECOND: -1.0}.get(vote, 0.0)
            for order, vote in choice.votes.items()
            if vote
        }
    turned = {FORWARD: 1.0, REVERSE: -1.0}
    return [
        float(np.sign(turned[order] * by_first[order]) + 1) / 2
        for order in turned
        if order in by_first
    ]
