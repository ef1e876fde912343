"""Tables of a leaderboard for every choice of its readers, by the statistics that `vieval report` uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.card.card import number_of
from vieval_plugin.leaderboard.board import ALL_PARTS, BASELINE, JUDGE, REFERENCE, BoardRow, BoardView
from vieval_plugin.meta_evaluation.comparison import LEVEL, SystemPair, among, compare_systems
from vieval_plugin.meta_evaluation.findings import Findings, Leaderboard, Number, RankedStatistic
from vieval_plugin.meta_evaluation.image_models import SOFT
from vieval_plugin.meta_evaluation.leaderboards import MOST_WITH_INTERVALS, leaderboard
from vieval_plugin.records import Run
from vieval_plugin.report.answer import answer
from vieval_plugin.report.tables import failures_of, marks_of, rank_text
from vieval_plugin.report.words import number_word, reason_words, short_decimal, task_type
from vieval_plugin.stats.comparison import PERMUTATIONS
from vieval_plugin.stats.options import Policy, StatisticsOptions
from vieval_plugin.stats.ranking import holm
from vieval_plugin.text.wording import enumeration

POLICIES: Mapping[Policy, str] = {
    "drop": "left out",
    "worst": "the lowest score",
    "as_recorded": "as the authors recorded them",
}
_MOST_FINDINGS = 4

_Choice: TypeAlias = tuple[Mapping[str, str], str, RankedStatistic, Findings, Sequence[Run], StatisticsOptions]
"""The value of each choice by its name, the part, the statistic, where its numbers are, the ranked judges, the options."""


def views_of(
    benchmark: Benchmark,
    title: str,
    judges: Sequence[Run],
    baselines: Sequence[Run],
    options: StatisticsOptions,
    on_view: Callable[[int, int], object] = lambda number, total: None,
) -> tuple[list[BoardView], str, str]:
    """Make a table for each choice, the default first, and say how ranks come about and who leads.

    Args:
        benchmark: whose report has the statistics.
        title: what sentences call it.
        judges: the runs that are ranked, labels all different.
        baselines: runs that stand beside them.
        options: number of resamples, the seed.
        on_view: is told the number of each table that is made, and how many there will be.
    """
    views, method, leader = list[BoardView](), "", ""
    choices = list(_choices(benchmark, judges, baselines, options))
    default = list(choices[0][0].values())[1:] if choices else []
    for choice, part, statistic, findings, runs, varied in choices:
        labels = [run.label for run in runs]
        intervals = sum(statistic.has(n) and n.system in labels for n in findings.numbers) <= MOST_WITH_INTERVALS
        against = f"annotators on {title}"
        board = leaderboard(
            *(statistic, findings, benchmark.name, runs, varied), intervals=intervals, against=against, systems=labels
        )
        lines = answer(board).lines[:_MOST_FINDINGS]
        if not views:
            method, leader = _method(board), leader_of(board)
            lines += tuple(_better_elsewhere(statistic, board, varied))
        details = findings if list(choice.values())[1:] == default else None
        beside = [n for n in findings.numbers if statistic.has(n) and n.system in [run.label for run in baselines]]
        further = [_row(n, BASELINE) for n in beside] + [_row(reference, REFERENCE) for reference in board.references]
        defined = sorted((row for row in further if row.value is not None), key=lambda row: -(row.value or 0.0))
        rows = (*(_judge_row(board, n, details) for n in board.numbers), *defined)
        separated = board.comparison.separated
        views.append(BoardView(choice, board.title, part, board.aspect, lines, rows, separated))
        on_view(len(views), len(choices))
    return views, method, leader


def _method(board: Leaderboard) -> str:
    compared = board.comparison.compared
    return (
        f"Each two {compared.entrants} are compared on the {compared.unit} that both scored, by paired permutation tests of at "
        f"most {PERMUTATIONS:,} permutations; p is adjusted ({board.comparison.family}). A rank such as 2-4 is the range that "
        f"significant differences (p at most {LEVEL}) leave. {compared.entrants.capitalize()} are ranked if they scored at "
        f"least half of the {compared.unit} and every part."
    )


def leader_of(board: Leaderboard) -> str:
    """The leaders, and whether any judge agrees with people as people do, in words that follow the benchmark's name."""
    first = [n.system for n in board.ranked if n.ranks and n.ranks[0] == 1]
    if not first:
        return "no judge is ranked"
    names = enumeration(first) if len(first) < 3 else f"{', '.join(first[:2])} and {len(first) - 2} others"
    beside = [board.ceiling(n.system) if board.ceiling else None for n in board.defined]
    if all(ceiling and ceiling.position == "below" for ceiling in beside):
        count = f"none of the {number_word(len(beside))} judges" if len(beside) > 1 else "the one judge"
        do = "agrees with people as well as people do" if len(beside) > 1 else "agrees with people less than people do"
        return f"{count} recomputed here {do}; {names} {'come' if first[1:] else 'comes'} closest"
    return f"{names} cannot be told apart at the top" if first[1:] else f"{names} is the best published judge"


