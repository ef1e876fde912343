"""Tables, numbers and a page from results: `vieval report`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.media.files import write_folder
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic, compare_systems, over_benchmarks
from vieval_plugin.meta_evaluation.costs import durations
from vieval_plugin.meta_evaluation.findings import Findings, layouts
from vieval_plugin.meta_evaluation.leaderboards import headlines
from vieval_plugin.meta_evaluation.ratings import HumanRatings, annotator_table
from vieval_plugin.meta_evaluation.reference_ranking import ORDER, ranking_against
from vieval_plugin.meta_evaluation.tables import Table, printed_tables
from vieval_plugin.meta_evaluation.win_rates import position_bias
from vieval_plugin.records import OWN, Run
from vieval_plugin.report.answer import Answer, agreement_notes, answer, lines_of, placed, together
from vieval_plugin.report.files import finding_texts
from vieval_plugin.report.inputs import rated_runs, read_order
from vieval_plugin.report.own_samples import against, benchmarks_with_runs
from vieval_plugin.report.page.page import PageSection, page, subject
from vieval_plugin.report.printed_cells import PrintedComparison, compare_with_printed
from vieval_plugin.report.rendering import csv_text, markdown
from vieval_plugin.report.same_scores import same_scores
from vieval_plugin.report.tables import (
    cost_table,
    leaderboard_lines,
    leaderboard_table,
    mark_notes,
    pairs_table,
    rank_text,
    remarks_tables,
    statuses_table,
    totals_tables,
    trained_on_tables,
)
from vieval_plugin.report.words import reason_words
from vieval_plugin.results.runs import Results
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text import escaping
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.tables import text_table
from vieval_plugin.text.wording import decimals, enumeration

PAGE = "report.html"
_ELSEWHERE = "report.md has them"


@dataclass(frozen=True)
class WrittenReport:
    """Summary of a written report: its cells beside printed ones, None where none were given, and its lines."""

    comparison: PrintedComparison | None
    lines: tuple[str, ...]


def write_report(
    results: Results,
    folder: Path,
    options: StatisticsOptions,
    expected: Path | None = None,
    order: Path | None = None,
    training_records: Sequence[Path] = (),
    ratings: HumanRatings | None = None,
) -> WrittenReport:
    """Write `report.html`, `report.md`, all numbers, a CSV for each table and `cells.json` to a folder.

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
        The comparison and the lines to print in a terminal.

    Raises:
        VievalError: for results whose benchmark is not known, and ratings of none of them, before anything is written.
    """
    runs, notes = rated_runs(results, ratings)
    records = (record for run in runs for rows in chain(*run.records.values()) for record in rows)
    notes += filter(None, dict.fromkeys(record.provenance.calibration_note for record in records))
    seconds, reference_order = durations(runs), read_order(order) if order else ()
    sections: list[PageSection] = []
    for benchmark, benchmark_runs in benchmarks_with_runs(runs):
        findings = _findings(benchmark, benchmark_runs, options, reference_order)
        boards = headlines(findings, benchmark.name, benchmark_runs, options, against(benchmark))
        tables = [cost_table(benchmark_runs, seconds), *trained_on_tables(benchmark_runs, training_records)]
        tables += totals_tables(results.totals) if benchmark.name == OWN else []
        generators = [board for board in boards if board.is_of_generators and board.comparison.all_pairs]
        tables += [pairs_table(board, f"differences_{n}") for n, board in enumerate(generators, start=1)]
        tables += findings.tables
        tables += [*printed_tables(benchmark.printed), *remarks_tables(benchmark_runs), statuses_table(benchmark_runs)]
        by_name = {run.name: position_bias(run, options) for run in benchmark_runs if any(b.judge for b in boards)}
        of_boards = tuple(answer(board, by_name.get(board.judge) if board.judge else None) for board in boards)
        sections.append(PageSection(benchmark, benchmark_runs, findings, tuple(tables), tuple(boards), of_boards))
        judge_notes = [*same_scores(benchmark_runs), *agreement_notes(benchmark_runs, options)]
        notes = [*(f"{sections[-1].title}: {sentence}" for sentence in judge_notes), *notes]
    if order and not any(key.table == ORDER for section in sections for key in section.findings.cells):
        raise VievalError(
            f"{order}: no results have scores of two of its image models; it names {', '.join(reference_order[:5])}"
        )
    cells = {key: value for section in sections for key, value in section.findings.cells.items()}
    comparison = compare_with_printed(expected, cells) if expected else None
    answers = _answers(sections)
    over = _over_benchmarks(sections, options)
    files: dict[str, str | bytes] = {
        f"{section.benchmark.name}_{table.name}.csv": csv_text(table)
        for section in sections
        for table in (*section.leaderboard_tables, *section.tables)
    }
    files |= {f"{over.name}.csv": csv_text(over)} if over else {}
    files["report.md"] = _markdown(sections, answers, notes, over, comparison, options, ratings)
    documents = [
        {"benchmark": section.benchmark.name, "cells": _cell_documents(section.findings)} for section in sections
    ]
    files["cells.json"] = json.dumps(documents, indent=1, allow_nan=False)
    numbers = [(section.benchmark.name, number) for section in sections for number in section.findings.numbers]
    all_boards = [board for section in sections for board in section.boards]
    numbers += [(board.benchmark, number) for board in all_boards for number in board.references]
    ranks = {(b.benchmark, id(n.estimate)): n for b in all_boards for n in b.numbers}
    numbers = [(name, ranks.get((name, id(number.estimate)), number)) for name, number in numbers]
    files |= finding_texts(numbers, all_boards, answers, options, notes)
    files[PAGE] = page(answers, sections, options, _protocol(options).replace("`", ""), over, notes)
    write_folder(folder, files)
    lines = lines_of(answers)
    lines += [line for section in sections for line in _terminal_lines(section)]
    return WrittenReport(comparison, (*lines, *(f"note: {note}" for note in notes)))


def _findings(benchmark: Benchmark, runs: Sequence[Run], options: StatisticsOptions, order: Sequence[str]) -> Findings:
    """What a benchmark's family finds, and the ranking of its image models beside an order."""
    parts = tuple(benchmark.parts)
    findings = benchmark.report.findings(benchmark.name, parts, runs, options)
    of_order = tuple(ranking_against(order, parts or tuple(runs[0].records), runs, options))
    return findings + Findings(of_order, layouts=layouts("order"))


