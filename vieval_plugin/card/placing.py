"""Compare a judge with the published judges, by the statistics of its benchmark."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.comparison import (
    ComparedStatistic,
    SystemPair,
    above_constant_p,
    compare_pair,
    restrict_systems,
)
from vieval_plugin.meta_evaluation.estimates import mean_over_parts
from vieval_plugin.meta_evaluation.findings import Leaderboard, Number
from vieval_plugin.meta_evaluation.leaderboards import leaderboard, reaches_below
from vieval_plugin.records import Run
from vieval_plugin.report.own_samples import against, benchmarks_with_runs
from vieval_plugin.results.published.judges import parts_present, present, run_of
from vieval_plugin.stats.decisions import SIGNIFICANCE_LEVEL
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.ranking import holm
from vieval_plugin.text.errors import VievalError


@dataclass(frozen=True, eq=False)
class PlacedJudge:
    """A judge compared with the published ones."""

    #: Its run, under the model's name.
    run: Run
    benchmark: Benchmark
    #: Leaderboard by the first statistic with a number of this judge; its pairs with others
    #: are a family.
    board: Leaderboard
    #: All of its numbers, and the others' numbers by the same statistic.
    numbers: tuple[Number, ...]
    #: By published judge and part, its pair with that judge; p is adjusted over the parts.
    by_part: Mapping[str, Mapping[str, SystemPair]]
    #: Parts on which no test, adjusted over the parts, shows it to be better than the same
    #: answer for everything.
    useless: tuple[str, ...]
    #: Policy for its failed verdicts.
    failure_policy: str = "drop"

    @property
    def title(self) -> str:
        """Name of the benchmark in sentences."""
        return self.benchmark.title or self.benchmark.name

    @property
    def number(self) -> Number:
        """Number of this judge."""
        return self.board.number_of(self.run.label)

    @property
    def published(self) -> list[Number]:
        """Numbers of the published judges, best first."""
        label = self.run.label
        numbers = [number for number in self.board.numbers if number.system != label]
        return sorted(
            numbers, key=lambda n: (not n.estimate.defined, -n.estimate.value)
        )

    @property
    def best_published(self) -> Number | None:
        """Published judge with the highest number, among those with a rank if any has
        one.
        """
        ranked = [number for number in self.published if number.ranks]
        return next(iter(ranked or self.published), None)

    @property
    def heading(self) -> str:
        """Judge with its setting, and its benchmark."""
        parts = filter(None, (self.run.judge, self.run.setting))
        return f"{' '.join(parts)} on {self.title}"

    @property
    def unread(self) -> Counter[str]:
        """Verdicts without a score by status, except for images that a generator did
        not make.
        """
        statuses = dict(self.board.costs[self.run.label].statuses)
        statuses.pop(Status.NO_IMAGE, None)
        return Counter(statuses)

    @property
    def unread_share(self) -> float:
        """Share of its verdicts that are unread, in [0, 1]."""
        verdict_count = max(self.board.costs[self.run.label].verdicts, 1)
        return self.unread.total() / verdict_count

    @property
    def breakdown(self) -> str:
        """Name of the first breakdown, which defines the parts; empty without one."""
        return next(iter(self.board.breakdowns), "")

    @property
    def consistency(self) -> Estimate | None:
        """Share of contests with the same answer in both orders, over parts; None if
        the judge is asked in one order only.
        """
        shares = [
            n.estimate
            for n in self.numbers
            if (n.system, n.statistic) == (self.run.label, "consistent_share")
        ]
        return mean_over_parts(shares) if shares else None

    def values_by_statistic(self, system: str) -> dict[str, Estimate]:
        """Numbers of a judge by value of the breakdown."""
        by_value = self.board.breakdowns.get(self.breakdown, {})
        return {
            value: by_system[system]
            for value, by_system in by_value.items()
            if system in by_system
        }

    def pair_with(self, rival: str) -> SystemPair | None:
        """Pair of this judge, as the first, with a published judge; None if they share
        no samples.
        """
        label = self.run.label
        pair = self.board.comparison.pair_of(label, rival)
        if pair is None or pair.first == label:
            return pair
        return pair.turned

    def board_of(self, pairs: Iterable[SystemPair]) -> Leaderboard:
        """Leaderboard with only these pairs, as one family."""
        return replace(
            self.board,
            comparison=replace(
                self.board.comparison, pairs=tuple(pairs), other_pairs=()
            ),
        )

    @property
    def pairs_of_judge(self) -> Leaderboard:
        """Leaderboard with only the pairs of this judge."""
        pairs = (self.pair_with(number.system) for number in self.published)
        return self.board_of(filter(None, pairs))

    @property
    def alone(self) -> Leaderboard:
        """Leaderboard with only this judge."""
        label = self.run.label
        board = self.board_of(())
        return replace(
            board,
            numbers=(self.number,),
            costs={label: board.costs[label]},
            same_answers={
                name: labels
                for name, labels in board.same_answers.items()
                if name == label
            },
        )


def place_judge(run: Run, root: Path, options: StatisticsOptions) -> PlacedJudge:
    """Compare a judge with the published judges that have verdicts on its samples.

    Args:
        run: of the judge, with human ratings or votes.
        root: the folder of published verdicts.
        options: failure policy, number of resamples, seed.

    Raises:
        VievalError: the verdicts give no number, or the benchmark is unknown.
    """
    [(benchmark, _)] = benchmarks_with_runs([run])
    return place_among(
        benchmark,
        run,
        _published_runs(run, root),
        options,
    )


def place_among(
    benchmark: Benchmark,
    run: Run,
    others: Sequence[Run],
    options: StatisticsOptions,
) -> PlacedJudge:
    """Compare a judge with others on the same samples; all labels must differ."""
    runs = [run, *others]
    label = run.label
    name = benchmark.name
    findings = benchmark.report.findings(
        name,
        tuple(benchmark.parts),
        runs,
        options,
    )
    has_own = (
        s
        for s in findings.ranked
        if any(s.has(n) and n.system == label for n in findings.numbers)
    )
    statistic = next(has_own, None)
    if statistic is None or statistic.judge is not None:
        raise VievalError(
            f"{name}: no agreement can be computed for {label}, because people did "
            "not rate or vote on any of its samples"
        )
    board = leaderboard(
        statistic,
        findings,
        name,
        runs,
        options,
        against=against(benchmark),
        family_of=label,
    )
    ranked = {number.system: number for number in board.numbers}
    same_statistic = (board.aspect, board.statistic, None)
    numbers = tuple(
        ranked[number.system] if statistic.has(number) else number
        for number in findings.numbers
        if number.system == label
        or (number.aspect, number.statistic, number.judge) == same_statistic
    )
    breakdown = next(iter(board.breakdowns.values()), {})
    compared = {}
    compared_in_part = statistic.statistic_in_part
    if compared_in_part:
        for part in run.records:
            if part in breakdown:
                compared[part] = compared_in_part(part, options)
    by_part = {}
    if len(compared) > 1:
        for rival_run in others:
            rival = rival_run.label
            by_part[rival] = _pairs_by_part(compared, label, rival, name, options)
    return PlacedJudge(
        run,
        benchmark,
        board,
        (*numbers, *board.references),
        by_part,
        _useless_parts(compared, board, label, name, options),
        options.policy,
    )


def _useless_parts(
    compared: Mapping[str, ComparedStatistic],
    board: Leaderboard,
    label: str,
    benchmark: str,
    options: StatisticsOptions,
) -> tuple[str, ...]:
    """Parts on which a judge is not shown to be better than a constant answer, as a leaderboard
    has it of all samples.
    """
    estimates = next(iter(board.breakdowns.values()), {})
    constants = [n.estimate for n in board.references if n.role == "baseline"]
    p_values = []
    for statistic in compared.values():
        only_judge = restrict_systems(statistic, [label])
        p = above_constant_p(only_judge, benchmark, options)
        p_values.append(p.get(label, math.nan))
    adjusted = holm(p_values)
    return tuple(
        part
        for part, p in zip(compared, adjusted, strict=True)
        if not p <= SIGNIFICANCE_LEVEL
        or reaches_below(estimates[part].get(label, Estimate(math.nan)), constants)
    )


def _pairs_by_part(
    compared: Mapping[str, ComparedStatistic],
    label: str,
    rival: str,
    benchmark: str,
    options: StatisticsOptions,
) -> dict[str, SystemPair]:
    """Pairs of a judge with a rival by part, adjusted over the parts."""
    pairs = {}
    for part, statistic in compared.items():
        pair = compare_pair(statistic, label, rival, benchmark, options)
        if pair:
            pairs[part] = pair
    p_values = holm([pair.result.p for pair in pairs.values()]).tolist()
    return {
        part: replace(pair, adjusted=p)
        for (part, pair), p in zip(pairs.items(), p_values, strict=True)
    }


def _published_runs(run: Run, root: Path) -> list[Run]:
    judges = (
        j
        for j in present(run.benchmark, root)
        if run.records.keys() & {*parts_present(j, root)}
    )
    return [
        run_of(judge, root, (first for first, *_ in run.records_by_sample))
        for judge in judges
    ]
