"""Judges compared, for a terminal and as files: the output of `vieval compare`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.media.files import write_whole
from vieval_plugin.meta_evaluation.comparison import LEVEL
from vieval_plugin.meta_evaluation.findings import Leaderboard, benchmark_title
from vieval_plugin.meta_evaluation.leaderboards import leaderboard
from vieval_plugin.records import OWN, YOUR_IMAGES, Run
from vieval_plugin.report.answer import Answer, answer
from vieval_plugin.report.files import finding_texts, numbers_of
from vieval_plugin.report.own_samples import against, benchmarks_with_runs, is_rated
from vieval_plugin.report.same_scores import same_scores
from vieval_plugin.report.tables import leaderboard_lines, leaderboard_table, mark_notes, pairs_table
from vieval_plugin.results.runs import Results
from vieval_plugin.stats.comparison import PERMUTATIONS
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.tables import text_table
from vieval_plugin.text.wording import enumeration

_ELSEWHERE = "--out FOLDER has them"


@dataclass(frozen=True, eq=False)
class BenchmarkComparison:
    """A benchmark's judges, compared on each of its statistics; none where nothing of it compares judges."""

    #: Name of the benchmark.
    benchmark: str
    #: Labels of the judges.
    judges: tuple[str, ...]
    #: Leaderboards, the default first.
    boards: tuple[Leaderboard, ...] = ()
    #: Sentences on judges that gave the same score to every sample.
    score_notes: tuple[str, ...] = ()


def compare_results(results: Results, options: StatisticsOptions) -> list[BenchmarkComparison]:
    """The judges of results, compared on each benchmark for itself.

    Args:
        results: what runs left behind.
        options: what failed verdicts and ratings not given are, how many draws, the seed.

    Raises:
        VievalError: for results whose benchmark is not known.
    """
    return [_compared(benchmark, runs, options) for benchmark, runs in benchmarks_with_runs(results.runs)]


def _compared(benchmark: Benchmark, runs: Sequence[Run], options: StatisticsOptions) -> BenchmarkComparison:
    judges = tuple(run.label for run in runs)
    if len(runs) < 2 or (benchmark.name == OWN and not is_rated(runs)):
        return BenchmarkComparison(benchmark.name, judges)
    findings = benchmark.report.findings(benchmark.name, tuple(benchmark.parts), runs, options)
    boards = tuple(
        leaderboard(statistic, findings, benchmark.name, runs, options, against=against(benchmark))
        for statistic in findings.ranked
        if statistic.judge is None
    )
    return BenchmarkComparison(benchmark.name, judges, boards, tuple(same_scores(runs)))


def answers(comparisons: Sequence[BenchmarkComparison]) -> list[Answer]:
    """The answer of each benchmark, by its first leaderboard."""
    return [answer(of_benchmark.boards[0]) for of_benchmark in comparisons if of_benchmark.boards]


def lines(comparisons: Sequence[BenchmarkComparison], options: StatisticsOptions) -> list[str]:
    """Lines for a terminal: a ranking and a table of pairs for each statistic, and how to read them."""
    text: list[str] = []
    for of_benchmark in comparisons:
        title = benchmark_title(of_benchmark.benchmark)
        text += [_why_not(of_benchmark)] if not of_benchmark.boards else [*_overall(of_benchmark), ""]
        for number, board in enumerate(of_benchmark.boards):
            text += _lines(board, answered=number == 0)
        text += [f"note: {line}" for line in mark_notes(of_benchmark.boards)]
        text += [line for sentence in of_benchmark.score_notes for line in (f"{title}: {sentence}", "")]
    tested = any(board.comparison.pairs for of_benchmark in comparisons for board in of_benchmark.boards)
    return [*text, *([protocol(options)] if tested else [])]


def _why_not(of_benchmark: BenchmarkComparison) -> str:
    """The reason why judges of a benchmark are not compared; empty where they are."""
    if of_benchmark.boards:
        return ""
    title = benchmark_title(of_benchmark.benchmark)
    if len(of_benchmark.judges) < 2:
        return f"{title}: two judges are needed, and the only one is {of_benchmark.judges[0]}"
    if of_benchmark.benchmark == OWN:
        return (
            f"{YOUR_IMAGES}: nobody rated them, so no judge can be shown to be better; `vieval rank` compares the "
            "generators, and `vieval label` makes a page to rate some images"
        )
    return f"{title}: none of its statistics has a test of two judges"


def _overall(of_benchmark: BenchmarkComparison) -> list[str]:
    """The answer by the first leaderboard, and the judges that it lacks."""
    first = of_benchmark.boards[0]
    lacking = [judge for judge in of_benchmark.judges if judge not in {n.system for n in first.numbers}]
    have = "has" if len(lacking) == 1 else "have"
    text = [f"{enumeration(lacking)} {have} no {first.aspect}: see the other aspects below."] if lacking else []
    return [*answer(first).lines, *text]


def protocol(options: StatisticsOptions) -> str:
    """Protocol of the numbers, in a paragraph."""
    missing = f" Missing ratings: {options.missing_ratings}." if options.missing_ratings != "drop" else ""
    return (
        f"Failed verdicts: {options.policy}; of a contest a missing answer is wrong.{missing} Each two judges are compared on "
        f"what both scored. Intervals: 95%, of a difference of accuracies those of its test, else {options.draws} bootstrap "
        f"resamples of groups, the same for both. p: permutation test, at most {PERMUTATIONS:,} permutations, in which whole "
        "groups change sides. p (Holm): adjusted for the family, which is all pairs of ranked judges of one table; pairs with "
        "an unranked judge are a second family. A rank such as 2-4 is the range that differences with an adjusted "
        f"p of at most {LEVEL} leave. Seed {options.seed}."
    )


def write_comparison(comparisons: Sequence[BenchmarkComparison], folder: Path, options: StatisticsOptions) -> None:
    """Write `files.FINDING_FILES` to a folder."""
    boards = [board for of_benchmark in comparisons for board in of_benchmark.boards]
    numbers = [*numbers_of(boards), *((board.benchmark, n) for board in boards for n in board.references)]
    notes = [note for one in comparisons for note in (_why_not(one), *one.score_notes) if note]
    for name, text in finding_texts(numbers, boards, answers(comparisons), options, notes).items():
        write_whole(folder / name, [text])


def _lines(board: Leaderboard, answered: bool) -> list[str]:
    """A leaderboard and its pairs, headed by its answer where that was not said before."""
    title = f"{benchmark_title(board.benchmark)}, {board.title}"
    if not board.comparison.all_pairs:
        return [f"{title}: {board.comparison.reason}", ""]
    table, pairs = leaderboard_table(board), pairs_table(board)
    notes = (*board.comparison.compared.notes, *(note for pair in board.comparison.all_pairs for note in pair.notes))
    return [
        f"{title}; {board.comparison.family}{'' if answered else f': {answer(board).title}'}",
        "",
        *leaderboard_lines(board, table, _ELSEWHERE),
        "",
        *text_table([pairs.header, *pairs.rows], _ELSEWHERE),
        *(f"note: {line}" for line in dict.fromkeys(notes)),
        "",
    ]
