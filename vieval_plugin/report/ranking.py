"""Rankings of generators, printed and written: the output of `vieval rank`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from vieval_plugin.judges.protocol import Sample
from vieval_plugin.media.files import write_whole
from vieval_plugin.meta_evaluation.comparison import LEVEL, Comparison
from vieval_plugin.meta_evaluation.contest_ranking import ContestRanking, rank_contests
from vieval_plugin.meta_evaluation.corrected_ranking import CORRECTED, CorrectedRanking, rank_corrected
from vieval_plugin.meta_evaluation.findings import ALL, Findings, Leaderboard, Number
from vieval_plugin.meta_evaluation.generators import MEAN, OfGenerators
from vieval_plugin.meta_evaluation.leaderboards import leaderboard
from vieval_plugin.meta_evaluation.ratings import HumanRatings, annotator_table
from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.meta_evaluation.win_rates import WIN_RATE, PositionBias, position_bias, win_rate_findings
from vieval_plugin.records import OWN, JudgeName, Run
from vieval_plugin.report.answer import Answer, agreement_notes, answer, lines_of, placed, together
from vieval_plugin.report.files import FINDING_FILES, finding_texts, numbers_of
from vieval_plugin.report.inputs import rated_runs
from vieval_plugin.report.rendering import markdown
from vieval_plugin.report.tables import (
    TOTALS,
    contest_table,
    corrected_tables,
    leaderboard_table,
    mark_notes,
    pairs_table,
    totals_tables,
)
from vieval_plugin.results.runs import Results
from vieval_plugin.stats.comparison import PERMUTATIONS
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text import escaping
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.tables import text_table
from vieval_plugin.text.wording import enumeration

RANK_MD = "rank.md"
FILES = (RANK_MD, *FINDING_FILES)
_CORRECTED = (
    "Corrected means are what people would say, by prediction-powered inference; their intervals count the ratings' "
    "uncertainty, and p of their differences is that of Student's t."
)
_UNCORRECTED = (
    "The ratings do not correct win rates: rank verdicts of a judge that scores each image, whose means they correct."
)
_MORE = (
    "--tables FOLDER has how this was computed, other aspects, kinds, parts, categories, tags and the best of several "
    "images; --html FILE has the pictures."
)
_REASON = 200


@dataclass(frozen=True, eq=False)
class RankReport:
    """Rankings of some results."""

    #: The results.
    runs: tuple[Run, ...]
    #: Numbers of all generators, and tables of them.
    findings: Findings
    #: Leaderboards by scores and by win rates.
    boards: tuple[Leaderboard, ...]
    #: Rankings corrected by people's ratings.
    corrected: tuple[CorrectedRanking, ...]
    #: Rankings by strength.
    contests: tuple[ContestRanking, ...]
    #: Position bias of a judge, by benchmark and name.
    bias: Mapping[tuple[str, JudgeName | None], PositionBias | None]
    #: True where ratings were given: then corrected rankings are the answer.
    by_ratings: bool
    #: Tables of all verdicts of folders of shards, and of people's agreement with one another.
    further: tuple[Table, ...]
    #: Lines to be read beside rankings.
    notes: tuple[str, ...]

    @property
    def corrected_answers(self) -> Mapping[tuple[str, JudgeName | None], CorrectedRanking]:
        """The corrected ranking of each judge by its default aspect, where ratings were given."""
        answers: dict[tuple[str, JudgeName | None], CorrectedRanking] = {}
        defaults = {b.key: b.aspect for b in reversed(self.boards) if b.statistic == MEAN}
        for member in self.corrected if self.by_ratings else ():
            key = member.ranking.key
            if key not in answers or member.ranking.aspect == defaults.get(key):
                answers[key] = member
        return answers

    @property
    def main(self) -> list[Leaderboard]:
        """The leaderboards that answer which generator is best: each judge's default, corrected where it can be.

        Where no two generators have prompts in common, as where parts have generators of their own, each part is ranked
        alone.
        """
        corrected = self.corrected_answers
        of_judges = [b for b in main_boards(self.boards) if b.key not in corrected]
        return [*(member.ranking for member in corrected.values()), *of_judges]

    @property
    def any_means(self) -> bool:
        """True where a generator has a number, corrected or not, or where there are none to have one."""
        boards = [*self.main, *main_boards(self.boards)]
        return not boards or any(board.defined for board in boards)

    def beside(self, board: Leaderboard) -> dict[str, dict[str, Estimate]]:
        """The means of a judge's other aspects, by aspect and generator."""
        means = [b for b in self.boards if board.statistic == b.statistic == MEAN and b.aspect != board.aspect]
        place = (board.key, board.breakdown, board.value)
        alike = [b for b in means if (b.key, b.breakdown, b.value) == place]
        return {b.aspect: {n.system: n.estimate for n in b.numbers} for b in alike}


