"""Rankings of generators, printed and written: the output of `vieval rank`."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vieval_plugin.errors import VievalError, docs_url
from vieval_plugin.judges.protocol import Sample
from vieval_plugin.media.files import write_whole
from vieval_plugin.meta_evaluation.comparison import LEVEL
from vieval_plugin.meta_evaluation.contest_ranking import ContestRanking, rank_contests
from vieval_plugin.meta_evaluation.corrected_ranking import CorrectedRanking, rank_corrected
from vieval_plugin.meta_evaluation.generator_ranking import GeneratorRanking, rank_generators
from vieval_plugin.meta_evaluation.ratings import HumanRatings, annotator_table
from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.meta_evaluation.win_rates import WIN_RATE, PositionBias, position_bias, win_rate_rankings
from vieval_plugin.records import OWN, JudgeName, Run
from vieval_plugin.report.folder_totals import totals_tables
from vieval_plugin.report.inputs import rated_runs
from vieval_plugin.report.ranking_sentences import (
    answer,
    bias_sentence,
    contradiction_sentence,
    corrected_answer,
    corrected_sentences,
    limits,
)
from vieval_plugin.report.ranking_tables import (
    contest_tables,
    corrected_tables,
    default_aspect,
    long_tables,
    main_rankings,
    main_tables,
    ranking_tables,
    without_model_pairs,
    without_pairs,
)
from vieval_plugin.report.rendering import csv_text, markdown
from vieval_plugin.report.several_judges import judges_together
from vieval_plugin.results.runs import Results
from vieval_plugin.stats.comparison import PERMUTATIONS
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text import escaping
from vieval_plugin.text.tables import text_table
from vieval_plugin.text.wording import enumeration

FILES = (
    *("rank.md", "rank_generators.csv", "rank_generator_pairs.csv", "rank_corrected.csv", "rank_corrected_pairs.csv"),
    *("rank_contests.csv", "rank_contest_pairs.csv", "rank_raters.csv", "rank.json"),
)
CAUTION = (
    "A judge's mean is not people's: `vieval label VERDICTS --out label.html` makes a page to rate some images on, and "
    f"--human RATINGS corrects the means; see {docs_url('guides/comparing.md#correct-means-by-ratings')}"
)
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


@dataclass(frozen=True)
class RankReport:
    """Rankings of some results: of generators by scores and win rates, corrected where people rated some, by strengths.

    `by_ratings` is there where ratings were given, and makes corrected rankings the answer. `bias` is the position bias
    of a judge, by benchmark and name. `annotators` says how far people agree; `totals` are of all verdicts of folders of
    shards; `notes` are lines to be read beside rankings.
    """

    runs: tuple[Run, ...]
    generators: tuple[GeneratorRanking, ...]
    corrected: tuple[CorrectedRanking, ...]
    contests: tuple[ContestRanking, ...]
    bias: Mapping[tuple[str, JudgeName], PositionBias | None]
    annotators: Table | None = None
    totals: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def shown_generators(self) -> list[GeneratorRanking]:
        """The rankings as tables show them: without ranks and differences of a judge that contradicts itself."""
        return [without_pairs(r, contradiction_sentence(r, self.bias[r.benchmark, r.judge])) for r in self.generators]

    @property
    def shown_contests(self) -> list[ContestRanking]:
        """The rankings by contests as tables show them."""
        reasons = {
            (r.benchmark, str(r.judge)): reason
            for r in self.generators
            if (reason := contradiction_sentence(r, self.bias[r.benchmark, r.judge]))
        }
        return [without_model_pairs(c, reasons.get((c.benchmark, c.voter), "")) for c in self.contests]

    @property
    def corrected_answers(self) -> Mapping[tuple[str, JudgeName], CorrectedRanking]:
        """The corrected ranking of each judge by its default aspect, where ratings were given."""
        answers = {}
        for key in dict.fromkeys((c.ranking.benchmark, c.ranking.judge) for c in self.corrected if self.annotators):
            rankings = [c for c in self.corrected if (c.ranking.benchmark, c.ranking.judge) == key]
            default = default_aspect([c.ranking for c in rankings])
            answers[key] = next(c for c in rankings if c.ranking.aspect == default)
        return answers

    @property
    def main(self) -> list[GeneratorRanking]:
        """The rankings that answer which generator is best."""
        corrected = self.corrected_answers
        of_judges = [r for r in main_rankings(self.generators) if (r.benchmark, r.judge) not in corrected]
        return [*(member.ranking for member in corrected.values()), *of_judges]

    @property
    def any_means(self) -> bool:
        """True where a generator has a number, corrected or not, or where there are none to have one."""
        rankings = [*self.main, *main_rankings(self.generators)]
        return not rankings or any(generator.mean.defined for ranking in rankings for generator in ranking.generators)


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
    rankings = [r for run in runs for r in (*rank_generators(run, options), *win_rate_rankings(run, options))]
    if not rankings:
        raise VievalError(
            f"no generator to rank in {enumeration(list(benchmarks))}: no contest there was judged whose candidates are "
            "of different image models with names"
        )
    return RankReport(
        tuple(runs),
        tuple(rankings),
        tuple(ranking for run in runs for ranking in rank_corrected(run, options)),
        tuple(
            ranking
            for name in benchmarks
            for ranking in rank_contests([run for run in runs if run.benchmark == name], options)
        ),
        {(run.benchmark, run.name): position_bias(run, options) for run in runs},
        annotator_table(ratings) if ratings else None,
        tuple(totals_tables(results.totals)),
        tuple(notes),
    )


def answers(report: RankReport) -> list[str]:
    """Sentences, those of each judge together: which generator is best, position bias, what corrects and limits it."""
    main = report.main
    by_judge = {ranking.judge: ranking.comparison for ranking in main}
    silent = {r.judge for r in main if contradiction_sentence(r, report.bias[r.benchmark, r.judge])}
    alone = len(by_judge) == len(main)  # one ranking a judge: one benchmark, and no parts
    text = list(filter(None, [judges_together([*by_judge.items()], silent)])) if alone else []
    for ranking in main:
        key = ranking.benchmark, ranking.judge
        corrected = report.corrected_answers.get(key)
        where = "" if ranking.breakdown == "" else f" ({ranking.breakdown_value})"
        benchmark = "" if ranking.benchmark == OWN else f"{ranking.benchmark}, "
        prefix = f"{benchmark}{ranking.judge}{where}: " if len(main) > 1 else ""
        text.append(prefix + (corrected_answer(corrected) if corrected else answer(ranking, report.bias[key])))
        text += filter(None, [bias_sentence(report.bias[key])])
        text += corrected_sentences(corrected) if corrected else []
        text += [_UNCORRECTED] if report.annotators and ranking.statistic == WIN_RATE else []
        text += filter(None, [_unmatched_prompts(report, ranking)])
        text += limits(ranking)
    return [*text, *_first_failures(report.runs)]


def _unmatched_prompts(report: RankReport, ranking: GeneratorRanking) -> str:
    """A sentence where generators have the same prompts under uids of their own; empty where that is not so."""
    if ranking.statistic == WIN_RATE or ranking.comparison.all_pairs:
        return ""
    by_uid: dict[tuple[str, str], set[str]] = defaultdict(set)
    by_text: dict[str, set[str]] = defaultdict(set)
    for run in (run for run in report.runs if (run.benchmark, run.name) == (ranking.benchmark, ranking.judge)):
        for sample in (records[0].sample for by_part in run.records.values() for records in by_part):
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
        for record in (records[0] for by_part in run.records.values() for records in by_part):
            verdict = record.verdict
            reason = next((step.failure for step in verdict.trace if not step.status.usable), "")
            if not verdict.status.usable and reason:
                text = " ".join(reason.split())[:_REASON]
                first.setdefault((run.label, str(verdict.status)), f"First {verdict.status}: {record.id}: {text}")
    return list(first.values())


def tables_of(report: RankReport) -> list[Table]:
    """Tables that a reader of the answers needs: those of its rankings, and what people said."""
    # of two generators the answer has the difference
    tables = [t for c in report.corrected_answers.values() for t in corrected_tables(c, fewest_pairs=2)]
    tables += [
        table
        for ranking in main_rankings(report.shown_generators)
        if (ranking.benchmark, ranking.judge) not in report.corrected_answers
        for table in main_tables(ranking, report.shown_generators)
    ]
    # of two image models a strength says what a win rate does
    tables += contest_tables([ranking for ranking in report.shown_contests if len(ranking.models) > 2])
    return [*tables, *report.totals, *([report.annotators] if report.annotators else [])]


def lines(report: RankReport, options: StatisticsOptions, gate: Sequence[str] = ()) -> list[str]:
    """Lines for a terminal: the answer, a table of each judge, and what else there is to know.

    Args:
        report: of `rank_results`.
        options: those that it was made with.
        gate: sentences of the gate, where there is one.
    """
    text = [*answers(report), *gate, ""]
    for table in tables_of(report):
        ranked_by = [name for name in table.header if name.endswith("[95%]")][:1]
        rows = [table.header, *table.rows]
        text += [table.title, "", *text_table(rows, "--tables FOLDER has them", fixed_columns=ranked_by), ""]
    text += [f"note: {line}" for line in report.notes]
    resamples = (
        f"Intervals: 95%, of means {options.draws} bootstrap resamples of prompts, of differences those of the test. Failed "
        f"verdicts: {options.policy}."
    )
    return [*text, *cautions(report), resamples, _MORE]


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
    tables = [
        *(table for member in report.corrected for table in corrected_tables(member)),
        *ranking_tables(report.shown_generators, {(c.ranking.benchmark, c.ranking.judge) for c in report.corrected}),
        *contest_tables(report.shown_contests),
        *report.totals,
        *([report.annotators] if report.annotators else []),
    ]
    sentences = (escaping.markdown(line) for line in (*answers(report), *cautions(report), protocol(options)))
    page = ["# Ranking of generators\n", *(f"{sentence}\n" for sentence in sentences)]
    long = [
        *long_tables(report.shown_generators, report.corrected, report.shown_contests),
        report.annotators or annotator_table(_NOBODY),
    ]
    document = {
        "failures": options.policy,
        "draws": options.draws,
        "seed": options.seed,
        "level": LEVEL,
        "answers": answers(report),
        "notes": report.notes,
        **{table.name: [_by_name(table.header, row) for row in table.rows] for table in (*long, *report.totals)},
    }
    texts = (
        "\n".join([*page, *(f"Note: {escaping.markdown(line)}\n" for line in report.notes), *map(markdown, tables)]),
        *map(csv_text, long),
        json.dumps(document, indent=1, allow_nan=False),
    )
    for name, text in zip(FILES, texts, strict=True):
        write_whole(folder / name, [text])


_NOBODY = HumanRatings({}, {}, {})


def cautions(report: RankReport) -> list[str]:
    """Lines on what a judge's mean is worth, with people's ratings and without."""
    if report.corrected_answers:
        return [_CORRECTED]
    return [CAUTION] if not report.annotators and any(r.statistic != WIN_RATE for r in report.main) else []


def _by_name(header: Sequence[str], row: Sequence[str]) -> dict[str, object]:
    return {name: _value(cell) for name, cell in zip(header, row, strict=True)}


def _value(cell: str) -> object:
    try:
        number = float(cell)
    except ValueError:
        return cell
    return number if math.isfinite(number) else None
