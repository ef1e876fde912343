"""Output of `vieval report`, `rank` and `compare`: the same lines, tables and files for the same
results.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.media.files import write_folder, write_whole
from vieval_plugin.meta_evaluation.comparison import (
    ComparedStatistic,
    average_benchmarks,
    compare_systems,
)
from vieval_plugin.meta_evaluation.costs import durations
from vieval_plugin.meta_evaluation.findings import Findings, Leaderboard
from vieval_plugin.meta_evaluation.ratings import HumanRatings
from vieval_plugin.meta_evaluation.reference_ranking import ORDER, read_order
from vieval_plugin.meta_evaluation.tables import (
    Key,
    Table,
    csv_text,
    markdown,
    printed_tables,
)
from vieval_plugin.records import OWN
from vieval_plugin.report.answer import Answer, lines_of
from vieval_plugin.report.files import finding_texts
from vieval_plugin.report.page.page import page, subject
from vieval_plugin.report.printed_cells import PrintedComparison, compare_with_printed
from vieval_plugin.report.sections import Report, Section, sections_of
from vieval_plugin.report.tables import (
    contest_table,
    corrected_tables,
    cost_table,
    leaderboard_table,
    mark_notes,
    pairs_table,
    rank_text,
    remarks_tables,
    statuses_table,
    table_lines,
    trained_on_tables,
)
from vieval_plugin.report.words import protocol, reason_words
from vieval_plugin.results.runs import Results
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text import escaping
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import decimals

if TYPE_CHECKING:
    from vieval_plugin.report.gate import Gate

PAGE = "report.html"
REPORT_MD = "report.md"
RANK_MD = "rank.md"
_CORRECTED = (
    "Corrected means estimate people's ratings by prediction-powered inference. Their "
    "intervals include the uncertainty of the ratings."
)


def _boards(report: Report) -> list[Leaderboard]:
    """Return all rankings of a report, those of generators first."""
    return [board for _, board in (*report.generators, *report.judges)]


def cautions(report: Report) -> list[str]:
    """Lines on what marks mean, and on what a corrected mean is worth."""
    boards = _boards(report)
    notes = mark_notes(boards)
    if any(board.measure.uses_ratings for board in boards):
        notes.append(_CORRECTED)
    return notes


def tables_of(report: Report) -> list[Table]:
    """Tables that a reader of the answers needs: those of their leaderboards, and what people
    said.
    """
    tables: list[Table] = []
    for section, board in report.generators:
        # of two generators the answer has the difference
        if board.measure.uses_ratings:
            tables += corrected_tables(section.corrections[board.judge], fewest_pairs=2)
        else:
            tables.append(leaderboard_table(board, section.beside(board)))
            if len(board.comparison.all_pairs) > 1:
                tables += [pairs_table(board)]
    # of two image models a strength says what a win rate does
    contests = [ranking for section in report.sections for ranking in section.contests]
    tables += [
        contest_table(ranking) for ranking in contests if len(ranking.board.numbers) > 2
    ]
    for section, board in report.judges:
        board_tables = [leaderboard_table(board)]
        if report.which == "judges" and board.comparison.all_pairs:
            board_tables.append(pairs_table(board))
        tables += [
            replace(table, title=section.page_words(table.title))
            for table in board_tables
        ]
    tables += [
        statuses_table(section.runs)
        for section in report.sections
        if not section.boards
    ]
    return [*tables, *report.further]


def section_tables(
    section: Section,
    seconds: Mapping[tuple[str, str], str],
    records: Sequence[Path] = (),
) -> list[Table]:
    """All tables of a section, each under a name of its own.

    Args:
        section: of a report.
        seconds: of a benchmark and a judge, in words.
        records: training records of models that answered, whose folders the results do not name.
    """
    overall = [
        board
        for board in section.boards
        if board.ranks_generators and not board.breakdown
    ]
    generators = [
        board
        for board in dict.fromkeys((*section.generators, *overall))
        if not board.measure.uses_ratings
    ]
    tables: list[Table] = []
    for member in section.corrected:
        tables += corrected_tables(member)
    for n, board in enumerate((*section.headlines, *generators), 1):
        table = leaderboard_table(board, section.beside(board), f"headline_{n}")
        tables.append(replace(table, title=section.page_words(table.title)))
    paired = [board for board in generators if board.comparison.all_pairs]
    for n, board in enumerate(paired, 1):
        tables.append(pairs_table(board, f"differences_{n}"))
    tables += [contest_table(ranking) for ranking in section.contests]
    tables.append(cost_table(section.runs, seconds))
    tables += trained_on_tables(section.runs, records)
    tables += section.findings.tables
    tables += printed_tables(section.benchmark.printed)
    tables += remarks_tables(section.runs)
    tables.append(statuses_table(section.runs))
    return _numbered(tables)


def _numbered(tables: Sequence[Table]) -> list[Table]:
    """The tables, those of one name numbered."""
    counts = Counter(table.name for table in tables)
    numbers = defaultdict[str, int](int)
    named = []
    for table in tables:
        numbers[table.name] += 1
        name = table.name
        if counts[name] > 1:
            name = f"{name}_{numbers[name]}"
        named.append(replace(table, name=name))
    return named


def lines(
    report: Report,
    options: StatisticsOptions,
    gate: Answer | None = None,
    elsewhere: str = "",
) -> list[str]:
    """Lines for a terminal: the answers, a table of each leaderboard, and what else there is to
    know.

    Args:
        report: of `sections_of`.
        options: those that it was made with.
        gate: the answer of the gate, which stands in the place of all others where there is one.
        elsewhere: where columns are that do not fit.
    """
    answers = [gate] if gate else report.answers
    text = [*lines_of(answers), ""]
    for table in tables_of(report):
        text += table_lines(table, elsewhere)
    notes = [*report.notes]
    for _, board in report.judges:
        comparison = board.comparison
        notes += comparison.compared.notes
        for pair in comparison.all_pairs:
            notes += pair.notes
    text += [f"note: {note}" for note in dict.fromkeys(notes)]
    protocols = _protocols(report, options, is_gate=gate is not None)
    return [*text, *cautions(report), *protocols]


def _protocols(
    report: Report,
    options: StatisticsOptions,
    is_gate: bool = False,
) -> list[str]:
    """Methods behind the numbers, once for each kind of system, with tests where any were made."""
    boards = _boards(report)
    tested = [board for board in boards if board.comparison.all_pairs]
    protocol_arguments = (
        (
            b.unit,
            b.entrants,
            bool(tested),
            b.measure.uses_ratings,
            b.comparison.compared.level,
        )
        for b in tested or boards
    )
    return [
        protocol(options, *board_arguments, is_gate)
        for board_arguments in dict.fromkeys(protocol_arguments)
    ]


def markdown_text(
    report: Report,
    options: StatisticsOptions,
    tables: Sequence[Sequence[Table]],
    over: Table | None = None,
    comparison: PrintedComparison | None = None,
) -> str:
    """All of a report as Markdown.

    Args:
        report, options: as for `lines`.
        tables: those of each section.
        over: the judges over all benchmarks.
        comparison: with printed cells.
    """
    parts = [f"# {escaping.markdown(subject(report))}\n"]
    protocols = _protocols(report, options)
    sentences = (*lines_of(report.answers), *cautions(report), *protocols)
    parts += [f"{escaping.markdown_sentence(line)}\n" for line in sentences]
    parts += [f"Note: {escaping.markdown_sentence(note)}\n" for note in report.notes]
    parts += map(markdown, report.further)
    if over:
        parts.append(markdown(over))
    for section, tables_of_section in zip(report.sections, tables, strict=True):
        name = section.benchmark.name
        title = section.title if name == OWN else name
        parts.append(f"## {title}\n")
        parts += [f"{section.benchmark.note}\n", *map(markdown, tables_of_section)]
    if comparison:
        # a line of its own begins with our words, so that none can end the fence
        printed = map(escaping.console, comparison.lines())
        parts += ["## Compared with printed cells\n", "```", *printed, "```", ""]
    return "\n".join(parts)


def write_tables(
    report: Report,
    folder: Path,
    options: StatisticsOptions,
    name: str = "",
) -> list[Path]:
    """Write the files of findings to a folder; the files in order.

    Under a name also all tables as Markdown, and the findings as parquet files, which are not
    among those returned.
    """
    texts: dict[str, str | bytes] = {}
    if name:
        tables = [section_tables(section, {}) for section in report.sections]
        texts[name] = markdown_text(report, options, tables)
    texts |= finding_texts(report, options, parquet=bool(name))
    for file, text in texts.items():
        write_whole(folder / file, [text])
    return [folder / file for file in texts if not file.endswith(".parquet")]


def write_csv(tables: Sequence[Table], folder: Path) -> list[Path]:
    """Write each table to a CSV file of its name; the files in order."""
    files = {folder / f"{table.name}.csv": csv_text(table) for table in tables}
    for path, text in files.items():
        write_whole(path, [text])
    return list(files)


def write_page(
    report: Report,
    path: Path,
    options: StatisticsOptions,
    gate: Gate | None = None,
) -> None:
    """Write the page alone as one file.

    Args:
        report, options: as for `lines`.
        path: the file.
        gate: decides, where there is one: the page begins with it, and with the prompts on which
            its generator fell most.
    """
    tables = [section_tables(section, {}) for section in report.sections]
    protocols = _protocols(report, options, is_gate=gate is not None)
    text = page(report, options, path.parent, tables, protocols, gate=gate)
    write_whole(path, [text], "--html")


@dataclass(frozen=True)
class WrittenReport:
    """A report: its cells beside printed ones, None where none were given, and its lines."""

    comparison: PrintedComparison | None
    lines: tuple[str, ...]
    #: The report itself.
    report: Report


def write_report(
    results: Results,
    folder: Path | None,
    options: StatisticsOptions,
    expected: Path | None = None,
    order: Path | None = None,
    training_records: Sequence[Path] = (),
    ratings: HumanRatings | None = None,
) -> WrittenReport:
    """Write `report.html`, `report.md`, all numbers, a CSV for each table and `cells.json` to a
    folder.

    Cells are compared with printed ones if asked. What an earlier report wrote there and this one
    does not is removed.

    Args:
        results: what runs left behind.
        folder: the report's, made where it is not there; None to write nothing.
        options: what failed verdicts and ratings not given are, how many draws, the seed.
        expected: a CSV of printed cells, in the form that `expect` reads.
        order: a file with an image model a line, the best first, that rankings are compared with.
        training_records: of trained models that answered, whose folders the results do not name.
        ratings: people's, in the place of those that benchmarks have.

    Returns:
        The comparison and the lines to print in a terminal.

    Raises:
        VievalError: for results whose benchmark is not known, and ratings of none of them, before
            anything is written.
    """
    reference_order = read_order(order) if order else ()
    report = sections_of(results, "all", options, ratings, reference_order)
    cells = _cells(report)
    if order and not any(key.table == ORDER for key in cells):
        names = ", ".join(reference_order[:5])
        raise VievalError(
            f"{order}: the results must have scores for at least two "
            "of its image models; "
            f"it lists {names}"
        )
    comparison = compare_with_printed(expected, cells) if expected else None
    elsewhere = f"see {REPORT_MD}" if folder else ""
    printed_lines = tuple(lines(report, options, elsewhere=elsewhere))
    written = WrittenReport(comparison, printed_lines, report)
    if folder is None:
        return written
    seconds = durations(report.runs)
    tables = [
        section_tables(section, seconds, training_records)
        for section in report.sections
    ]
    over = _benchmark_average(report.sections, options)
    files = _table_files(report, tables, over)
    files[REPORT_MD] = markdown_text(report, options, tables, over, comparison)
    files["cells.json"] = _cells_text(report)
    files |= finding_texts(report, options)
    protocols = _protocols(report, options)
    files[PAGE] = page(report, options, folder, tables, protocols, over)
    write_folder(folder, files)
    return written


def _cells(report: Report) -> dict[Key, float]:
    cells: dict[Key, float] = {}
    for section in report.sections:
        cells |= section.findings.cells
    return cells


def _cells_text(report: Report) -> str:
    """All cells as JSON, those of each benchmark under its name."""
    documents = [
        {
            "benchmark": section.benchmark.name,
            "cells": _cell_documents(section.findings),
        }
        for section in report.sections
    ]
    return json.dumps(documents, indent=1, allow_nan=False)


def _table_files(
    report: Report,
    tables: Sequence[Sequence[Table]],
    over: Table | None,
) -> dict[str, str | bytes]:
    """A CSV of each table by its name, after that of its benchmark where it is of one."""
    files: dict[str, str | bytes] = {}
    for section, tables_of_section in zip(report.sections, tables, strict=True):
        benchmark = section.benchmark.name
        for table in tables_of_section:
            files[f"{benchmark}_{table.name}.csv"] = csv_text(table)
    for table in report.further:
        files[f"{table.name}.csv"] = csv_text(table)
    if over:
        files[f"{over.name}.csv"] = csv_text(over)
    return files


def _benchmark_average(
    sections: Sequence[Section], options: StatisticsOptions
) -> Table | None:
    """Judges by the mean over benchmarks, where there are several that rank them."""
    tested = dict[str, list[ComparedStatistic]]()
    for section in sections:
        for board in section.headlines:
            is_default = board.aspect == section.headlines[0].aspect
            if is_default and board.comparison.all_pairs:
                compared = tested.setdefault(section.benchmark.name, [])
                compared.append(board.comparison.compared)
    if len(tested) < 2:
        return None
    statistic = average_benchmarks(tested)
    comparison = compare_systems(statistic, statistic.part, options, intervals=False)
    rows = []
    for system in comparison.systems:
        rank = rank_text(system.ranks)
        value = decimals(system.value, ".3f")
        reason = reason_words(system.undefined or system.unranked)
        rows.append((rank, system.label, value, str(system.n), reason))
    title = f"Judges: {comparison.compared.statistic}; {comparison.family}"
    header = ("rank", "judge", "value", "n", "why not ranked")
    return Table("over_benchmarks", title, header, tuple(rows))


def _cell_documents(findings: Findings) -> list[dict[str, object]]:
    """Every number once more for programs; an undefined one is null, with the reason where it is
    known.
    """
    documents = []
    reasons = findings.reasons
    for key, value in sorted(findings.cells.items()):
        undefined = {
            "value": None,
            "undefined": reasons.get(key, ""),
        }
        documents.append(
            {
                **asdict(key),
                **(undefined if math.isnan(value) else {"value": value}),
            }
        )
    return documents
