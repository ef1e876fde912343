"""A card from verdicts: each number by the statistics of its benchmark, the same that a report has."""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Mapping, Sequence
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
    CardNumber,
    Difference,
    EntryCost,
    PublishedPlace,
    SelfAgreement,
    number_of,
)
from vieval_plugin.card.sentences import sentence
from vieval_plugin.meta_evaluation.comparison import LEVEL, Comparison, above_constant_p, among, compare_systems
from vieval_plugin.meta_evaluation.costs import cost_of
from vieval_plugin.meta_evaluation.findings import Leaderboard, Number
from vieval_plugin.meta_evaluation.leaderboards import leaderboard
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.meta_evaluation.one_answer import one_answer
from vieval_plugin.meta_evaluation.statistics import Rating, combine, summary_of
from vieval_plugin.records import Record, Run
from vieval_plugin.report.answer import position_to
from vieval_plugin.report.own_samples import against, benchmarks_with_runs
from vieval_plugin.results.published.files import NAME as PUBLISHED
from vieval_plugin.results.published.judges import parts_present, present, published_judges, run_of
from vieval_plugin.run.verdict_lines import identity_of
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.ranking import holm
from vieval_plugin.text.errors import VievalError
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
    of_parts = (
        summary_of(benchmark.report, [observe(r) for r in rows], Rating.from_run(run), benchmark.name, part, options)
        for part, rows in run.records.items()
    )
    summary = combine(list(of_parts))
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


@dataclass(frozen=True, eq=False)
class Placement:
    """A judge among published judges: the leaderboard of all, and each of these beside it.

    `useless` are the parts on which no test, adjusted over them, shows it to be better than the same answer for everything.
    """

    board: Leaderboard
    published: tuple[PublishedPlace, ...]
    breakdown: str
    numbers_by_value: Mapping[str, CardNumber]
    useless: tuple[str, ...]


def published_runs(run: Run, root: Path) -> list[Run]:
    """The verdicts of published judges on the samples of a run; judges without any of them are left out.

    Args:
        run: whose ratings and votes count.
        root: the folder of published verdicts.
    """
    judges = (j for j in present(run.benchmark, root) if run.records.keys() & {*parts_present(j, root)})
    return [run_of(judge, root, (first for rows in run.records.values() for first, *_ in rows)) for judge in judges]


def placement_of(
    benchmark: Benchmark, run: Run, published: Sequence[Run], options: StatisticsOptions
) -> Placement | None:
    """Compare a judge with published ones on the first statistic of a benchmark that it has; None where it has none.

    Args:
        benchmark: theirs.
        run: the judge's run, of one label.
        published: runs on the same samples, labels all different.
        options: what failed verdicts are, number of resamples, the seed.
    """
    runs, own = [run, *published], run.label
    findings = benchmark.report.findings(benchmark.name, tuple(benchmark.parts), runs, options)
    has_own = (s for s in findings.ranked if any(s.has(n) and n.system == own for n in findings.numbers))
    statistic = next(has_own, None)
    if statistic is None or statistic.judge is not None:
        return None
    board = leaderboard(statistic, findings, benchmark.name, runs, options, against=against(benchmark), family_of=own)
    breakdown, by_value = next(iter(board.breakdowns.items()), ("", {}))
    parts = [part for part in run.records if part in by_value and statistic.of_part]
    of_parts = {part: statistic.of_part(part, options) for part in parts if statistic.of_part}

    def numbers_of(system: str) -> dict[str, CardNumber]:
        return {value: number_of(estimates[system]) for value, estimates in by_value.items() if system in estimates}

    def differences_of(rival: str) -> dict[str, Difference]:
        """The lead over another, by part; p is adjusted over these parts."""
        differences: dict[str, Difference] = {}
        for part, compared in of_parts.items() if len(parts) > 1 else ():
            comparison = compare_systems(among(compared, [own, rival]), benchmark.name, options)
            if difference := _difference(comparison, own, rival):
                differences[part] = difference
        adjusted = holm([ahead.p for ahead in differences.values() if ahead.p is not None]).tolist()
        return {part: replace(ahead, p=p) for (part, ahead), p in zip(differences.items(), adjusted, strict=True)}

    places = [
        PublishedPlace(
            *(number.system, number_of(number.estimate), number.ranks, number.unranked),
            *(_difference(board.comparison, own, number.system), numbers_of(number.system)),
            differences_of(number.system),
        )
        for number in board.numbers
        if number.system != own
    ]
    places.sort(key=lambda judge: (judge.number.value is None, -(judge.number.value or 0)))
    alone = (above_constant_p(among(compared, [own]), benchmark.name, options) for compared in of_parts.values())
    adjusted = holm([p.get(own, math.nan) for p in alone])
    useless = tuple(part for part, p in zip(of_parts, adjusted, strict=True) if not p <= LEVEL)
    return Placement(board, tuple(places), breakdown, numbers_of(own), useless)


def _difference(comparison: Comparison, label: str, rival: str) -> Difference | None:
    """The first judge less the other on what both scored; p is adjusted over the first's pairs."""
    pair = comparison.pair_of(label, rival)
    if pair is None:
        return None
    result = pair.result if pair.first == label else pair.result.turned
    return Difference(replace(number_of(result.difference), n=pair.n), pair.adjusted)


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
    rows = [AuditRow(e.change, e.aspect, replace(number_of(e.difference), n=e.n), e.finding) for e in result.effects]
    return CardAudit(result.judge, benchmark, samples, tuple(rows), calls)


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