def _better_elsewhere(statistic: RankedStatistic, board: Leaderboard, options: StatisticsOptions) -> Iterator[str]:
    """A sentence for each part on which another ranked judge is better than the leader; p is adjusted over all of these."""
    leader, *others = [number.system for number in board.ranked] or [""]
    pairs: list[tuple[str, SystemPair]] = []
    for part in board.breakdowns.get(statistic.parts, {}):
        if statistic.of_part is None:
            return
        compared = statistic.of_part(part, options)
        for other in others:
            two = compare_systems(among(compared, [leader, other]), board.benchmark, options, intervals=False)
            pairs += [(part, pair.better_first()) for pair in two.all_pairs]
    adjusted = holm([pair.result.p for _, pair in pairs])
    for (part, pair), p in zip(pairs, adjusted, strict=True):
        if p <= LEVEL and pair.first != leader:
            own = board.breakdowns[statistic.parts][part]
            values = " to ".join(short_decimal(own[system].value) for system in (pair.first, leader))
            yield f"{pair.first} is better than {leader} on {task_type(part)} ({values})."


def _choices(
    benchmark: Benchmark, judges: Sequence[Run], baselines: Sequence[Run], options: StatisticsOptions
) -> Iterator[_Choice]:
    """A choice for each statistic and part of votes; of ratings for each failure policy, aspect and setting of judges.

    Of votes a missing answer is wrong under every policy.
    """
    parts = tuple(benchmark.parts)
    findings = benchmark.report.findings(benchmark.name, parts, [*judges, *baselines], options)
    of_ties = [statistic for statistic in findings.ranked if statistic.choice]
    for statistic in of_ties:
        part = statistic.value or ALL_PARTS
        runs = [run for run in judges if part in (ALL_PARTS, *run.records)]
        yield {"part": part, **statistic.choice}, part, statistic, findings, runs, options
    if of_ties:
        return
    settings = {ALL_PARTS: judges}
    for setting in dict.fromkeys(run.setting for run in judges):
        settings[setting] = [run for run in judges if run.setting == setting]
    for policy in POLICIES:
        varied = replace(options, policy=policy)
        found = benchmark.report.findings(benchmark.name, parts, [*judges, *baselines], varied)
        for statistic in (s for s in found.ranked if s.is_headline):
            for setting, of_setting in settings.items():
                if len(of_setting) > 1 or setting == ALL_PARTS:
                    choice = {"aspect": statistic.aspect, "failures": policy, "setting": setting}
                    yield choice, ALL_PARTS, statistic, found, of_setting, varied


def _judge_row(board: Leaderboard, number: Number, details: Findings | None) -> BoardRow:
    """The row of a judge, with what it opens to where findings have it."""
    system, unranked = number.system, f"not ranked: {reason_words(number.unranked)}" if number.unranked else ""
    notes = tuple(filter(None, (unranked, *marks_of(board, system), board.costs[system].warning)))
    row = replace(_row(number, JUDGE), rank=rank_text(number.ranks), notes=notes)
    if details is None:
        return row
    by_value = next(iter(board.breakdowns.values()), {})
    numbers = {value: number_of(by_system[system]) for value, by_system in by_value.items() if system in by_system}
    place = (SOFT, system, board.aspect, board.part, "")
    soft = (n for n in details.numbers if (n.statistic, n.system, n.aspect, n.part, n.breakdown) == place)
    generators = next((number_of(n.estimate) for n in soft), None)
    return replace(row, by_value=numbers, generators=generators, failures=failures_of(board.costs[system]))


def _row(number: Number, kind: str) -> BoardRow:
    own = number_of(number.estimate)
    notes = (own.rests_on,) if own.rests_on else ()
    return BoardRow(number.system, kind, "", own.value, own.low, own.high, own.n, notes)