def main_boards(boards: Sequence[Leaderboard]) -> list[Leaderboard]:
    """The leaderboards by the judges' own numbers that answer which generator is best."""
    main: list[Leaderboard] = []
    for key in dict.fromkeys(board.key for board in boards):
        of_judge = [board for board in boards if board.key == key]
        means = [board for board in of_judge if board.statistic == MEAN]
        over_all = [board for board in means if not board.breakdown][:1]
        parts = [board for board in means if board.breakdown == "part" and board.aspect == means[0].aspect]
        by_part = any(not board.comparison.all_pairs and len(board.numbers) > 1 for board in over_all)
        wins = [board for board in of_judge if board.statistic == WIN_RATE][:1]
        main += [*(parts if by_part and parts else over_all), *wins]
    return main


def rank_results(results: Results, ratings: HumanRatings | None, options: StatisticsOptions) -> RankReport:
    """The rankings of results.

    Args:
        results: of any benchmarks and judges, each ranked for itself.
        ratings: people's, in the place of those that benchmarks have; None for those.
        options: what failed verdicts are, how many draws, the seed.

    Raises:
        VievalError: no rating is of a sample among the results; nothing in them has a generator to rank.
    """
    runs, notes = rated_runs(results, ratings)
    benchmarks = dict.fromkeys(run.benchmark for run in runs)
    bias = dict[tuple[str, JudgeName | None], PositionBias | None]()
    findings, boards, silent = Findings(()), list[Leaderboard](), set[str]()
    for run in runs:
        of_run = OfGenerators().findings(run.benchmark, (), [run], options) + win_rate_findings(run, options)
        findings += of_run
        bias[run.benchmark, run.name] = of_judge = position_bias(run, options)
        contradicts = of_judge is not None and of_judge.contradictory
        silent |= {str(run.name)} if contradicts else set()
        for statistic in of_run.ranked:
            board = leaderboard(statistic, of_run, run.benchmark, [run], options)
            boards.append(_without_pairs(board) if contradicts and board.statistic == WIN_RATE else board)
    if not boards:
        raise VievalError(
            f"no generator to rank in {enumeration(list(benchmarks))}: no contest there was judged whose candidates are "
            "of different image models with names"
        )
    contests = [
        replace(ranking, board=_without_pairs(ranking.board)) if str(ranking.board.judge) in silent else ranking
        for name in benchmarks
        for ranking in rank_contests([run for run in runs if run.benchmark == name], options)
    ]
    corrected = tuple(ranking for run in runs for ranking in rank_corrected(run, options))
    by_ratings = {member.ranking.key for member in corrected if ratings}
    for index, board in enumerate(boards):
        if board.key in by_ratings and board.statistic != WIN_RATE:
            boards[index] = replace(board, title=f"{board.title}, not corrected")
    for name in benchmarks:
        notes += agreement_notes([run for run in runs if run.benchmark == name], options)
    notes += mark_notes(main_boards(boards))
    people = [annotator_table(ratings)] if ratings else []
    tables = (*totals_tables(results.totals), *people)
    return RankReport(
        tuple(runs), findings, tuple(boards), corrected, tuple(contests), bias, bool(ratings), tables, tuple(notes)
    )


