"""Tables from results: `vieval report`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.errors import VievalError
from vieval_plugin.media.files import write_folder
from vieval_plugin.meta_evaluation.headline import Headline
from vieval_plugin.meta_evaluation.ratings import HumanRatings, annotator_table
from vieval_plugin.meta_evaluation.reference_ranking import ORDER, ranking_against
from vieval_plugin.meta_evaluation.tables import Table, Tables, printed_tables
from vieval_plugin.records import OWN, YOUR_IMAGES, Run
from vieval_plugin.report.folder_totals import totals_tables
from vieval_plugin.report.headlines.costs import durations
from vieval_plugin.report.headlines.leaderboards import Leaderboard, LeaderboardRow, leaderboards
from vieval_plugin.report.headlines.sentences import format_estimate, sentence_by_another_aspect, sentences
from vieval_plugin.report.headlines.tables import headline_lines
from vieval_plugin.report.inputs import rated_runs, read_order
from vieval_plugin.report.leaderboard import NOTE, leaderboard_tables, rounded
from vieval_plugin.report.own_samples import benchmarks_with_runs, win_rate_answers
from vieval_plugin.report.page.page import PageSection, page, subject
from vieval_plugin.report.printed_cells import PrintedComparison, compare_with_printed
from vieval_plugin.report.rendering import csv_text, markdown
from vieval_plugin.report.same_scores import same_scores
from vieval_plugin.report.several_judges import judges_together
from vieval_plugin.report.verdict_tables import findings_tables, trained_on_tables
from vieval_plugin.results.runs import Results
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text import escaping
from vieval_plugin.text.tables import text_table

PAGE = "report.html"
_ELSEWHERE = "report.md has them"


@dataclass(frozen=True)
class WrittenReport:
    """Summary of a written report: its cells beside printed ones, None where none were given, and its headlines in lines."""

    comparison: PrintedComparison | None
    headlines: tuple[str, ...]


def write_report(
    results: Results,
    folder: Path,
    options: StatisticsOptions,
    expected: Path | None = None,
    order: Path | None = None,
    training_records: Sequence[Path] = (),
    ratings: HumanRatings | None = None,
) -> WrittenReport:
    """Write `report.html`, `report.md`, a CSV for each table and `cells.json` to a folder.

    Cells are compared with printed ones if asked. What an earlier report wrote there and this one does not is removed.

    Args:
        results: what runs left behind.
        folder: the report's, made where it is not there.
        options: what failed verdicts and ratings not given are, how many draws, the seed.
        expected: a CSV of printed cells, in the form that `expect` reads.
        order: a file with an image model a line, the best first, that rankings are compared with.
        training_records: of trained models that answered, whose folders the results do not name.
        ratings: people's, in the place of those that benchmarks have.

    Returns:
        The comparison and headlines to print in a terminal.

    Raises:
        VievalError: for results whose benchmark is not known, and ratings of none of them, before anything is written.
    """
    runs, notes = rated_runs(results, ratings)
    win_rates = win_rate_answers(runs, options)
    seconds = durations(runs)
    runs_of_benchmarks = benchmarks_with_runs(runs)
    score_notes = [
        f"{YOUR_IMAGES if benchmark.name == OWN else benchmark.name}: {sentence}"
        for benchmark, benchmark_runs in runs_of_benchmarks
        for sentence in same_scores(benchmark_runs)
    ]
    notes = [*score_notes, *notes]
    reference_order = read_order(order) if order else ()
    sections = []
    for benchmark, benchmark_runs in runs_of_benchmarks:
        tables = _section(benchmark, benchmark_runs, options, reference_order, training_records)
        if benchmark.name == OWN:
            tables = replace(tables, tables=(*totals_tables(results.totals), *tables.tables))
        boards = leaderboards(tables.headlines, benchmark.name, benchmark_runs, options, seconds, benchmark.synthetic)
        sections.append(PageSection(benchmark, benchmark_runs, tables, boards))
    judges, judge_notes = leaderboard_tables({section.benchmark.name: section.boards for section in sections}, options)
    if order and not any(key.table == ORDER for section in sections for key in section.tables.cells):
        raise VievalError(
            f"{order}: no results have scores of two of its image models; it names {', '.join(reference_order[:5])}"
        )
    cells = {key: value for section in sections for key, value in section.tables.cells.items()}
    comparison = compare_with_printed(expected, cells) if expected else None
    joint_answers = _joint_answers(sections)
    answers = [*joint_answers, *win_rates, *_answers(sections)]
    titles = [*win_rates, *_answers(sections, with_subject=False)]
    parts = [
        f"# {subject(sections)}\n",
        *(f"{escaping.markdown(answer)}\n" for answer in answers),
        f"{_protocol(options)}\n",
    ]
    parts += [f"Note: {escaping.markdown(note)}\n" for note in notes]
    parts += [markdown(annotator_table(ratings))] if ratings else []
    files: dict[str, str] = {}
    if judges:
        parts += ["## Which judge is better\n", f"{NOTE}\n", *(markdown(rounded(table)) for table in judges)]
        parts += [f"Note: {escaping.markdown(note)}\n" for note in judge_notes]
        files |= {f"{table.name}.csv": csv_text(table) for table in judges}
    for section in sections:
        name = section.benchmark.name
        title = section.title if name == OWN else name
        parts.append(f"## {title}\n\n{section.benchmark.note}\n")
        parts += [f"Note: {line}\n" for line in section.mark_notes]
        for table in (*section.headlines, *section.tables.tables):
            parts.append(markdown(table))
            files[f"{name}_{table.name}.csv"] = csv_text(table)
    if comparison:
        # a line of its own begins with our words, so that none can end the fence
        parts += ["## Compared with printed cells\n", "```", *map(escaping.console, comparison.lines()), "```", ""]
    documents = [
        {"benchmark": section.benchmark.name, "cells": _cell_documents(section.tables), **section.tables.document}
        for section in sections
    ]
    files["report.md"] = "\n".join(parts)
    over_benchmarks = rounded(judges[0]) if len(judges) > 1 else None
    # of one answer the page says above it whose scores it is of
    files[PAGE] = page(
        answers if len(answers) > 1 else titles,
        sections,
        options,
        _protocol(options).replace("`", ""),
        over_benchmarks,
        notes,
    )
    files["cells.json"] = json.dumps(documents, indent=1, allow_nan=False)
    write_folder(folder, files)
    lines = (line for section in sections for line in _first_lines(section))
    return WrittenReport(
        comparison, (*joint_answers, *win_rates, *lines, *(f"note: {note}" for note in (*score_notes, *results.notes)))
    )


def _answers(sections: Sequence[PageSection], with_subject: bool = True) -> list[str]:
    """The first sentence on each benchmark, or one a judge where generators are judged, and those by other aspects."""
    return [
        sentence
        for section in sections
        for sentence in (
            *(sentences(board, with_subject)[0] for board in _boards(section)),
            *_by_other_aspects(section),
        )
    ]


def _by_other_aspects(section: PageSection) -> list[str]:
    """A sentence by each further aspect that judges rate who lack that of the first board."""
    boards = [board for board in section.boards if not board.headline.judge]
    aspect = boards[0].headline.aspect if boards else ""
    compared = {label for board in boards if board.headline.aspect == aspect for label in board.headline.estimates}
    lines = []
    for board in boards:
        if lacking_judges := [row.label for row in board.rows if row.label not in compared]:
            lines.append(sentence_by_another_aspect(board, lacking_judges, aspect))
            compared.update(lacking_judges)
    return lines


def _joint_answers(sections: Sequence[PageSection]) -> list[str]:
    """The answer of all judges of generators together, where they judged the same images and one alone is not the answer."""
    if len(sections) != 1:
        return []
    names = {run.label: run.name for run in sections[0].runs}
    boards = [board for board in _boards(sections[0]) if board.headline.judge in names]
    return list(filter(None, [judges_together([(names[b.headline.judge], b.comparison) for b in boards])]))


def _boards(section: PageSection) -> Sequence[Leaderboard]:
    """Boards that answer for a benchmark: one a judge where generators are judged, else the default."""
    generators_alone = all(board.headline.judge for board in section.boards)
    return section.boards if generators_alone else section.boards[:1]


def _first_lines(section: PageSection) -> list[str]:
    """Lines for a terminal: a benchmark's first headline as a table and in words, and the others in a line each."""
    if not section.boards:
        return [line for table in section.tables.tables[:1] for line in _titled(table)]
    if len(section.boards) > 1 and section.boards[0].headline.judge:
        return _lines_of_judges(section)
    board, [table, *_] = section.boards[0], section.headlines
    other_lines = [f"{_name(b.headline)}: {', '.join(map(_in_line, b.rows))}" for b in section.boards[1:]]
    title = f"{section.benchmark.name}: {section.in_page_words(board.headline.title)}"
    board_lines = headline_lines(board, table, _ELSEWHERE)
    answers = (*sentences(board), *_by_other_aspects(section))
    return [*answers, "", title, "", *board_lines, *other_lines, *section.mark_notes, ""]


