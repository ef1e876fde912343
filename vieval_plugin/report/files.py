"""The files of findings: `numbers.csv` and `pairs.csv` with all numbers, `findings.json` with the
answers as well.

A folder of tables has the two as parquet files too, where pyarrow is installed.
"""

from __future__ import annotations

import importlib.util
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import chain

from vieval_plugin.meta_evaluation.corrected_ranking import CorrectedRanking
from vieval_plugin.meta_evaluation.findings import ALL, Leaderboard, Number
from vieval_plugin.meta_evaluation.rows import (
    NumberRow,
    PairRow,
    number_row,
    pair_rows,
    row_table,
)
from vieval_plugin.meta_evaluation.tables import csv_text
from vieval_plugin.report.answer import Answer
from vieval_plugin.report.sections import Report, Section
from vieval_plugin.report.tables import score_totals, status_counts
from vieval_plugin.stats.decisions import SIGNIFICANCE_LEVEL
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

#: Version of the form of `findings.json`.
VERSION = 1
NUMBERS_CSV = "numbers.csv"
PAIRS_CSV = "pairs.csv"
FINDINGS_JSON = "findings.json"
FINDING_FILES = (NUMBERS_CSV, PAIRS_CSV, FINDINGS_JSON)


@dataclass(frozen=True, kw_only=True)
class FindingsDocument:
    """All that `findings.json` holds."""

    #: Version of its form.
    findings: int = VERSION
    failures: str
    missing_ratings: str
    draws: int
    seed: int
    #: Adjusted p up to which two systems differ.
    significance_level: float = SIGNIFICANCE_LEVEL
    answers: tuple[Answer, ...]
    notes: tuple[str, ...]
    numbers: tuple[NumberRow, ...]
    pairs: tuple[PairRow, ...]
    #: Counts of verdicts by folder of shards and image model.
    all_verdicts: tuple[Mapping[str, str | int], ...]
    #: Means and histograms of their scores.
    all_scores: tuple[Mapping[str, str | int | float | None], ...]


def findings_document(report: Report, options: StatisticsOptions) -> FindingsDocument:
    """All numbers, pairs and answers of a report, as rows with types."""
    boards = list[Leaderboard]()
    numbers = list[NumberRow]()
    for section in report.sections:
        boards += section.boards
        boards += [member.ranking for member in section.corrected]
        boards += [ranking.board for ranking in section.contests]
        numbers += _number_rows(section, options.policy)
    return FindingsDocument(
        failures=options.policy,
        missing_ratings=options.missing_ratings,
        draws=options.draws,
        seed=options.seed,
        answers=tuple(report.answers),
        notes=report.notes,
        numbers=tuple(numbers),
        pairs=tuple(pair_rows(boards)),
        all_verdicts=tuple(status_counts(report.totals)),
        all_scores=tuple(score_totals(report.totals)),
    )


def finding_texts(
    report: Report,
    options: StatisticsOptions,
    parquet: bool = False,
) -> dict[str, str | bytes]:
    """Contents of `FINDING_FILES`, by their names.

    `report` and `compare` write the same rows of the same results; of a benchmark `rank` writes
    those of generators.

    Args:
        report, options: as they were made.
        parquet: True for the two tables as parquet files too, where pyarrow is installed.
    """
    document = findings_document(report, options)
    texts: dict[str, str | bytes] = {
        NUMBERS_CSV: csv_text(row_table("numbers", NumberRow, document.numbers)),
        PAIRS_CSV: csv_text(row_table("pairs", PairRow, document.pairs)),
        FINDINGS_JSON: json.dumps(asdict(document), indent=1, allow_nan=False),
    }
    if parquet and importlib.util.find_spec("pyarrow"):
        texts["numbers.parquet"] = _parquet(NumberRow, document.numbers)
        texts["pairs.parquet"] = _parquet(PairRow, document.pairs)
    return texts


def _number_rows(section: Section, failure_policy: str) -> Iterator[NumberRow]:
    backbones = {run.label: run.name.backbone for run in section.runs}
    for number in _numbers(section):
        yield number_row(section.benchmark.name, number, failure_policy, backbones)


def _numbers(section: Section) -> Iterator[Number]:
    """All numbers of a section: those of its leaderboards in order, with ranks or the reason why
    there is none; then others.
    """
    ranked = {
        (number.place, number.role, number.system): number
        if number.ranks or number.reason
        else replace(number, unranked=board.comparison.reason)
        for board in section.boards
        for number in board.numbers
    }
    yield from ranked.values()
    yield from (
        number
        for number in section.findings.numbers
        if (number.place, number.role, number.system) not in ranked
    )
    # a ceiling may be there, under another name
    ceilings = [n.estimate for n in section.findings.numbers if n.role == "ceiling"]
    references = chain.from_iterable(board.references for board in section.boards)
    for number in dict.fromkeys(references):
        if not any(number.estimate is ceiling for ceiling in ceilings):
            yield number
    for member in section.corrected:
        yield from _corrected_numbers(member)
    for ranking in section.contests:
        yield from ranking.board.numbers


def _corrected_numbers(corrected: CorrectedRanking) -> Iterator[Number]:
    """Corrected means, and what they are made of: people's labels alone and the weight of the
    judge.
    """
    board = corrected.ranking
    yield from board.numbers
    for e in corrected.estimates:
        components = {
            "mean of people's labels": replace(e.human.mean, n=e.rated),
            "weight of the judge": Estimate(e.corrected.weight),
        }
        for name, estimate in components.items():
            yield Number(
                e.generator,
                estimate,
                ALL,
                board.aspect,
                name,
                "generator",
                board.judge,
            )


def _parquet(
    row_type: type[NumberRow | PairRow],
    rows: Sequence[NumberRow] | Sequence[PairRow],
) -> bytes:
    """Rows as a parquet file with the types of their fields."""
    import pyarrow
    import pyarrow.parquet

    types = {
        "float": pyarrow.float64(),
        "int": pyarrow.int64(),
        "bool": pyarrow.bool_(),
    }
    columns = []
    for field in fields(row_type):
        base_type = str(field.type).split(" ")[0]
        columns.append((field.name, types.get(base_type, pyarrow.string())))
    documents = list(map(asdict, rows))
    table = pyarrow.Table.from_pylist(documents, pyarrow.schema(columns))
    buffer = io.BytesIO()
    with pyarrow.parquet.ParquetWriter(buffer, table.schema) as writer:
        if rows:  # `datasets` reads no row group without rows
            writer.write_table(table)
    return buffer.getvalue()
