"""Makes the leaderboards from published logs and submissions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.contests import Judged
from vieval_plugin.leaderboard.board import Board, BoardJudge
from vieval_plugin.leaderboard.printed import compare_printed
from vieval_plugin.leaderboard.sources import Sources, judged_of
from vieval_plugin.leaderboard.submissions import Submission, run_of_submission
from vieval_plugin.leaderboard.views import leader_of, views_of
from vieval_plugin.published.files import descriptions
from vieval_plugin.published.judges import PublishedJudge, present, published_baselines, published_judges, run_of
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions
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
    baselines = _baselines(benchmark, sources.published, judged)
    described = descriptions()[benchmark.name]
    views, method = views_of(
        benchmark,
        described["title"],
        [*runs, *(run for run, _ in submitted)],
        baselines,
        options,
        lambda number, total: on_step(f"{benchmark.title}: table {number} of {total}"),
    )
    names = (*published_judges(benchmark.name), *published_baselines(benchmark.name))
    printed = compare_printed(benchmark, [*runs, *baselines], {judge.name: judge.title for judge in names}, options)
    return Board(
        benchmark.name,
        described["title"],
        tuple(views),
        (*(_judge(j, j in judges) for j in published_judges(benchmark.name)), *(row for _, row in submitted)),
        printed,
        described["printed"],
        method,
        leader_of(views[0]),
        tuple(part for part in benchmark.parts if not any(part in run.records for run in runs)),
    )


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
            row = BoardJudge(
                label, submitted.judge, setting, submission.model, submission.date, "submitted", submitted=True
            )
            yield run_of_submission(submitted, label, judged), row


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