def _without_pairs(board: Leaderboard) -> Leaderboard:
    """A leaderboard without ranks and differences, of a judge that contradicts itself."""
    standings = tuple(replace(standing, ranks=None) for standing in board.comparison.standings)
    reason = f"{board.judge} contradicts itself in half of the contests or more"
    numbers = tuple(replace(number, ranks=None) for number in board.numbers)
    return replace(board, numbers=numbers, comparison=Comparison(board.comparison.compared, standings, reason=reason))


def answers(report: RankReport) -> list[Answer]:
    """The answers, where several judges ranked the same generators theirs together first."""
    main, corrected = report.main, report.corrected_answers
    judges = {board.judge for board in main}
    texts = []
    if len(judges) == len(main):  # one leaderboard a judge: one benchmark, and no parts
        silent = [str(judge) for (_, judge), bias in report.bias.items() if bias and bias.contradictory]
        wins = {str(board.judge) for board in main if board.statistic == WIN_RATE}
        joint = together(main, [judge for judge in silent if judge in wins])
        texts += [Answer(joint, "")] if joint else []
    for board in main:
        key = board.key
        of_board = answer(board, report.bias.get(key), corrected.get(key))
        uncorrected = _UNCORRECTED if report.by_ratings and board.statistic == WIN_RATE else ""
        limits = (*of_board.limits, *filter(None, [_unmatched_prompts(report, board), uncorrected]))
        of_board = replace(of_board, limits=limits)
        where = "" if board.benchmark == OWN else board.benchmark
        texts.append(placed(of_board, where, board.value, str(board.judge)) if len(main) > 1 else of_board)
    failures = _first_failures(report.runs)
    return [*texts[:-1], replace(texts[-1], limits=(*texts[-1].limits, *failures))] if texts else []


def _unmatched_prompts(report: RankReport, board: Leaderboard) -> str:
    """A sentence where generators have the same prompts under uids of their own; empty where that is not so."""
    if board.statistic == WIN_RATE or board.comparison.all_pairs:
        return ""
    by_uid: dict[tuple[str, str], set[str]] = defaultdict(set)
    by_text: dict[str, set[str]] = defaultdict(set)
    runs = (run for run in report.runs if (run.benchmark, run.name) == board.key)
    for sample in (records[0].sample for run in runs for records in chain(*run.records.values())):
        if isinstance(sample, Sample) and sample.texts:
            by_uid[sample.id.part, sample.id.uid].add(sample.id.image_model)
            by_text["\n".join(sample.texts.values())].add(sample.id.image_model)
    equal = sum(len(generators) > 1 for generators in by_text.values())
    if not equal or any(len(generators) > 1 for generators in by_uid.values()):
        return ""
    return (
        f"Prompts are matched by uid, and no two generators have one in common, although {equal} prompt texts are equal: "
        "score once more with --columns uid=COLUMN, a column that names the prompt, or rank folders of images with "
        "--prompts."
    )


def _first_failures(runs: Sequence[Run]) -> list[str]:
    """For each judge and status that is a failure, what befell the first."""
    first: dict[tuple[str, str], str] = {}
    for run in runs:
        for record in (records[0] for records in chain(*run.records.values())):
            status = record.verdict.status
            reason = next((step.failure for step in record.verdict.trace if not step.status.usable), "")
            if not status.usable and reason:
                text = f"First {status}: {record.id}: {' '.join(reason.split())[:_REASON]}"
                first.setdefault((run.label, str(status)), text)
    return list(first.values())


def tables_of(report: RankReport) -> list[Table]:
    """Tables that a reader of the answers needs: those of its rankings, and what people said."""
    # of two generators the answer has the difference
    tables = [t for c in report.corrected_answers.values() for t in corrected_tables(c, fewest_pairs=2)]
    for board in report.main:
        if board.statistic != CORRECTED:
            tables.append(leaderboard_table(board, report.beside(board)))
            tables += [pairs_table(board)] if len(board.comparison.all_pairs) > 1 else []
    # of two image models a strength says what a win rate does
    tables += [contest_table(ranking) for ranking in report.contests if len(ranking.board.numbers) > 2]
    return [*tables, *report.further]


