"""Makes the leaderboards from published logs and submissions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.contests import Judged
from vieval_plugin.leaderboard.board import Board, BoardJudge
from vieval_plugin.leaderboard.printed import compare_printed
from vieval_plugin.leaderboard.views import leader_of, views_of
from vieval_plugin.published.files import descriptions
from vieval_plugin.published.judges import PublishedJudge, present, published_baselines, published_judges, run_of
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions


@dataclass(frozen=True)
class Sources:
    """Folders that leaderboards are made from: published verdicts, the data folder with people's ratings and votes.

    A benchmark without data there is read from the published logs where these hold people's votes.
    """

    published: Path
    data: Path


def make_boards(
    sources: Sources, options: StatisticsOptions, on_step: Callable[[str], object] = lambda line: None
) -> list[Board]:
    """Make the leaderboard of each benchmark of which verdicts were published.

    Args:
        sources: the folders.
        options: number of resamples, the seed.
        on_step: is told in a line what is done.

    Raises:
        VievalError: no logs are there, people's ratings or votes are not, or a log is not the published one.
    """
    return [_board(benchmark_registry.benchmark(name), sources, options, on_step) for name in descriptions()]


def _board(
    benchmark: Benchmark, sources: Sources, options: StatisticsOptions, on_step: Callable[[str], object]
) -> Board:
    judges = present(benchmark.name, sources.published)
    if not judges:
        raise VievalError(
            f"{sources.published}: no published logs of {benchmark.title}; run `vieval prepare published_verdicts`"
        )
    judged = judged_of(benchmark, sources)
    on_step(f"{benchmark.title}: reading the logs of {len(judges)} judges")
    runs = [run_of(judge, sources.published, judged) for judge in judges]
    baselines = _baselines(benchmark, sources.published, judged)
    made: list[int] = []
    views, method = views_of(
        benchmark, runs, baselines, options, lambda: (made.append(1), on_step(f"{benchmark.title}: table {len(made)}"))
    )
    names = (*published_judges(benchmark.name), *published_baselines(benchmark.name))
    printed = compare_printed(benchmark, [*runs, *baselines], {judge.name: judge.title for judge in names}, options)
    described = descriptions()[benchmark.name]
    return Board(
        benchmark.name,
        described["title"],
        tuple(views),
        tuple(_judge(judge, judge in judges) for judge in published_judges(benchmark.name)),
        printed,
        described["printed"],
        method,
        leader_of(views[0]),
    )


def judged_of(benchmark: Benchmark, sources: Sources) -> list[Judged]:
    """The samples or contests of a benchmark, with what people said of them.

    Raises:
        VievalError: they are neither in the data folder nor, without images, in the published logs.
    """
    try:
        return [judged for part in benchmark.parts for judged in benchmark.load(sources.data, part)]
    except VievalError:
        try:
            return [judged for part in benchmark.parts for judged in benchmark.load(sources.published, part)]
        except VievalError:
            pass
        raise


def _baselines(benchmark: Benchmark, published: Path, judged: Sequence[Judged]) -> list[Run]:
    """The runs of baselines of which there is a value."""
    runs = []
    for baseline in published_baselines(benchmark.name):
        try:
            runs.append(run_of(baseline, published, judged))
        except VievalError:  # the published files hold no value of it for what is here
            continue
    return runs


def _judge(judge: PublishedJudge, is_present: bool) -> BoardJudge:
    source = descriptions()[judge.benchmark]["repository"]
    return BoardJudge(judge.title, judge.name, judge.setting, judge.version, judge.date, source, not is_present)
