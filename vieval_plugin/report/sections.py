"""Results as sections: a benchmark with its runs, what is found in them, and the leaderboards
that answer for it.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from textwrap import shorten
from typing import TYPE_CHECKING, Literal, TypeAlias

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.protocol import Sample
from vieval_plugin.meta_evaluation.comparison import Comparison
from vieval_plugin.meta_evaluation.contest_ranking import ContestRanking, rank_contests
from vieval_plugin.meta_evaluation.corrected_ranking import (
    CorrectedRanking,
    rank_corrected,
)
from vieval_plugin.meta_evaluation.findings import (
    Findings,
    Leaderboard,
    layouts,
)
from vieval_plugin.meta_evaluation.gate import gate_evidence
from vieval_plugin.meta_evaluation.label_plan import Look
from vieval_plugin.meta_evaluation.leaderboards import MOST_WITH_INTERVALS, leaderboard
from vieval_plugin.meta_evaluation.measures import Outcome
from vieval_plugin.meta_evaluation.ratings import (
    HumanRatings,
    annotator_table,
    drop_constant_annotators,
    ratings_at_look,
)
from vieval_plugin.meta_evaluation.reference_ranking import ranking_against
from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.meta_evaluation.win_rates import (
    PositionBias,
    position_bias,
)
from vieval_plugin.records import OWN, YOUR_IMAGES, JudgeName, Record, Run
from vieval_plugin.report.answer import Answer, answer, placed
from vieval_plugin.report.own_samples import (
    against,
    benchmarks_with_runs,
    generator_findings,
    prompt_notes,
)
from vieval_plugin.report.several_judges import (
    agreement_notes,
    same_scores,
    several_judges_sentence,
)
from vieval_plugin.report.tables import ReferencePair, totals_tables
from vieval_plugin.results.runs import Results, rated_runs
from vieval_plugin.stats.decisions import ADVISED_MARGIN, MOST_UNREAD, ONE_SIDED_LEVEL
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.non_inferiority import more_failures_p
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import enumeration, plural

if TYPE_CHECKING:
    from vieval_plugin.results.shard_sample import FolderTotals

#: The systems that a command is about: of `rank` generators, of `compare` judges, of `report` what
#: the benchmark is for.
Which: TypeAlias = Literal["generators", "judges", "all"]

_UNCORRECTED = "Ratings cannot correct a {}. To use them, rank verdicts from a judge that scores each image."
_REASON = 200


@dataclass(frozen=True, eq=False)
class Section:
    """A benchmark with the runs on it and what is found in them."""

    benchmark: Benchmark
    #: One a judge.
    runs: tuple[Run, ...]
    #: All numbers, and what systems are ranked by.
    findings: Findings
    #: A leaderboard for each statistic of the findings that ranks systems, the default first.
    boards: tuple[Leaderboard, ...]
    #: Rankings of generators corrected by people's ratings.
    corrected: tuple[CorrectedRanking, ...] = ()
    #: Rankings of generators by strength.
    contests: tuple[ContestRanking, ...] = ()
    #: Position bias of judges of contests.
    bias: Mapping[JudgeName | None, PositionBias | None] = field(default_factory=dict)
    #: True where ratings were given: then corrected rankings are the answer.
    by_ratings: bool = False
    #: The files of the verdicts as a command names them, an empty name for one not written yet.
    verdicts: str = ""
    #: Margin of the gate that advice on ratings is for.
    margin: float = ADVISED_MARGIN

    @property
    def title(self) -> str:
        """Name of the benchmark as a heading has it."""
        if self.benchmark.name == OWN:
            return YOUR_IMAGES.capitalize()
        return self.benchmark.title or self.benchmark.name

    def page_words(self, text: str) -> str:
        """A text on the statistics in the benchmark's words for whom judges agree with."""
        return self.benchmark.page_words(text)

    def judges(self, which: Which) -> list[Leaderboard]:
        """The leaderboards of judges, the default first: for a comparison of judges all, else
        those that lead a report.
        """
        judges = []
        statistics = self.findings.ranked
        for board, statistic in zip(self.boards, statistics, strict=True):
            if board.ranks_generators:
                continue
            if statistic.is_headline or which == "judges":
                judges.append(board)
        return judges

    @cached_property
    def headlines(self) -> list[Leaderboard]:
        """The leaderboards of judges that lead a report."""
        return self.judges("all")

    @cached_property
    def corrections(self) -> Mapping[JudgeName | None, CorrectedRanking]:
        """The corrected ranking of each judge by its default aspect, where ratings were given."""
        corrections: dict[JudgeName | None, CorrectedRanking] = {}
        if not self.by_ratings:
            return corrections
        defaults = {
            board.judge: board.aspect
            for board in reversed(self.boards)
            if board.measure.is_plain_mean
        }
        for member in self.corrected:
            judge = member.ranking.judge
            if judge not in corrections or member.ranking.aspect == defaults.get(judge):
                corrections[judge] = member
        return corrections

    @cached_property
    def generators(self) -> list[Leaderboard]:
        """The leaderboards that answer which generator is best: each judge's default, corrected
        where it can be.

        Where no two generators have prompts in common, as where parts have generators of their own,
        each part is ranked alone.
        """
        main = [member.ranking for member in self.corrections.values()]
        boards = [
            board
            for board in self.boards
            if board.ranks_generators and board.judge not in self.corrections
        ]
        for judge in dict.fromkeys(board.judge for board in boards):
            judge_boards = [board for board in boards if board.judge == judge]
            means = [b for b in judge_boards if not b.measure.counts_contests]
            wins = [b for b in judge_boards if b.measure.counts_contests]
            main += _mean_boards(_leading(means))
            main += wins[:1]
        return main

    def beside(self, board: Leaderboard) -> dict[str, dict[str, Estimate]]:
        """The means of a judge's other aspects, by aspect and generator."""
        if not board.measure.leads or board.measure.counts_contests:
            return {}
        place = _place(board)
        means = {}
        for other in self.boards:
            if _place(other) == place and other.aspect != board.aspect:
                means[other.aspect] = {n.system: n.estimate for n in other.numbers}
        return means

    def answer(self, board: Leaderboard) -> Answer:
        """The answer of one of the leaderboards."""
        bias = self.bias.get(board.judge)
        if not board.ranks_generators:
            return answer(board, bias, None, self.verdicts)
        correction = self.corrections.get(board.judge)
        board_answer = answer(board, bias, correction, self.verdicts, self.margin)
        title = board_answer.title
        if board_answer.outcome is not Outcome.BETTER_WITHOUT_FAILURES:
            title = self._add_failures(board, title)
        run = self.run_of(board)
        uncorrected = ""
        if self.by_ratings and not correction:
            uncorrected = _uncorrected(run, board)
        notes = filter(None, [_unmatched_prompts(run, board), uncorrected])
        limits = (*board_answer.limits, *notes)
        next_step = board_answer.next
        records = run.all_records
        if uncorrected or any(record.provenance.calibration for record in records):
            next_step = ""
        return replace(board_answer, title=title, limits=limits, next=next_step)

    def run_of(self, board: Leaderboard) -> Run:
        """The run of the judge of a leaderboard of generators."""
        return next(run for run in self.runs if run.name == board.judge)

    def _add_failures(self, board: Leaderboard, title: str) -> str:
        """A title on generators that also says if the first, or one of two, fails significantly
        more often.
        """
        first, *further = board.ranked or board.numbers
        fewest = min(further, key=lambda number: number.failed, default=first)
        more = first
        less = fewest
        if fewest.failed >= first.failed and len(further) < 2:
            more = fewest
            less = first
        if more.failed <= less.failed:
            return title
        run = self.run_of(board)
        evidence = gate_evidence(
            run, board, more.system, less.system, StatisticsOptions()
        )
        if more_failures_p(*evidence.more_failures) > ONE_SIDED_LEVEL:
            return title
        conjunction = "but" if more is first else "and"
        return (
            f"{title.removesuffix('.')}, {conjunction} "
            f"{more.system} fails more often than {less.system}."
        )


