"""Leaderboards: systems in the order of their numbers, with the ranks that paired tests leave
and what each cost.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from vieval_plugin.judges.contests import FIRST, FORWARD, REVERSE, SECOND
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.comparison import (
    ComparedStatistic,
    System,
    above_constant_p,
    compare_systems,
    restrict_systems,
    systems_by_own_number,
)
from vieval_plugin.meta_evaluation.costs import cost_of
from vieval_plugin.meta_evaluation.findings import (
    ALL,
    Findings,
    Leaderboard,
    Number,
    RankedStatistic,
)
from vieval_plugin.records import YOUR_IMAGES, Record, Run
from vieval_plugin.stats.decisions import (
    LEAST_ANSWERS,
    SAME_ANSWERS,
    SIGNIFICANCE_LEVEL,
)
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import Policy, StatisticsOptions

#: With more systems than these, differences have no intervals.
MOST_WITH_INTERVALS = 6

_IMAGE_OF = {
    (FORWARD, FIRST): "the first image shown",
    (FORWARD, SECOND): "the second image shown",
    (REVERSE, FIRST): "the second image shown",
    (REVERSE, SECOND): "the first image shown",
}


def leaderboard(
    statistic: RankedStatistic,
    findings: Findings,
    benchmark: str,
    runs: Sequence[Run],
    options: StatisticsOptions,
    intervals: bool = True,
    against: str = "annotators",
    systems: Collection[str] | None = None,
    family_of: str | None = None,
) -> Leaderboard:
    """The leaderboard of a statistic.

    Args:
        statistic: of the findings.
        findings: of the benchmark's family.
        benchmark: its name.
        runs: one a judge.
        options: number of resamples, the seed.
        intervals: whether differences have intervals.
        against: whose ratings they compare with.
        systems: labels of those that it has; None for all.
        family_of: the label of a system whose pairs are a family of their own.
    """
    numbers = [
        n
        for n in findings.numbers
        if statistic.has(n) and (systems is None or n.system in systems)
    ]
    compared = statistic.compared(options)
    compared = compared if systems is None else restrict_systems(compared, systems)
    comparison = compare_systems(compared, benchmark, options, intervals, family_of)
    compared_systems = {system.label: system for system in comparison.systems}
    records = _records_by_system(statistic, runs, [number.system for number in numbers])
    completed = _completed_numbers(numbers, compared_systems, records)
    costs = {label: cost_of(judged) for label, judged in records.items()}
    same_answers = _same_answers(records, statistic.aspect)
    comparable = (
        statistic.is_headline
        and len(numbers) > 1
        and any(number.estimate.defined for number in numbers)
    )
    failed = comparable and any(cost.failed for cost in costs.values())
    below_constant = _below_constant(statistic, compared, benchmark, options, numbers)
    return Leaderboard(
        # a leaderboard has all fields of its statistic
        **vars(statistic),
        benchmark=benchmark,
        numbers=tuple(completed),
        comparison=comparison,
        breakdowns=_breakdowns(statistic, findings.numbers),
        against=against,
        costs=costs,
        same_answers={} if statistic.judge else same_answers,
        positions=_positions(statistic, compared, options) if failed else {},
        not_above_constant=frozenset(below_constant),
    )


def _same_answers(
    records: Mapping[str, Sequence[Record]], aspect: str
) -> dict[str, str]:
    """Notes on systems that nearly always give the same answer."""
    texts = {label: one_answer(judged, aspect) for label, judged in records.items()}
    return {label: text for label, text in texts.items() if text}


def _completed_numbers(
    numbers: list[Number],
    compared_systems: dict[str, System],
    records: dict[str, list[Record]],
) -> list[Number]:
    position = {label: index for index, label in enumerate(compared_systems)}
    completed = []
    for number in numbers:
        system = compared_systems.get(number.system)
        statuses = number.statuses or Counter(
            record.verdict.status for record in records[number.system]
        )
        ranks = system.ranks if system else None
        unranked = system.undefined or system.unranked if system else ""
        inapplicable = statuses.get(Status.NOT_APPLICABLE, 0)
        total = number.total or sum(statuses.values()) - inapplicable
        completed.append(
            replace(
                number, ranks=ranks, unranked=unranked, statuses=statuses, total=total
            )
        )
    completed.sort(
        key=lambda n: (position.get(n.system, len(position)), -n.estimate.value)
    )
    return completed


def _below_constant(
    statistic: RankedStatistic,
    compared: ComparedStatistic,
    benchmark: str,
    options: StatisticsOptions,
    numbers: list[Number],
) -> set[str]:
    """Systems that are not shown to be above a constant answer."""
    constants = [r.estimate for r in statistic.references if r.role == "baseline"]
    if compared.above_constant:
        p_values = above_constant_p(compared, benchmark, options)
        return {label for label, p in p_values.items() if not p <= SIGNIFICANCE_LEVEL}
    return {
        n.system
        for n in numbers
        if n.estimate.defined and any(not n.estimate.low > c.value for c in constants)
    }


def _records_by_system(
    statistic: RankedStatistic, runs: Sequence[Run], systems: Sequence[str]
) -> dict[str, list[Record]]:
    """The records of each system on the statistic's part."""
    part = statistic.value if statistic.breakdown == "part" else statistic.part
    by_system: dict[str, list[Record]] = {system: [] for system in systems}
    for run in runs:
        if statistic.judge not in (None, run.name):
            continue
        part_records = (
            rows for name, rows in run.records.items() if part in (ALL, name)
        )
        for record in chain.from_iterable(chain.from_iterable(part_records)):
            names = [candidate.image_model for candidate in record.candidates]
            if not statistic.judge:
                names = [run.label]
            for name in dict.fromkeys(names or [record.id.image_model]):
                by_system.get(name or YOUR_IMAGES, []).append(record)
    return by_system


