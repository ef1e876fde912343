"""Make a card from verdicts, with the same statistics as a report."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from vieval_plugin.card.answers import agreement_of_repeats, round_share, tie_share
from vieval_plugin.card.card import VERSION, Card, CardAudit, CardEntry, CardRepeats
from vieval_plugin.card.placing import PlacedJudge
from vieval_plugin.card.sentences import answers
from vieval_plugin.meta_evaluation.costs import cost_of
from vieval_plugin.meta_evaluation.findings import ALL, Number
from vieval_plugin.meta_evaluation.rows import number_row, pair_rows
from vieval_plugin.records import Record
from vieval_plugin.results.published.files import NAME as PUBLISHED
from vieval_plugin.results.published.judges import published_judges
from vieval_plugin.run.verdict_lines import identity_of
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.versions import versions_of

#: Statistics of repeats: how often two have the same answer, and how far two are apart.
SAME_AGAIN = "same_answer_again"
DIFFERENCE_AGAIN = "difference_again"
_PACKAGES = ("numpy", "scipy", "pillow", "lmms-eval")


def entry_of(
    judge: PlacedJudge,
    files: Sequence[Path],
    folder: Path,
    available: int = 0,
    seconds: float | None = None,
) -> CardEntry:
    """Build the entry of a judge on a benchmark.

    Args:
        judge: placed by its verdicts.
        files: of the verdicts.
        folder: that the files' paths start from.
        available: number of samples to choose from, 0 if unknown.
        seconds: of calls, None if unknown.
    """
    records = judge.run.all_records
    source = records[0].provenance
    name = judge.benchmark.name
    pairs = pair_rows([judge.pairs_of_judge])
    for part_entries in judge.by_part.values():
        rows = pair_rows([judge.board_of(part_entries.values())])
        pairs += [
            replace(row, part=part)
            for part, row in zip(part_entries, rows, strict=True)
        ]
    backbones = {judge.run.label: judge.run.name.backbone}
    ids = sorted(str(record.id) for record in records)
    cells = {(record.id.part, record.id.image_model) for record in records}
    numbers = (
        number_row(name, number, judge.failure_policy, backbones)
        for number in judge.numbers
    )
    return CardEntry(
        name,
        judge.title,
        judge.run.judge,
        source.setting,
        source.pack,
        source.pack_hash,
        options=identity_of(source)["options"],
        unit="contests" if records[0].votes is not None else "samples",
        samples=len(records),
        available=available,
        cells=len(cells),
        sample_digest=hashlib.sha256("\n".join(ids).encode()).hexdigest(),
        numbers=tuple(numbers),
        pairs=tuple(pairs),
        cost=cost_of(records),
        seconds=seconds,
        ties=tie_share(records, judge.board.aspect),
        round_numbers=round_share(records),
        files=digests(files, folder),
    )


def repeats_of(
    judge: str,
    model: str,
    files: Sequence[Path],
    records: Sequence[Record],
    folder: Path,
    options: StatisticsOptions,
) -> CardRepeats:
    """Measure a judge's agreement with itself from the verdicts of its repeats."""
    benchmark = records[0].id.benchmark
    numbers = zip(
        (SAME_AGAIN, DIFFERENCE_AGAIN),
        agreement_of_repeats(records, benchmark, options),
        strict=True,
    )
    rows = tuple(
        number_row(
            benchmark, Number(model, estimate, ALL, "", statistic), options.policy
        )
        for statistic, estimate in numbers
    )
    sample_ids = {record.id for record in records}
    times = len(records) // len(sample_ids)
    answer_count = cost_of(records).answers
    return CardRepeats(
        judge, benchmark, times, rows, answer_count, digests(files, folder)
    )


def card_of(
    made_from: str,
    judges: Sequence[PlacedJudge],
    entries: Sequence[CardEntry],
    repeats: Sequence[CardRepeats],
    audits: Sequence[CardAudit],
    left_out: Sequence[str],
    options: StatisticsOptions,
) -> Card:
    """Build the card of a model, with today's date.

    Args:
        made_from: origin of the verdicts, in a few words.
        judges: of the model, one per entry.
        entries, repeats, audits: the results.
        left_out: lines on what the card leaves out.
        options: of the statistics.
    """
    unplaced = [
        missing_place_reason(judge.benchmark.name, judge.title)
        for judge in judges
        if not judge.published
    ]
    return Card(
        card=VERSION,
        model=judges[0].run.label,
        made_from=made_from,
        answers=tuple(answers(judges)),
        entries=tuple(entries),
        repeats=tuple(repeats),
        audits=tuple(audits),
        left_out=tuple(dict.fromkeys((*left_out, *unplaced))),
        statistics=asdict(options),
        seed=options.seed,
        date=datetime.now(UTC).date(),
        versions={"python": platform.python_version(), **versions_of(*_PACKAGES)},
    )


def missing_place_reason(benchmark: str, title: str) -> str:
    """Reason why a benchmark has no published judges to compare a model with."""
    if published_judges(benchmark):
        return (
            f"no published verdicts on {title} were found; run `vieval prepare "
            f"{PUBLISHED}` to download them"
        )
    return f"{title} has no published verdicts, so the card shows no rank"


def digests(files: Sequence[Path], folder: Path) -> dict[str, str]:
    """SHA-256 of files, by their paths relative to a folder."""
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(
            file.read_bytes()
        ).hexdigest()
        for file in files
    }