def _place(board: Leaderboard) -> tuple[JudgeName | None, str, str, str]:
    """What aspects of the same leaderboard have in common."""
    return board.judge, board.statistic, board.breakdown, board.value


def _mean_boards(means: Sequence[Leaderboard]) -> list[Leaderboard]:
    """The leaderboard by a judge's default mean, or those of all parts where it compares no two
    generators.
    """
    over_all = [board for board in means if not board.breakdown][:1]
    parts = [
        board
        for board in means
        if board.breakdown == "part" and board.aspect == means[0].aspect
    ]
    for board in over_all:
        has_pairs = board.comparison.all_pairs or len(board.numbers) < 2
        if parts and not has_pairs:
            return parts
    return over_all


@dataclass(frozen=True)
class Likeness:
    """Similarity of images to their references."""

    #: By generator and metric.
    table: Table
    #: Those that are least like them.
    pairs: tuple[ReferencePair, ...]


@dataclass(frozen=True, eq=False)
class Report:
    """Content of `report`, `rank` and `compare` for results."""

    #: The systems that it is about.
    which: Which
    #: One a benchmark.
    sections: tuple[Section, ...]
    #: Tables of all verdicts of folders of shards, and of people's agreement with one another.
    further: tuple[Table, ...] = ()
    #: Lines to be read beside all numbers.
    notes: tuple[str, ...] = ()
    #: Counts over all verdicts of folders of shards.
    totals: tuple[FolderTotals, ...] = ()
    #: Likeness to references; None where no image has one.
    likeness: Likeness | None = None

    @property
    def runs(self) -> list[Run]:
        """The runs of all sections."""
        return [run for section in self.sections for run in section.runs]

    @property
    def generators(self) -> list[tuple[Section, Leaderboard]]:
        """The leaderboards that answer which generator is best, each with its section."""
        return [(s, board) for s in self.sections for board in self._generators(s)]

    @property
    def judges(self) -> list[tuple[Section, Leaderboard]]:
        """The leaderboards of judges that are shown, each with its section."""
        return [(s, board) for s in self.sections for board in self._judges(s)]

    def _generators(self, section: Section) -> list[Leaderboard]:
        if self.which != "judges":
            return section.generators
        return []

    def _judges(self, section: Section) -> list[Leaderboard]:
        if self.which == "generators":
            return []
        if self.which == "judges" and missing_judges_reason(section):
            return []
        return section.judges(self.which)

    @cached_property
    def answers(self) -> list[Answer]:
        """The answers of all benchmarks: on generators, one a judge, and then on judges."""
        needs_names = len({section for section, _ in self.generators}) > 1
        texts: list[Answer] = []
        for section in self.sections:
            name = section.benchmark.name
            boards = self._generators(section)
            where = name if needs_names and name != OWN else ""
            alone = len(self.generators) == 1
            texts += _generator_answers(section, boards, where, alone)
            texts += _judge_answers(section, self._judges(section))
            if self.which == "judges":
                reason = missing_judges_reason(section)
                if reason:
                    texts.append(Answer(reason, ""))
        if self.generators:
            limits = (*texts[-1].limits, *_first_failures(self.runs))
            texts[-1] = replace(texts[-1], limits=limits)
        return texts


