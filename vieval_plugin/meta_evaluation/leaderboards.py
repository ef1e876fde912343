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
    numbers = [number for number in findings.numbers if statistic.has(number)]
    compared = statistic.compared(options)
    if systems is not None:
        numbers = [number for number in numbers if number.system in systems]
        compared = restrict_systems(compared, systems)
    comparison = compare_systems(compared, benchmark, options, intervals, family_of)
    compared_systems = {system.label: system for system in comparison.systems}
    records = _records_by_system(statistic, runs, [number.system for number in numbers])
    completed = _completed_numbers(numbers, compared_systems, records)
    costs = {label: cost_of(judged) for label, judged in records.items()}
    distinct_costs = list(costs.values())
    if statistic.judge:  # a contest has a record with each of its generators
        distinct = {id(record): record for record in chain(*records.values())}
        distinct_costs = [cost_of(list(distinct.values()))]
    failures = Counter[str]()
    for cost in distinct_costs:
        failures += Counter(dict(cost.statuses))
    same_answers = {}
    if not statistic.judge:
        same_answers = _same_answers(records, statistic.aspect)
    positions = {}
    has_failures = any(cost.failed for cost in costs.values())
    if has_failures and _is_comparable(statistic, numbers):
        positions = _positions(statistic, compared, options)
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
        failures=failures,
        verdicts=sum(cost.verdicts for cost in distinct_costs),
        same_answers=same_answers,
        positions=positions,
        not_above_constant=frozenset(below_constant),
    )


def _is_comparable(statistic: RankedStatistic, numbers: Sequence[Number]) -> bool:
    if not statistic.is_headline or len(numbers) < 2:
        return False
    return any(number.estimate.defined for number in numbers)


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
        ranks = None
        unranked = ""
        if system:
            ranks = system.ranks
            unranked = system.undefined or system.unranked
        inapplicable = statuses.get(Status.NOT_APPLICABLE, 0)
        total = number.total or sum(statuses.values()) - inapplicable
        number = replace(
            number, ranks=ranks, unranked=unranked, statuses=statuses, total=total
        )
        completed.append(number)

    def place(number: Number) -> tuple[int, float]:
        system_place = position.get(number.system, len(position))
        return system_place, -number.estimate.value

    return sorted(completed, key=place)


def _below_constant(
    statistic: RankedStatistic,
    compared: ComparedStatistic,
    benchmark: str,
    options: StatisticsOptions,
    numbers: list[Number],
) -> set[str]:
    """Systems that are not shown to be above a constant answer by both the test, where there is
    one, and the interval.
    """
    constants = [
        reference.estimate
        for reference in statistic.references
        if reference.role == "baseline"
    ]
    below_constant = set()
    if compared.above_constant:
        p_values = above_constant_p(compared, benchmark, options)
        for number in numbers:
            p = p_values.get(number.system, 0.0)
            if not p <= SIGNIFICANCE_LEVEL or reaches_below(number.estimate, constants):
                below_constant.add(number.system)
        return below_constant
    for number in numbers:
        is_above = all(number.estimate.low > constant.value for constant in constants)
        if number.estimate.defined and not is_above:
            below_constant.add(number.system)
    return below_constant


def reaches_below(estimate: Estimate, constants: Sequence[Estimate]) -> bool:
    """True where an interval reaches below a constant that has no interval of its own."""
    fixed = [constant.value for constant in constants if not constant.has_interval]
    return estimate.has_interval and any(estimate.low < value for value in fixed)


def _records_by_system(
    statistic: RankedStatistic, runs: Sequence[Run], systems: Sequence[str]
) -> dict[str, list[Record]]:
    """The records of each system on the statistic's part."""
    part = statistic.part
    if statistic.breakdown == "part":
        part = statistic.value
    by_system: dict[str, list[Record]] = {system: [] for system in systems}
    for run in runs:
        if statistic.judge not in (None, run.name):
            continue
        part_records = (
            rows for name, rows in run.records.items() if part in (ALL, name)
        )
        for record in chain.from_iterable(chain.from_iterable(part_records)):
            names = {candidate.image_model for candidate in record.candidates}
            if not statistic.judge:
                names = {run.label}
            for name in names or {record.id.image_model}:
                by_system.get(name or YOUR_IMAGES, []).append(record)
    return by_system


def _breakdowns(
    statistic: RankedStatistic, numbers: Sequence[Number]
) -> Mapping[str, Mapping[str, Mapping[str, Estimate]]]:
    """The statistic's numbers by what breaks it down; of one over all parts these are the parts
    where nothing else is.
    """
    breakdowns: dict[str, dict[str, dict[str, Estimate]]] = {}
    if statistic.breakdown:
        return breakdowns
    quantity = (statistic.aspect, statistic.statistic, statistic.judge)
    for number in numbers:
        key = (number.aspect, number.statistic, number.judge)
        if key != quantity or number.role == "baseline":
            continue
        if number.breakdown and number.part == statistic.part:
            by_value = breakdowns.setdefault(number.breakdown, {})
            by_value.setdefault(number.value, {})[number.system] = number.estimate
        is_part = statistic.part == ALL != number.part
        if is_part and statistic.parts and not number.breakdown:
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
        positions: dict[str, str] = {}
        for system in systems_by_own_number(policy_comparison):
            if not (math.isnan(system.value) or system.unranked):
                positions[system.label] = str(len(positions) + 1)
        return positions

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
    answers: Counter[str] = Counter()
    for record in records:
        answers.update(_answers(record, aspect))
    total = answers.total()
    if total < LEAST_ANSWERS:
        return ""
    [(answer, times)] = answers.most_common(1)
    if times < SAME_ANSWERS * total:
        return ""
    return f"{times} of {total} answers are {answer}, so its value is not meaningful"


def _answers(record: Record, aspect: str) -> Iterator[str]:
    choice = record.verdict.choice
    scores = record.verdict.scores
    if choice is None and aspect in scores:
        yield f"{scores[aspect]:.2f}"
    if choice is None:
        return
    for order in (FORWARD, REVERSE):
        vote = choice.votes.get(order)
        if vote:
            yield _IMAGE_OF.get((order, vote), vote.replace("_", " "))