def _answers(sections: Sequence[PageSection]) -> list[Answer]:
    """The answer on each benchmark, or one a judge where generators are judged, and those by other aspects."""
    answers: list[Answer] = []
    for section in sections:
        pairs = list(zip(section.boards, section.answers, strict=True))
        of_judges = [pair for pair in pairs if not pair[0].is_of_generators]
        if not of_judges and (joint := together(section.boards)):
            answers.append(Answer(joint, ""))
        compared: set[str] = set()
        for board, of_board in of_judges:
            lacking = [number.system for number in board.numbers if number.system not in compared]
            if not compared:
                answers.append(of_board)
            elif lacking:
                have = "has" if len(lacking) == 1 else "have"
                names = enumeration(lacking) if len(lacking) < 4 else f"{len(lacking)} others"
                title = f"By {board.aspect}, as {names} {have} no {of_judges[0][0].aspect}: {of_board.title}"
                answers.append(replace(of_board, title=title))
            compared.update(lacking)
        for board, of_board in () if of_judges else pairs:
            answers.append(placed(of_board, str(board.judge)) if len(pairs) > 1 else of_board)
    return answers


def _over_benchmarks(sections: Sequence[PageSection], options: StatisticsOptions) -> Table | None:
    """Judges by the mean over benchmarks, where there are several that rank them."""
    tested = dict[str, list[ComparedStatistic]]()
    for section in sections:
        for board in (board for board in section.boards if board.aspect == section.boards[0].aspect):
            if not board.is_of_generators and board.comparison.all_pairs:
                tested.setdefault(section.benchmark.name, []).append(board.comparison.compared)
    if len(tested) < 2:
        return None
    statistic = over_benchmarks(tested)
    comparison = compare_systems(statistic, statistic.part, options, intervals=False)
    rows = []
    for standing in comparison.standings:
        system, value = standing.system, decimals(standing.value, ".3f")
        why_not = reason_words(system.undefined or system.unranked)
        rows.append((rank_text(standing.ranks), system.label, value, str(system.n), why_not))
    title = f"Judges: {comparison.compared.statistic}; {comparison.family}"
    return Table("over_benchmarks", title, ("rank", "judge", "value", "n", "why not ranked"), tuple(rows))


def _markdown(
    sections: Sequence[PageSection],
    answers: Sequence[Answer],
    notes: Sequence[str],
    over: Table | None,
    comparison: PrintedComparison | None,
    options: StatisticsOptions,
    ratings: HumanRatings | None,
) -> str:
    parts = [f"# {subject(sections)}\n"]
    parts += [f"{escaping.markdown(line)}\n" for line in lines_of(answers)]
    parts += [f"{_protocol(options)}\n", *(f"Note: {escaping.markdown(note)}\n" for note in notes)]
    parts += [markdown(annotator_table(ratings))] if ratings else []
    parts += [markdown(over)] if over else []
    for section in sections:
        parts.append(f"## {section.title if section.benchmark.name == OWN else section.benchmark.name}\n")
        parts.append(f"{section.benchmark.note}\n")
        parts += [f"Note: {line}\n" for line in mark_notes(section.boards)]
        parts += map(markdown, (*section.leaderboard_tables, *section.tables))
    if comparison:
        # a line of its own begins with our words, so that none can end the fence
        parts += ["## Compared with printed cells\n", "```", *map(escaping.console, comparison.lines()), "```", ""]
    return "\n".join(parts)


def _terminal_lines(section: PageSection) -> list[str]:
    """Lines for a terminal: the leaderboards that answer for a benchmark as tables."""
    lines: list[str] = []
    for board in section.boards:
        if section.boards[0].is_of_generators or not board.is_of_generators:
            table = leaderboard_table(board)
            lines += ["", section.in_page_words(table.title), "", *leaderboard_lines(board, table, _ELSEWHERE)]
    if not section.boards and section.tables:
        table = section.tables[0]
        lines = ["", table.title, "", *text_table([table.header, *table.rows], _ELSEWHERE)]
    return [*lines, *mark_notes(section.boards), ""]


def _protocol(options: StatisticsOptions) -> str:
    missing = f" Missing ratings: `{options.missing_ratings}`." if options.missing_ratings != "drop" else ""
    return (
        f"Failed verdicts: `{options.policy}`.{missing} Intervals: 95%, {options.draws} bootstrap draws of instructions, "
        f"seed {options.seed}. n counts samples for which the judge scored every aspect it rates, and contests whether it answered or not."
    )


def _cell_documents(findings: Findings) -> list[dict[str, object]]:
    """Every number once more for programs; an undefined one is null, with the reason where it is known."""
    documents, reasons = [], findings.reasons
    for key, value in sorted(findings.cells.items()):
        undefined = {"value": None, "undefined": reasons.get(key, "")}
        documents.append({**asdict(key), **(undefined if math.isnan(value) else {"value": value})})
    return documents