def sections_of(
    results: Results,
    which: Which,
    options: StatisticsOptions,
    ratings: HumanRatings | None = None,
    order: Sequence[str] = (),
) -> Report:
    """The sections of results.

    Args:
        results: of any benchmarks and judges.
        which: the systems that are asked about.
        options: what failed verdicts and ratings not given are, how many resamples, the seed.
        ratings: people's, in the place of those that benchmarks have; None for those.
        order: image models, the best first, that rankings are compared with.

    Raises:
        VievalError: for results whose benchmark is not known, ratings of none of them, and where
            generators are asked for and there are none.
    """
    look = None
    constant = list[str]()
    if ratings:
        ratings, constant = drop_constant_annotators(ratings)
        look = ratings.look
        ratings = ratings_at_look(ratings)
    runs, notes = rated_runs(results, ratings)
    notes += constant
    by_benchmark = benchmarks_with_runs(runs, required=which != "generators")
    files = list(map(str, results.paths))
    if results.baseline and not files:
        files = ["", str(results.baseline)]
    verdicts = shlex.join(files)
    sections = []
    for benchmark, benchmark_runs in by_benchmark:
        section = _section(
            benchmark, benchmark_runs, which, options, bool(ratings), order, look
        )
        sections.append(replace(section, verdicts=verdicts))
    report = Report(which, tuple(sections))
    if report.which == "generators" and not report.generators:
        names = enumeration([benchmark.name for benchmark, _ in by_benchmark])
        raise VievalError(
            f"cannot rank generators on {names}: the judged contests must compare "
            "different image models, "
            "and each image must have the name of its model"
        )
    sentences = _agreement_sentences(sections, options)
    records = list(chain.from_iterable(run.all_records for run in runs))
    notes += _run_notes(runs, records)
    people = [annotator_table(ratings)] if ratings else []
    benchmarks = _benchmark_tables(runs, records)
    return replace(
        report,
        further=(*totals_tables(results.totals), *benchmarks, *people),
        notes=(*sentences, *notes),
        totals=tuple(results.totals),
    )


