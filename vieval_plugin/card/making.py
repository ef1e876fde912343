"""A card from verdicts: each number by the statistics of its benchmark, the same that a report has."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from vieval_plugin.audit.audit import Audit
from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.card.answers import agreement_of_repeats, round_share, tie_share
from vieval_plugin.card.card import (
    VERSION,
    AnswerHabits,
    AuditRow,
    Card,
    CardAudit,
    CardEntry,
    EntryCost,
    SelfAgreement,
    number_of,
)
from vieval_plugin.card.placement import placement_of, published_runs
from vieval_plugin.card.sentences import sentence
from vieval_plugin.errors import VievalError
from vieval_plugin.meta_evaluation.costs import cost_of
from vieval_plugin.meta_evaluation.findings import Leaderboard, Number
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.meta_evaluation.one_answer import one_answer
from vieval_plugin.meta_evaluation.statistics import Rating, Summary, combine, summary_of
from vieval_plugin.published.files import NAME as PUBLISHED
from vieval_plugin.published.judges import published_judges
from vieval_plugin.records import Record, Run
from vieval_plugin.report.answer import position_to
from vieval_plugin.report.own_samples import benchmarks_with_runs
from vieval_plugin.run.verdict_lines import identity_of
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.versions import versions_of

_PACKAGES = ("numpy", "scipy", "pillow", "lmms-eval")
_CONSISTENT = "votes_consistent_share_value"


@dataclass(frozen=True)
class Material:
    """Material of an entry: a run under the model's name, its files, and what is known of it from elsewhere.

    `available` is how many samples there were to choose from, 0 where nobody knows; `seconds` those of its calls.
    """

    run: Run
    files: Sequence[Path]
    available: int = 0
    seconds: float | None = None


def entry_of(material: Material, published: Path, folder: Path, options: StatisticsOptions) -> CardEntry:
    """The entry of a judge on a benchmark.

    Args:
        material: its verdicts.
        published: the folder of published verdicts.
        folder: the one that files are named from.
        options: what failed verdicts are, number of resamples, the seed.

    Raises:
        VievalError: no number can be made of the verdicts, or the benchmark is not known.
    """
    run = material.run
    [(benchmark, _)] = benchmarks_with_runs([run])
    records = list(chain.from_iterable(chain.from_iterable(run.records.values())))
    placement = placement_of(benchmark, run, published_runs(run, published), options)
    if placement is None:
        raise VievalError(f"{benchmark.name}: {run.label} has no number there: people rated or voted on none of it")
    board, own = placement.board, placement.board.number_of(run.label)
    summary = combine(_summaries(benchmark, run, options))
    source = records[0].provenance
    cost = cost_of(records)
    ids = sorted(str(record.id) for record in records)
    return CardEntry(
        benchmark.name,
        benchmark.title or benchmark.name,
        benchmark.synthetic,
        *(run.judge, source.setting, source.pack, source.pack_hash, identity_of(source)["options"]),
        unit="contests" if records[0].votes is not None else "samples",
        samples=len(records),
        available=material.available,
        cells=len({(record.id.part, record.id.image_model) for record in records}),
        sample_digest=hashlib.sha256("\n".join(ids).encode()).hexdigest(),
        aspect=board.aspect,
        statistic=board.title,
        number=number_of(own.estimate),
        statistics={name: number_of(estimate) for name, estimate in summary.estimates.items()},
        ranks=own.ranks if placement.published else None,
        ranked=len(board.ranked),
        unranked=own.unranked if placement.published else "",
        published=placement.published,
        references={reference.system: number_of(reference.estimate) for reference in board.references},
        ceiling=_ceiling(board, own),
        above_constant=run.label not in board.not_above_constant,
        heading=placement.breakdown,
        words=placement.numbers_by_value,
        useless=placement.useless,
        answers=AnswerHabits(
            tie_share(records, board.aspect),
            round_share(records),
            number_of(summary.estimates[_CONSISTENT]) if _CONSISTENT in summary.estimates else None,
            one_answer(records, board.aspect),
        ),
        spent=EntryCost(cost.verdicts, dict(cost.statuses), cost.answers, cost.tokens, material.seconds),
        files=digests(material.files, folder),
    )


def _summaries(benchmark: Benchmark, run: Run, options: StatisticsOptions) -> list[Summary]:
    return [
        summary_of(benchmark.report, [observe(r) for r in rows], Rating.from_run(run), benchmark.name, part, options)
        for part, rows in run.records.items()
    ]


def _ceiling(board: Leaderboard, own: Number) -> str:
    """The side of the annotators on which a judge is: `above`, `below`, or shown to be neither; empty where none is known."""
    if board.ceiling and (compared := board.ceiling(own.system)):
        return compared.position
    people = next((reference.estimate for reference in board.references if reference.role == "ceiling"), None)
    return position_to(own.estimate, people) if people and people.defined else ""


def repeats_of(
    judge: str, files: Sequence[Path], records: Sequence[Record], folder: Path, options: StatisticsOptions
) -> SelfAgreement:
    """The agreement of a judge with itself, from all verdicts of its repeats."""
    benchmark = records[0].id.benchmark
    times = len(records) // len({record.id for record in records})
    return SelfAgreement(
        *(judge, benchmark, times),
        *agreement_of_repeats(records, benchmark, options),
        files=digests(files, folder),
        calls=cost_of(records).answers,
    )


def audit_of(result: Audit, benchmark: str, samples: int, calls: int) -> CardAudit:
    """An audit as a card keeps it."""
    rows = tuple(
        AuditRow(effect.change, effect.aspect, replace(number_of(effect.difference), n=effect.n), effect.finding)
        for effect in result.effects
    )
    return CardAudit(result.judge, benchmark, samples, rows, calls)


def card_of(
    model: str,
    made_from: str,
    entries: Sequence[CardEntry],
    repeats: Sequence[SelfAgreement],
    audits: Sequence[CardAudit],
    left_out: Sequence[str],
    options: StatisticsOptions,
) -> Card:
    """The card of a model, dated today.

    Args:
        model: its name.
        made_from: what verdicts come from, in a few words.
        entries, repeats, audits: all that was found.
        left_out: lines on what is not told.
        options: those that numbers were made with.
    """
    date = datetime.now(UTC).date().isoformat()
    unplaced = [without_place(entry.benchmark, entry.title) for entry in entries if not entry.published]
    parts = (tuple(entries), tuple(repeats), tuple(audits), tuple(dict.fromkeys((*left_out, *unplaced))))
    versions = {"python": platform.python_version(), **versions_of(*_PACKAGES)}
    card = Card(VERSION, model, made_from, "", *parts, asdict(options), options.seed, date, versions)
    return replace(card, sentence=sentence(card))


def without_place(benchmark: str, title: str) -> str:
    """The reason why no published judge stands beside a model on a benchmark."""
    if published_judges(benchmark):
        return (
            f"published verdicts on {title} are not there; `vieval prepare {PUBLISHED}` fetches those of other judges"
        )
    return f"no published verdicts on {title} are known, so there is no place among them"


def digests(files: Sequence[Path], folder: Path) -> dict[str, str]:
    """The SHA-256 of files, by their paths from a folder on."""
    return {file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