def _titled(table: Table) -> list[str]:
    return ["", table.title, "", *text_table([table.header, *table.rows], _ELSEWHERE), ""]


def _in_line(row: LeaderboardRow) -> str:
    marks = f" ({'; '.join(row.marks)})" if row.marks else ""
    return f"{row.label} {format_estimate(row.estimate)}{marks}"


def _lines_of_judges(section: PageSection) -> list[str]:
    """Lines for a terminal where generators are judged: a block a judge, with the answer and a table."""
    lines: list[str] = []
    for board, table in zip(section.boards, section.headlines, strict=True):
        lines += [*sentences(board), "", *headline_lines(board, table, _ELSEWHERE), ""]
    return lines


def _name(headline: Headline) -> str:
    """The aspect, and whose scores they are where rows are generators."""
    return f"{headline.aspect} by {headline.judge}" if headline.judge else headline.aspect


def _section(
    benchmark: Benchmark,
    runs: Sequence[Run],
    options: StatisticsOptions,
    order: Sequence[str],
    training_records: Sequence[Path],
) -> Tables:
    """Tables of one benchmark: samples that judges were trained on, its own, the ranking against an order, findings."""
    parts = tuple(benchmark.parts)
    benchmark_tables = benchmark.report.tables(benchmark.name, parts, runs, options)
    table, cells, reasons = ranking_against(order, parts, runs, options)
    ranked = (table,) if table.rows else ()
    return replace(
        benchmark_tables,
        tables=(
            *trained_on_tables(runs, training_records),
            *benchmark_tables.tables,
            *printed_tables(benchmark.printed),
            *ranked,
            *findings_tables(runs),
        ),
        cells={**benchmark_tables.cells, **cells},
        reasons={**benchmark_tables.reasons, **reasons},
    )


def _protocol(options: StatisticsOptions) -> str:
    missing = f" Missing ratings: `{options.missing_ratings}`." if options.missing_ratings != "drop" else ""
    return (
        f"Failed verdicts: `{options.policy}`.{missing} Intervals: 95%, {options.draws} bootstrap draws of instructions, "
        f"seed {options.seed}. n counts samples for which the judge scored every aspect it rates, and contests whether it answered or not."
    )


def _cell_documents(section: Tables) -> list[dict[str, object]]:
    """Every number once more for programs; an undefined one is null, with the reason where it is known."""
    return [
        {**asdict(key), "value": None, "undefined": section.reasons.get(key, "")}
        if math.isnan(value)
        else {**asdict(key), "value": value}
        for key, value in sorted(section.cells.items())
    ]