def _run_notes(runs: Sequence[Run], records: Sequence[Record]) -> list[str]:
    """Notes on the prompts, demands, failures and calibrations of runs."""
    notes = prompt_notes(runs)
    notes += filter(None, dict.fromkeys(map(_demanded_line, runs)))
    notes += filter(None, map(_reply_of_failed_run, runs))
    calibrations = (record.provenance.calibration_note for record in records)
    notes += filter(None, dict.fromkeys(calibrations))
    return notes


def _benchmark_tables(runs: Sequence[Run], records: Sequence[Record]) -> list[Table]:
    """Tables with the totals of benchmarks; empty if no record has totals."""
    if not any(record.totals for record in records):
        return []
    from vieval_plugin.results.scored import benchmark_tables

    return benchmark_tables(runs)


def _agreement_sentences(
    sections: Sequence[Section], options: StatisticsOptions
) -> list[str]:
    lines = []
    for section in sections:
        sentences = same_scores(section.runs) + agreement_notes(section.runs, options)
        lines += [f"{section.title}: {sentence}" for sentence in sentences]
    return lines


def _demanded_line(run: Run) -> str:
    """The line on what a run's judge took prompts to demand, where its samples are known; empty
    for most judges.
    """
    records = run.all_records
    spec = judge_registry.judge_of_results(run.judge, records[0].provenance.options)
    samples = (record.sample for record in records if isinstance(record.sample, Sample))
    return spec.demands(samples) if spec else ""


def _reply_of_failed_run(run: Run) -> str:
    """The first failed reply of a run, as a line; empty where few verdicts failed."""
    records = run.all_records
    failed_count = sum(not record.verdict.status.usable for record in records)
    if failed_count <= MOST_UNREAD * len(records):
        return ""
    for step in chain.from_iterable(record.verdict.trace for record in records):
        if not step.status.usable and step.answer:
            excerpt = shorten(step.answer, _REASON, placeholder=" ...")
            return f"First failed reply of {run.label}: {excerpt!r}."
    return ""


def missing_judges_reason(section: Section) -> str:
    """The reason why judges of a benchmark are not compared; empty where they are."""
    if section.judges("judges") and len(section.runs) > 1:
        return ""
    if len(section.runs) < 2:
        return (
            f"{section.title}: at least two judges are required, "
            f"got one ({section.runs[0].label})."
        )
    if section.benchmark.name == OWN:
        return (
            "Your images have no ratings, "
            "so judges cannot be compared. "
            "Use `vieval rank` to compare the generators, "
            "or `vieval label` to make a page for rating images."
        )
    return f"{section.title}: its statistics have no test to compare two judges."


