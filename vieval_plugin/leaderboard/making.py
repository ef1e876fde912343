"""Make the leaderboards from published logs and submissions, with the statistics of
`vieval report`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.judges.contests import Judged
from vieval_plugin.leaderboard.board import BenchmarkBoard, View
from vieval_plugin.leaderboard.printed import compare_printed
from vieval_plugin.leaderboard.submissions import Submission, run_of_submission
from vieval_plugin.meta_evaluation.comparison import compare_pair
from vieval_plugin.meta_evaluation.findings import (
    ALL,
    Findings,
    Leaderboard,
    Number,
    RankedStatistic,
)
from vieval_plugin.meta_evaluation.image_models import SOFT
from vieval_plugin.meta_evaluation.leaderboards import MOST_WITH_INTERVALS, leaderboard
from vieval_plugin.records import Run
from vieval_plugin.report.answer import answer
from vieval_plugin.report.words import short_decimal, task_type
from vieval_plugin.results.published.files import descriptions
from vieval_plugin.results.published.judges import (
    PublishedJudge,
    present,
    published_baselines,
    published_judges,
    run_of,
)
from vieval_plugin.stats.decisions import SIGNIFICANCE_LEVEL
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import Policy, StatisticsOptions
from vieval_plugin.stats.ranking import holm
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import plural

POLICIES: Mapping[Policy, str] = {
    "drop": "left out",
    "worst": "the lowest score",
    "as_recorded": "as the authors recorded them",
}
_MOST_LINES = 4

#: The value of each choice by its name, the statistic, where its numbers are, the ranked judges,
#: the options.
_Choice: TypeAlias = tuple[
    Mapping[str, str], RankedStatistic, Findings, Sequence[Run], StatisticsOptions
]


@dataclass(frozen=True)
class Sources:
    """Folders from which leaderboards are made."""

    #: Published verdicts.
    published: Path
    #: Data, which has people's ratings and votes.
    data: Path

    def judged(self, benchmark: Benchmark, parts: Sequence[str]) -> list[Judged]:
        """Load the samples or contests of parts of a benchmark, with their human
        ratings or votes.

        Raises:
            VievalError: they are missing both from the data folder and, without images, from the
                published logs.
        """
        try:
            return [
                judged for part in parts for judged in benchmark.load(self.data, part)
            ]
        except VievalError:
            with suppress(VievalError):
                return [
                    judged
                    for part in parts
                    for judged in benchmark.load(self.published, part)
                ]
            raise


def make_boards(
    sources: Sources,
    submissions: Sequence[Submission],
    options: StatisticsOptions,
    on_step: Callable[[str], object] = lambda line: None,
) -> list[BenchmarkBoard]:
    """Make the leaderboard of each benchmark with published verdicts.

    Args:
        sources: the folders.
        submissions: judges to add to the published ones.
        options: number of resamples, the seed.
        on_step: called with a line on each step.

    Raises:
        VievalError: logs, ratings or votes are missing, or a log is not the published one.
    """
    return [
        _board(
            benchmark_registry.benchmark(name), sources, submissions, options, on_step
        )
        for name in descriptions()
    ]


def _board(
    benchmark: Benchmark,
    sources: Sources,
    submissions: Sequence[Submission],
    options: StatisticsOptions,
    on_step: Callable[[str], object],
) -> BenchmarkBoard:
    judges = _present_judges(benchmark, sources)
    judged = sources.judged(benchmark, list(benchmark.parts))
    on_step(f"{benchmark.title}: reading the logs of {plural(len(judges), 'judge')}")
    runs = [run_of(judge, sources.published, judged) for judge in judges]
    submitted = list(_submitted(benchmark, submissions, judged))
    published = published_judges(benchmark.name)
    baselines = published_baselines(benchmark.name)
    baseline_numbers = list(_runs_with_values(baselines, sources, judged))
    described = descriptions()[benchmark.name]
    submitted_judges = [judge for _, judge in submitted]
    ranked = [*runs, *(run for run, _ in submitted)]
    views = views_of(
        benchmark,
        ranked,
        baseline_numbers,
        options,
        on_step,
    )
    names = {judge.name: judge.title for judge in (*published, *baselines)}
    return BenchmarkBoard(
        benchmark.name,
        described["title"],
        tuple(views),
        {judge.title: judge for judge in (*judges, *submitted_judges)},
        frozenset(judge.title for judge in submitted_judges),
        tuple(judge for judge in published if judge not in judges),
        compare_printed(benchmark, [*runs, *baseline_numbers], names, options),
        described["printed"],
        _unjudged_parts(benchmark, runs),
    )


def _unjudged_parts(benchmark: Benchmark, runs: Sequence[Run]) -> tuple[str, ...]:
    """Parts of a benchmark without any verdicts in the runs."""
    judged_parts = set(chain.from_iterable(run.records for run in runs))
    return tuple(part for part in benchmark.parts if part not in judged_parts)


def _present_judges(benchmark: Benchmark, sources: Sources) -> list[PublishedJudge]:
    """Return the published judges of a benchmark whose logs are on this machine.

    Raises:
        VievalError: there are none.
    """
    judges = present(benchmark.name, sources.published)
    if not judges:
        raise VievalError(
            f"{sources.published}: no published logs of {benchmark.title}; run `vieval "
            "prepare published_verdicts`"
        )
    return judges


def _runs_with_values(
    baselines: Sequence[PublishedJudge], sources: Sources, judged: Sequence[Judged]
) -> Iterator[Run]:
    for baseline in baselines:
        # the published files may lack its values for these samples
        with suppress(VievalError):
            yield run_of(baseline, sources.published, judged)


def _submitted(
    benchmark: Benchmark, submissions: Sequence[Submission], judged: Sequence[Judged]
) -> Iterator[tuple[Run, PublishedJudge]]:
    """Yield the runs of submissions on a benchmark, each with a unique name."""
    published = (
        *published_judges(benchmark.name),
        *published_baselines(benchmark.name),
    )
    labels = {judge.title for judge in published}
    for submission in submissions:
        for submitted in (
            run for run in submission.runs if run.benchmark == benchmark.name
        ):
            source = submitted.provenance
            names = (submission.model, source.judge, *source.settings, submission.date)
            label = next(
                name
                for count in range(1, 9)
                if (name := " ".join(names[:count])) not in labels or count > 4
            )
            labels.add(label)
            judge = PublishedJudge(
                source.judge,
                label,
                benchmark.name,
                source.judge,
                version=submission.model,
                date=submission.date,
                folder="",
            )
            yield run_of_submission(submitted, label, judged), judge


def _soft_estimates(board: Leaderboard, findings: Findings) -> dict[str, Estimate]:
    """Soft accuracy of each system, if the findings have it."""
    soft = (SOFT, board.aspect, board.part, "")
    return {
        n.system: n.estimate
        for n in findings.numbers
        if (n.statistic, n.aspect, n.part, n.breakdown) == soft
    }


def _baseline_numbers(
    numbers: Iterable[Number], baselines: Sequence[Run]
) -> tuple[Number, ...]:
    labels = {run.label for run in baselines}
    return tuple(replace(n, role="baseline") for n in numbers if n.system in labels)


def views_of(
    benchmark: Benchmark,
    judges: Sequence[Run],
    baselines: Sequence[Run],
    options: StatisticsOptions,
    on_step: Callable[[str], object] = lambda line: None,
) -> list[View]:
    """Make a leaderboard for each choice, the default first.

    Args:
        benchmark: with the statistics of its report.
        judges: the runs to rank, with different labels.
        baselines: runs to show with the judges.
        options: number of resamples, the seed.
        on_step: called with a line on each table.
    """
    views = list[View]()
    title = descriptions().get(benchmark.name, {}).get("title", benchmark.title)
    choices = list(_choices(benchmark, judges, baselines, options))
    default = list(choices[0][0].values())[1:] if choices else []
    for choice, statistic, findings, runs, varied in choices:
        is_default = list(choice.values())[1:] == default
        numbers = [n for n in findings.numbers if statistic.has(n)]
        labels = [run.label for run in runs]
        ranked_count = sum(n.system in labels for n in numbers)
        board = leaderboard(
            statistic,
            findings,
            benchmark.name,
            runs,
            varied,
            intervals=is_default and ranked_count <= MOST_WITH_INTERVALS,
            against=f"annotators on {title}",
            systems=labels,
        )
        lines = answer(board).lines[:_MOST_LINES]
        lines += () if views else tuple(_better_elsewhere(statistic, board, varied))
        views.append(
            View(
                choice,
                board,
                _baseline_numbers(numbers, baselines),
                lines,
                _soft_estimates(board, findings) if is_default else {},
                is_default,
            )
        )
        on_step(f"{benchmark.title}: table {len(views)} of {len(choices)}")
    return views


def _better_elsewhere(
    statistic: RankedStatistic, board: Leaderboard, options: StatisticsOptions
) -> Iterator[str]:
    """Yield a sentence for each part on which another ranked judge is better than the
    leader; p is adjusted over all parts and judges.
    """
    systems = [number.system for number in board.ranked]
    leader, *rivals = systems or [""]
    statistic_in = statistic.statistic_in_part
    if not statistic_in:
        return
    compared = {
        part: statistic_in(part, options)
        for part in board.breakdowns.get(statistic.parts, {})
    }
    tests = [
        (part, pair)
        for part, part_statistic in compared.items()
        for rival in rivals
        if (
            pair := compare_pair(
                part_statistic, rival, leader, board.benchmark, options, intervals=False
            )
        )
    ]
    adjusted = holm([pair.result.p for _, pair in tests])
    for (part, pair), p in zip(tests, adjusted, strict=True):
        if p <= SIGNIFICANCE_LEVEL and pair.result.difference.value > 0:
            yield (
                f"{pair.first} is better than {leader} on {task_type(part)} "
                f"({short_decimal(pair.result.first)} to {short_decimal(pair.result.second)} "
                f"on the {pair.n:,} {board.unit} that both scored)."
            )


def _choices(
    benchmark: Benchmark,
    judges: Sequence[Run],
    baselines: Sequence[Run],
    options: StatisticsOptions,
) -> Iterator[_Choice]:
    """Yield a choice for each statistic and part of votes; for ratings, for each
    failure policy, aspect and setting of judges.

    With votes, a missing answer is wrong under every policy.
    """
    parts = tuple(benchmark.parts)
    all_runs = [*judges, *baselines]
    findings = benchmark.report.findings(
        benchmark.name,
        parts,
        all_runs,
        options,
    )
    if any(statistic.choice for statistic in findings.ranked):
        for statistic in (s for s in findings.ranked if s.choice):
            choice = {"part": statistic.value or ALL, **statistic.choice}
            yield (
                choice,
                statistic,
                findings,
                judges,
                options,
            )
        return
    settings = {ALL: judges}
    for setting in dict.fromkeys(run.setting for run in judges):
        settings[setting] = [run for run in judges if run.setting == setting]
    for policy in POLICIES:
        varied = replace(options, policy=policy)
        policy_findings = (
            findings
            if policy == options.policy
            else benchmark.report.findings(benchmark.name, parts, all_runs, varied)
        )
        for statistic in (s for s in policy_findings.ranked if s.is_headline):
            for setting, setting_rows in settings.items():
                if len(setting_rows) > 1 or setting == ALL:
                    choice = {
                        "aspect": statistic.aspect,
                        "failures": policy,
                        "setting": setting,
                    }
                    yield choice, statistic, policy_findings, setting_rows, varied
