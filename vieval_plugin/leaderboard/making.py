"""Makes the leaderboards from published logs and submissions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.judges.contests import Judged
from vieval_plugin.leaderboard.board import Board, BoardJudge
from vieval_plugin.leaderboard.printed import compare_printed
from vieval_plugin.leaderboard.sources import Sources, judged_of
from vieval_plugin.leaderboard.submissions import Submission, run_of_submission
from vieval_plugin.leaderboard.views import views_of
from vieval_plugin.records import Run
from vieval_plugin.results.published.files import descriptions
from vieval_plugin.results.published.judges import present, published_baselines, published_judges, run_of
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import plural


def make_boards(
    sources: Sources,
    submissions: Sequence[Submission],
    options: StatisticsOptions,
    on_step: Callable[[str], object] = lambda line: None,
) -> list[Board]:
    """Make the leaderboard of each benchmark of which verdicts were published.

    Args:
        sources: the folders.
        submissions: judges beside the published ones.
        options: number of resamples, the seed.
        on_step: is told in a line what is done.

    Raises:
        VievalError: no logs are there, people's ratings or votes are not, or a log is not the published one.
    """
    return [
        _board(benchmark_registry.benchmark(name), sources, submissions, options, on_step) for name in descriptions()
    ]


def _board(
    benchmark: Benchmark,
    sources: Sources,
    submissions: Sequence[Submission],
    options: StatisticsOptions,
    on_step: Callable[[str], object],
) -> Board:
    judges = present(benchmark.name, sources.published)
    if not judges:
        raise VievalError(
            f"{sources.published}: no published logs of {benchmark.title}; run `vieval prepare published_verdicts`"
        )
    judged = judged_of(benchmark, benchmark.parts, sources)
    on_step(f"{benchmark.title}: reading the logs of {plural(len(judges), 'judge')}")
    runs = [run_of(judge, sources.published, judged) for judge in judges]
    submitted = list(_submitted(benchmark, submissions, judged))
    baselines = []
    for baseline in published_baselines(benchmark.name):
        with suppress(VievalError):  # the published files hold no value of it for what is here
            baselines.append(run_of(baseline, sources.published, judged))
    described = descriptions()[benchmark.name]

    def on_view(number: int, total: int) -> None:
        on_step(f"{benchmark.title}: table {number} of {total}")

    ranked = [*runs, *(run for run, _ in submitted)]
    views, method, leader = views_of(benchmark, described["title"], ranked, baselines, options, on_view)
    published = published_judges(benchmark.name)
    names = {judge.name: judge.title for judge in (*published, *published_baselines(benchmark.name))}
    printed = compare_printed(benchmark, [*runs, *baselines], names, options)
    rows = [
        BoardJudge(j.title, j.name, j.setting, j.version, j.date, described["repository"], j not in judges)
        for j in published
    ]
    missing_parts = tuple(part for part in benchmark.parts if not any(part in run.records for run in runs))
    judge_rows = (*rows, *(row for _, row in submitted))
    texts = described["printed"], method, leader
    return Board(benchmark.name, described["title"], tuple(views), judge_rows, printed, *texts, missing_parts)


def _submitted(
    benchmark: Benchmark, submissions: Sequence[Submission], judged: Sequence[Judged]
) -> Iterator[tuple[Run, BoardJudge]]:
    """The runs of submissions on a benchmark, each under a name of its own."""
    labels = {judge.title for judge in (*published_judges(benchmark.name), *published_baselines(benchmark.name))}
    for submission in submissions:
        for submitted in (run for run in submission.runs if run.benchmark == benchmark.name):
            names = (submission.model, submitted.judge, *submitted.settings, submission.date)
            label = next(name for count in range(1, 9) if (name := " ".join(names[:count])) not in labels or count > 4)
            labels.add(label)
            setting = " ".join(submitted.settings)
            of_submission = submission.model, submission.date, "submitted"
            row = BoardJudge(label, submitted.judge, setting, *of_submission, submitted=True)
            yield run_of_submission(submitted, label, judged), row