def _note_no_correction(
    board: Leaderboard, corrected_judges: Collection[JudgeName | None]
) -> Leaderboard:
    if board.judge not in corrected_judges or board.measure.counts_contests:
        return board
    return replace(board, title=f"{board.title}, not corrected")


def _section(
    benchmark: Benchmark,
    runs: Sequence[Run],
    which: Which,
    options: StatisticsOptions,
    by_ratings: bool,
    order: Sequence[str],
    look: Look | None,
) -> Section:
    findings = _all_findings(which, benchmark, runs, options, order)
    bias: dict[JudgeName | None, PositionBias | None] = {
        run.name: position_bias(run, options) for run in runs
    }
    silent = {
        judge
        for judge, judge_bias in bias.items()
        if judge_bias and judge_bias.contradictory
    }
    boards = []
    for statistic in findings.ranked:
        intervals = (
            which == "judges"
            or bool(statistic.judge)
            or sum(map(statistic.has, findings.numbers)) <= MOST_WITH_INTERVALS
        )
        board = leaderboard(
            statistic,
            findings,
            benchmark.name,
            runs,
            options,
            intervals,
            against(benchmark),
        )
        if board.judge in silent and board.measure.counts_contests:
            board = _drop_pairs(board)
        boards.append(board)
    if not any(board.ranks_generators for board in boards):
        return Section(
            benchmark,
            tuple(runs),
            findings,
            tuple(boards),
            bias=bias,
        )
    contests = _contests(silent, runs, options)
    corrected = tuple(
        ranking for run in runs for ranking in rank_corrected(run, options, look)
    )
    if by_ratings:
        corrected_judges = {member.ranking.judge for member in corrected}
        boards = [_note_no_correction(board, corrected_judges) for board in boards]
    return Section(
        benchmark,
        tuple(runs),
        findings,
        tuple(boards),
        corrected,
        contests,
        bias,
        by_ratings,
    )


def _all_findings(
    which: Which,
    benchmark: Benchmark,
    runs: Sequence[Run],
    options: StatisticsOptions,
    order: Sequence[str],
) -> Findings:
    parts = tuple(benchmark.parts)
    if which == "generators" and benchmark.name != OWN:
        findings = generator_findings(benchmark.name, runs, options)
    else:
        findings = benchmark.report.findings(benchmark.name, parts, runs, options)
    record_parts = parts or tuple(runs[0].records)
    order_ranking = tuple(ranking_against(order, record_parts, runs, options))
    findings += Findings(order_ranking, layouts=layouts("order"))
    return findings


def _contests(
    silent: set[JudgeName | None],
    runs: Sequence[Run],
    options: StatisticsOptions,
) -> tuple[ContestRanking, ...]:
    names = {str(judge) for judge in silent}
    rankings = []
    for ranking in rank_contests(runs, options):
        board = ranking.board
        if str(board.judge) in names:
            board = _drop_pairs(board)
        rankings.append(replace(ranking, board=board))
    return tuple(rankings)


def _leading(boards: Sequence[Leaderboard]) -> list[Leaderboard]:
    """The leaderboards of the measure that leads, which is another package's where one does."""
    measures = [board.measure for board in boards if board.measure.leads]
    return [board for board in boards if board.measure in measures[-1:]]


def _drop_pairs(board: Leaderboard) -> Leaderboard:
    """A leaderboard without ranks and differences, of a judge that contradicts itself."""
    numbers = tuple(replace(number, ranks=None) for number in board.numbers)
    systems = tuple(replace(system, ranks=None) for system in board.comparison.systems)
    reason = f"{board.judge} contradicts itself in at least half of the contests"
    comparison = Comparison(board.comparison.compared, systems, reason=reason)
    return replace(board, numbers=numbers, comparison=comparison)