def _breakdowns(
    statistic: RankedStatistic, numbers: Sequence[Number]
) -> Mapping[str, Mapping[str, Mapping[str, Estimate]]]:
    """The statistic's numbers by what breaks it down; of one over all parts these are the parts
    where nothing else is.
    """
    breakdowns: dict[str, dict[str, dict[str, Estimate]]] = {}
    alike = (statistic.aspect, statistic.statistic, statistic.judge)
    for number in numbers if not statistic.breakdown else ():
        key = (number.aspect, number.statistic, number.judge)
        if key == alike and number.role != "baseline":
            if number.part == statistic.part and number.breakdown:
                by_value = breakdowns.setdefault(number.breakdown, {})
                by_value.setdefault(number.value, {})[number.system] = number.estimate
            elif (
                statistic.part == ALL != number.part
                and not number.breakdown
                and statistic.parts
            ):
                by_value = breakdowns.setdefault(statistic.parts, {})
                by_value.setdefault(number.part, {})[number.system] = number.estimate
    return breakdowns


def _positions(
    statistic: RankedStatistic, compared: ComparedStatistic, options: StatisticsOptions
) -> dict[str, tuple[str, str]]:
    """Places by own number under `drop` and `worst`, by label; empty for a system that is not
    ranked.
    """

    def systems_by_policy(policy: Policy) -> dict[str, str]:
        if policy == options.policy:
            policy_comparison = compared
        else:
            policy_comparison = statistic.compared(replace(options, policy=policy))
        labels = [
            system.label
            for system in systems_by_own_number(policy_comparison)
            if not (math.isnan(system.value) or system.unranked)
        ]
        return {label: str(position) for position, label in enumerate(labels, start=1)}

    dropped = systems_by_policy("drop")
    worst = systems_by_policy("worst")
    return {
        system.label: (dropped.get(system.label, ""), worst.get(system.label, ""))
        for system in compared.systems
    }


def one_answer(records: Sequence[Record], aspect: str) -> str:
    """Say that a judge answers alike, in words; empty where it does not.

    A vote counts by the place at which its candidate was shown, and a score to two decimals.

    Args:
        records: those of one judge, samples or contests.
        aspect: the aspect whose scores are looked at; a judge's own votes have none.

    Returns:
        How often it gave the answer that it gives at least 95 times of 100, of 20 answers or more.

    >>> one_answer([], "SC")
    ''
    """
    answers = Counter(
        answer for record in records for answer in _answers(record, aspect)
    )
    for answer, times in answers.most_common(1):
        if answers.total() >= LEAST_ANSWERS and times >= SAME_ANSWERS * answers.total():
            return f"{times} of {answers.total()} answers are {answer}, so its value is not meaningful"
    return ""


def _answers(record: Record, aspect: str) -> Iterator[str]:
    choice = record.verdict.choice
    for order in (FORWARD, REVERSE):
        if choice and (vote := choice.votes.get(order)):
            yield _IMAGE_OF.get((order, vote), vote.replace("_", " "))
    if choice is None and aspect in record.verdict.scores:
        yield f"{record.verdict.scores[aspect]:.2f}"
