"""Tables of a leaderboard for every choice of its readers, by the statistics that `vieval report` uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.leaderboard.board import ALL_PARTS, BASELINE, JUDGE, REFERENCE, BoardRow, BoardView
from vieval_plugin.meta_evaluation.comparison import CommonSamplesStatistic, ComparedStatistic
from vieval_plugin.meta_evaluation.headline import Headline
from vieval_plugin.meta_evaluation.vote_answers import TIE_HANDLINGS
from vieval_plugin.meta_evaluation.votes import ByVotes
from vieval_plugin.records import Run
from vieval_plugin.report.headlines.leaderboards import Leaderboard, LeaderboardRow, leaderboards
from vieval_plugin.report.headlines.sentences import sentences
from vieval_plugin.report.headlines.words import reason_words
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import Policy, StatisticsOptions
from vieval_plugin.text.wording import nan_to_none

POLICIES: Mapping[Policy, str] = {
    "drop": "left out",
    "worst": "the lowest score",
    "as_recorded": "as the authors recorded them",
}
_MOST_FINDINGS = 4


@dataclass(frozen=True)
class _Choice:
    """A headline under a choice, with the runs of judges on its part, and the labels of baselines."""

    choice: Mapping[str, str]
    part: str
    headline: Headline
    judges: Sequence[Run]
    baselines: Sequence[str]
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
    choices_of = _by_votes if isinstance(benchmark.report, ByVotes) else _by_ratings
    views, method = list[BoardView](), ""
    choices = list(choices_of(benchmark, judges, baselines, options))
    for choice in choices:
        [board] = leaderboards([_of_judges(choice)], benchmark.name, choice.judges, choice.options, {})
        method = method or board.method
        views.append(_view(choice, replace(board, against=board.against.replace(benchmark.name, title))))
        on_view(len(views), len(choices))
    return views, method


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


def _by_ratings(
    benchmark: Benchmark, judges: Sequence[Run], baselines: Sequence[Run], options: StatisticsOptions
) -> Iterator[_Choice]:
    """A choice for each failure policy, aspect and setting of judges."""
    settings = {ALL_PARTS: judges}
    for setting in dict.fromkeys(run.setting for run in judges):
        settings[setting] = [run for run in judges if run.setting == setting]
    parts = tuple(benchmark.parts)
    for policy in POLICIES:
        varied = replace(options, policy=policy)
        tables = benchmark.report.tables(benchmark.name, parts, [*judges, *baselines], varied)
        for headline in tables.headlines:
            for setting, of_setting in settings.items():
                if len(of_setting) > 1 or setting == ALL_PARTS:
                    choice = {"aspect": headline.aspect, "failures": policy, "setting": setting}
                    yield _Choice(choice, ALL_PARTS, headline, of_setting, [run.label for run in baselines], varied)


def _by_votes(
    benchmark: Benchmark, judges: Sequence[Run], baselines: Sequence[Run], options: StatisticsOptions
) -> Iterator[_Choice]:
    """A choice for each way to count ties and each part; a missing answer is wrong under every policy for failures."""
    report = benchmark.report
    assert isinstance(report, ByVotes)
    for tie_handling in TIE_HANDLINGS[report.scheme]:
        for part in (ALL_PARTS, *benchmark.parts):
            parts = tuple(benchmark.parts) if part == ALL_PARTS else (part,)
            of_judges, baseline_runs = (
                [run for run in (_restricted(run, parts) for run in runs) if run.records]
                for runs in (judges, baselines)
            )
            counting = replace(report, tie_handling=tie_handling)
            for headline in counting.tables(benchmark.name, parts, [*of_judges, *baseline_runs], options).headlines:
                yield _Choice(
                    {"part": part, "ties": tie_handling},
                    part,
                    headline,
                    of_judges,
                    [run.label for run in baseline_runs],
                    options,
                )


def _restricted(run: Run, parts: Sequence[str]) -> Run:
    return replace(run, records={part: run.records[part] for part in parts if part in run.records})


def _of_judges(choice: _Choice) -> Headline:
    """The headline of a choice without what is no judge of it; no number depends on what is left out."""
    headline, labels = choice.headline, [run.label for run in choice.judges]

    def compared(options: StatisticsOptions) -> ComparedStatistic:
        return _among(headline.compared(options), labels)

    estimates = {label: headline.estimates[label] for label in labels if label in headline.estimates}
    return replace(headline, estimates=estimates, compared=compared)


def _among(compared: ComparedStatistic, labels: Sequence[str]) -> ComparedStatistic:
    """A statistic of some of its systems."""
    indices = [index for index, system in enumerate(compared.systems) if system.label in labels]
    above_constant = compared.above_constant

    def pair(first: int, second: int) -> CommonSamplesStatistic:
        return compared.pair(indices[first], indices[second])

    return replace(
        compared,
        systems=tuple(compared.systems[index] for index in indices),
        pair=pair,
        above_constant=above_constant and (lambda index, seed: above_constant(indices[index], seed)),
    )


def _view(choice: _Choice, board: Leaderboard) -> BoardView:
    headline = choice.headline
    baselines = [
        _row(label, BASELINE, headline.estimates[label]) for label in choice.baselines if label in headline.estimates
    ]
    references = [_row(label, REFERENCE, estimate) for label, estimate in headline.references.items()]
    further = [row for row in (*baselines, *references) if row.value is not None]
    return BoardView(
        choice.choice,
        headline.title.replace("kinds", "task types"),
        choice.part,
        headline.aspect,
        tuple(sentences(board)[:_MOST_FINDINGS]),
        (*map(_judge_row, board.rows), *sorted(further, key=lambda row: -(row.value or 0.0))),
        board.separated,
    )


def _judge_row(row: LeaderboardRow) -> BoardRow:
    unranked = f"not ranked: {reason_words(row.unranked)}" if row.unranked else ""
    notes = tuple(filter(None, (unranked, *row.marks, row.warning)))
    return replace(_row(row.label, JUDGE, row.estimate), rank=row.rank, notes=notes)


def _row(label: str, kind: str, estimate: Estimate) -> BoardRow:
    value, low, high = (nan_to_none(float(end)) for end in (estimate.value, estimate.low, estimate.high))
    notes = (f"on {estimate.coverage}",) if estimate.defined and str(estimate.coverage) else ()
    return BoardRow(label, kind, "", value, low, high, estimate.n, notes)