def _generator_answers(
    section: Section,
    boards: Sequence[Leaderboard],
    where: str,
    alone: bool,
) -> list[Answer]:
    """The answers on generators, where several judges ranked the same ones theirs together
    first.
    """
    texts = []
    # one leaderboard a judge, and no parts
    if len({board.judge for board in boards}) == len(boards):
        contradictory = []
        for board in boards:
            bias = section.bias.get(board.judge)
            if board.measure.counts_contests and bias and bias.contradictory:
                contradictory.append(str(board.judge))
        joint = several_judges_sentence(boards, contradictory)
        if joint:
            texts.append(Answer(joint, ""))
    names = Counter(
        board.judge.words for board in boards if board.judge and not board.value
    )
    for board in boards:
        board_answer = section.answer(board)
        judge = board.judge
        if not alone:
            name = ""
            if judge is not None:
                name = judge.words if names[judge.words] < 2 else str(judge)
            board_answer = placed(board_answer, where, board.value, name)
        texts.append(board_answer)
    return texts


def _judge_answers(section: Section, boards: Sequence[Leaderboard]) -> list[Answer]:
    """The answer on judges, and those by other aspects of judges that do not rate the first."""
    texts = []
    compared: set[str] = set()
    for board in boards:
        board_answer = section.answer(board)
        missing = [
            number.system for number in board.numbers if number.system not in compared
        ]
        if not compared:
            texts.append(board_answer)
        elif missing:
            have = "has" if len(missing) == 1 else "have"
            if len(missing) < 4:
                names = enumeration(missing)
            else:
                names = f"{len(missing)} others"
            missing_scores = f"{names} {have} no {boards[0].aspect}"
            title = f"By {board.aspect} ({missing_scores}): {board_answer.title}"
            texts.append(replace(board_answer, title=title))
        compared.update(missing)
    return texts


def _uncorrected(run: Run, board: Leaderboard) -> str:
    """The reason why ratings do not correct a leaderboard; empty where its images have none."""
    if not board.measure.is_plain_mean:
        return _UNCORRECTED.format(board.measured)
    ratings = (records[0].ratings for records in run.records_by_sample)
    aspects = sorted({aspect for image_ratings in ratings for aspect in image_ratings})
    if not aspects:
        return ""
    return (
        f"The ratings of {enumeration(aspects)} were not used, "
        f"because the judge rates {enumeration(run.aspects)}."
    )


def _unmatched_prompts(run: Run, board: Leaderboard) -> str:
    """A sentence where generators have the same prompts under uids of their own; empty where
    that is not so.
    """
    if board.measure.counts_contests or board.comparison.all_pairs:
        return ""
    by_uid = defaultdict[tuple[str, str], set[str]](set)
    by_text = defaultdict[str, set[str]](set)
    for record, *_ in run.records_by_sample:
        sample = record.sample
        if isinstance(sample, Sample) and sample.texts:
            text = "\n".join(sample.texts.values())
            generator = sample.id.image_model
            by_uid[sample.id.part, sample.id.uid].add(generator)
            by_text[text].add(generator)
    if any(len(generators) > 1 for generators in by_uid.values()):
        return ""
    equal = sum(len(generators) > 1 for generators in by_text.values())
    if not equal:
        return ""
    return (
        "Prompts are matched by uid, "
        "but no two generators share one, although they share "
        f"{plural(equal, 'prompt text')}. "
        "Run `vieval score` again with --columns uid=COLUMN "
        "(a column that identifies the prompt), "
        "or rank folders of images with --prompts."
    )


def _first_failures(runs: Sequence[Run]) -> list[str]:
    """For each judge and status that is a failure, what befell the first."""
    first: dict[tuple[str, str], str] = {}
    for run in runs:
        for record, *_ in run.records_by_sample:
            status = record.verdict.status
            failed = [step for step in record.verdict.trace if not step.status.usable]
            if not status.usable and failed and failed[0].failure:
                reason = " ".join(failed[0].failure.split())[:_REASON]
                text = f"First {status}: {record.id}: {reason}"
                first.setdefault((run.label, str(status)), text)
    return list(first.values())
