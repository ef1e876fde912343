"""Tables of a leaderboard for every choice of its readers, by the statistics that `vieval report` uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.leaderboard.board import ALL_PARTS, BASELINE, JUDGE, REFERENCE, BoardRow, BoardView
from vieval_plugin.meta_evaluation.comparison import LEVEL
from vieval_plugin.meta_evaluation.findings import Findings, Leaderboard, Number, RankedStatistic
from vieval_plugin.meta_evaluation.leaderboards import MOST_WITH_INTERVALS, leaderboard
from vieval_plugin.records import Run
from vieval_plugin.report.answer import answer
from vieval_plugin.report.tables import marks_of, rank_text
from vieval_plugin.report.words import reason_words
from vieval_plugin.stats.comparison import PERMUTATIONS
from vieval_plugin.stats.options import Policy, StatisticsOptions
from vieval_plugin.text.wording import nan_to_none

POLICIES: Mapping[Policy, str] = {
    "drop": "left out",
    "worst": "the lowest score",
    "as_recorded": "as the authors recorded them",
}
_MOST_FINDINGS = 4


@dataclass(frozen=True, eq=False)
class _Choice:
    """A statistic under a choice, with all that was found and the labels of judges among it."""

    #: Value of each choice by its name.
    choice: Mapping[str, str]
    #: Part that it is of, or `all`.
    part: str
    #: The statistic.
    statistic: RankedStatistic
    #: Where its numbers are.
    findings: Findings
    #: The judges that are ranked.
    judges: Sequence[Run]
    #: Labels of those that stand beside them.
    baselines: Sequence[str]
    #: Options of the statistics.
    options: StatisticsOptions


def views_of(
    benchmark: Benchmark,
    title: str,
    judges: Sequence[Run],
    baselines: Sequence[Run],
    options: StatisticsOptions,
    on_view: Callable[[int, int], object] = lambda number, total: None,
) -> tuple[list[BoardView], str]:
    """Make a table for each choice, the default first, and say how ranks come about.

    Args:
        benchmark: whose report has the statistics.
        title: what sentences call it.
        judges: the runs that are ranked, labels all different.
        baselines: runs that stand beside them.
        options: number of resamples, the seed.
        on_view: is told the number of each table that is made, and how many there will be.
    """
    views, method = list[BoardView](), ""
    choices = list(_choices(benchmark, judges, baselines, options))
    for choice in choices:
        labels = [run.label for run in choice.judges]
        numbers = sum(choice.statistic.has(n) and n.system in labels for n in choice.findings.numbers)
        board = leaderboard(
            *(choice.statistic, choice.findings, benchmark.name, choice.judges, choice.options),
            intervals=numbers <= MOST_WITH_INTERVALS,
            against=f"annotators on {title}",
            systems=labels,
        )
        method = method or _method(board)
        views.append(_view(choice, board))
        on_view(len(views), len(choices))
    return views, method


def _method(board: Leaderboard) -> str:
    compared = board.comparison.compared
    return (
        f"Each two {compared.entrants} are compared on the {compared.unit} that both scored, by paired permutation tests of at "
        f"most {PERMUTATIONS:,} permutations; p is adjusted ({board.comparison.family}). A rank such as 2-4 is the range that "
        f"significant differences (p at most {LEVEL}) leave. {compared.entrants.capitalize()} are ranked if they scored at "
        f"least half of the {compared.unit} and every part."
    )


def leader_of(view: BoardView) -> str:
    """The leaders of a table, in words that follow the name of the benchmark."""
    ranked = [row for row in view.rows if row.rank]
    if not ranked:
        return "no judge is ranked"
    first = [row.label for row in ranked if row.rank.startswith("1")]
    if ranked[0].rank == "1":
        return f"{ranked[0].label} is the best published judge"
    names = " and ".join(first) if len(first) < 3 else f"{', '.join(first[:2])} and {len(first) - 2} others"
    return f"{names} cannot be told apart at the top"


def _choices(
    benchmark: Benchmark, judges: Sequence[Run], baselines: Sequence[Run], options: StatisticsOptions
) -> Iterator[_Choice]:
    """A choice for each statistic and part of votes; of ratings for each failure policy, aspect and setting of judges.

    Of votes a missing answer is wrong under every policy.
    """
    parts, labels = tuple(benchmark.parts), [run.label for run in baselines]
    findings = benchmark.report.findings(benchmark.name, parts, [*judges, *baselines], options)
    of_ties = [statistic for statistic in findings.ranked if statistic.choice]
    if of_ties:
        for part in (ALL_PARTS, *parts):
            chosen = parts if part == ALL_PARTS else (part,)
            runs, of_baselines = (
                [r for run in side if (r := _restricted(run, chosen)).records] for side in (judges, baselines)
            )
            of_part = benchmark.report.findings(benchmark.name, chosen, [*runs, *of_baselines], options)
            for statistic in (s for s in of_part.ranked if s.choice):
                yield _Choice({"part": part, **statistic.choice}, part, statistic, of_part, runs, labels, options)
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
                    yield _Choice(choice, ALL_PARTS, statistic, found, of_setting, labels, varied)


def _restricted(run: Run, parts: Sequence[str]) -> Run:
    return replace(run, records={part: run.records[part] for part in parts if part in run.records})


def _view(choice: _Choice, board: Leaderboard) -> BoardView:
    numbers = (n for n in choice.findings.numbers if choice.statistic.has(n) and n.system in choice.baselines)
    further = [_row(n, BASELINE) for n in numbers] + [_row(reference, REFERENCE) for reference in board.references]
    defined = [row for row in further if row.value is not None]
    return BoardView(
        choice.choice,
        board.title,
        choice.part,
        board.aspect,
        answer(board).lines[:_MOST_FINDINGS],
        (*(_judge_row(board, n) for n in board.numbers), *sorted(defined, key=lambda row: -(row.value or 0.0))),
        board.comparison.separated,
    )


def _judge_row(board: Leaderboard, number: Number) -> BoardRow:
    unranked = f"not ranked: {reason_words(number.unranked)}" if number.unranked else ""
    notes = (unranked, *marks_of(board, number.system), board.costs[number.system].warning)
    return replace(_row(number, JUDGE), rank=rank_text(number.ranks), notes=tuple(filter(None, notes)))


def _row(number: Number, kind: str) -> BoardRow:
    estimate = number.estimate
    value, low, high = (nan_to_none(float(end)) for end in (estimate.value, estimate.low, estimate.high))
    notes = (f"on {estimate.coverage}",) if estimate.defined and str(estimate.coverage) else ()
    return BoardRow(number.system, kind, "", value, low, high, estimate.n, notes)