def all_tables(report: RankReport) -> list[Table]:
    """All tables: each leaderboard that is not broken down with its pairs, and means by each breakdown."""
    tables = [table for member in report.corrected for table in corrected_tables(member)]
    whole = [board for board in report.boards if not board.breakdown or board in report.main]
    for board in sorted(whole, key=lambda board: board not in report.main):
        tables += [leaderboard_table(board), *([pairs_table(board)] if board.comparison.all_pairs else [])]
    return [*tables, *report.findings.tables, *map(contest_table, report.contests), *report.further]


def lines(report: RankReport, options: StatisticsOptions, gate: Sequence[Answer] = ()) -> list[str]:
    """Lines for a terminal: the answer, a table of each judge, and what else there is to know.

    Args:
        report: of `rank_results`.
        options: those that it was made with.
        gate: the answer of the gate, where there is one.
    """
    text = [*lines_of([*gate, *answers(report)]), ""]
    for table in tables_of(report):
        ranked_by = [name for name in table.header if name.endswith("[95%]")][:1]
        rows = [table.header, *table.rows]
        text += [table.title, "", *text_table(rows, "--tables FOLDER has them", fixed_columns=ranked_by), ""]
    text += [f"note: {line}" for line in report.notes]
    intervals = (
        f"Intervals: 95%, of means {options.draws} bootstrap resamples of prompts, of differences those of the test."
    )
    return [*text, *cautions(report), f"{intervals} Failed verdicts: {options.policy}.", _MORE]


def protocol(options: StatisticsOptions) -> str:
    """Protocol of the numbers, in a paragraph."""
    return (
        f"Failed verdicts: {options.policy}. Each two generators are compared on the prompts that both have. Intervals: 95%, "
        f"of means {options.draws} bootstrap resamples of prompts, expanded for few; of differences all values that the test "
        f"does not reject. p: permutation test over prompts, at most {PERMUTATIONS:,} permutations. p (Holm): adjusted for "
        f"all pairs of ranked generators of one table. A rank such as 1-2 is the range that differences with an adjusted p of "
        f"at most {LEVEL} leave. Seed {options.seed}."
    )


def write_ranking(report: RankReport, folder: Path, options: StatisticsOptions) -> None:
    """Write `FILES` to a folder: the tables to read, and every number once more for programs."""
    sentences = (escaping.markdown(line) for line in (*lines_of(answers(report)), *cautions(report), protocol(options)))
    text = ["# Ranking of generators\n", *(f"{sentence}\n" for sentence in sentences)]
    text += [f"Note: {escaping.markdown(line)}\n" for line in report.notes]
    write_whole(folder / RANK_MD, ["\n".join([*text, *map(markdown, all_tables(report))])])
    for name, content in ranking_files(report, options).items():
        write_whole(folder / name, [content])


def ranking_files(report: RankReport, options: StatisticsOptions) -> dict[str, str | bytes]:
    """What the files for programs hold, by their names."""
    numbers = numbers_of([*report.boards, *(r.board for r in report.contests)])
    numbers += [(c.ranking.benchmark, number) for c in report.corrected for number in _corrected_numbers(c)]
    boards = (*report.boards, *(c.ranking for c in report.corrected), *(r.board for r in report.contests))
    totals = [table for table in report.further if table.name in TOTALS]
    return finding_texts(numbers, boards, answers(report), options, report.notes, totals)


def _corrected_numbers(corrected: CorrectedRanking) -> Iterator[Number]:
    """Corrected means, and what they are made of: people's labels alone and the weight of the judge."""
    board = corrected.ranking
    yield from board.numbers
    for e in corrected.estimates:
        components = {
            "mean of people's labels": replace(e.human.mean, n=e.rated),
            "weight of the judge": Estimate(e.corrected.weight),
        }
        for name, estimate in components.items():
            yield Number(e.generator, estimate, ALL, board.aspect, name, "generator", board.judge)


def cautions(report: RankReport) -> list[str]:
    """Lines on what marks mean, and on what a corrected mean is worth."""
    return [*mark_notes(report.main), *([_CORRECTED] if report.corrected_answers else [])]
