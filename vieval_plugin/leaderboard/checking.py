"""Checks of a submission, which is a card with its verdict files: every score again from the raw replies in the traces
by the judge's own program, and every number again from the scores.

No check can show which model wrote the replies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from pydantic import TypeAdapter, ValidationError

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.card.card import Card, CardEntry, CardNumber
from vieval_plugin.card.making import Material, entry_of
from vieval_plugin.card.read import read_card, runs_of
from vieval_plugin.errors import VievalError
from vieval_plugin.images import is_changed, name_of
from vieval_plugin.judges.contests import Contest, Judged, candidates_of
from vieval_plugin.judges.protocol import Image, Status
from vieval_plugin.leaderboard.sources import Sources, judged_of
from vieval_plugin.published.files import descriptions
from vieval_plugin.records import Provenance, Record
from vieval_plugin.results.lookup import judge_of, rerun, was_asked
from vieval_plugin.results.runs import results_of
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.verdict_lines import run_hash
from vieval_plugin.stats.options import StatisticsOptions

CANNOT_SHOW = "no check can show which model wrote the replies, nor that it was asked once"
MOST_PROBLEMS = 20
"""Problems of an entry that are told one by one."""
MOST_DRAWS = 10_000
_OPTIONS = TypeAdapter(StatisticsOptions)

CheckedEntry: TypeAlias = tuple[CardEntry, Sequence[Record]]
"""An entry of a card with the records of its files."""


def check_submission(folder: Path, sources: Sources) -> tuple[Card, list[CheckedEntry], list[str]]:
    """Check a submission: its card, the records of each entry on a benchmark with a leaderboard, and a line a problem.

    Args:
        folder: with `card.json` and the verdict files that it names.
        sources: where people's ratings and votes are, and the published verdicts.

    Raises:
        VievalError: there is no card that can be read.
    """
    card = read_card(folder)
    checked: list[CheckedEntry] = []
    problems: list[str] = []
    for entry in card.entries:
        if entry.benchmark not in descriptions():
            continue
        try:
            found = _records(card, entry, folder)
            several = list(_problems(card, entry, found, folder, sources))
        except VievalError as error:
            problems.append(str(error))
            continue
        checked.append((entry, found))
        problems += several[:MOST_PROBLEMS]
        if len(several) > MOST_PROBLEMS:
            problems.append(f"{entry.title}: {len(several) - MOST_PROBLEMS} problems more of this sort")
    if not checked and not problems:
        problems.append(f"{folder}: a card of none of the leaderboard's benchmarks ({', '.join(descriptions())})")
    return card, checked, problems


def _records(card: Card, entry: CardEntry, folder: Path) -> list[Record]:
    """The records of an entry's files; VievalError for a file that is gone or another, and for a verdict that is there twice."""
    for name in entry.files:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise VievalError(
                f"{folder}: the card names a file outside of its folder ({name[:80]}); make the card again"
            )
    runs = runs_of(replace(card, entries=(entry,)), folder, card.model)
    if others := [run.benchmark for run in runs if run.benchmark != entry.benchmark]:
        raise VievalError(
            f"{entry.title}: verdicts of {', '.join(others)} among its files; a card has files of each benchmark alone"
        )
    if len(runs) != 1:
        raise VievalError(f"{entry.title}: its files have verdicts of {len(runs)} runs, and an entry is of one")
    judged = [records for several in runs[0].records.values() for records in several]
    if repeated := next((records for records in judged if len(records) > 1), None):
        raise VievalError(f"{entry.title}: {len(repeated)} verdicts on {repeated[0].id}; a submission has one of each")
    return [record for [record] in judged]


def _problems(card: Card, entry: CardEntry, records: Sequence[Record], folder: Path, sources: Sources) -> Iterator[str]:
    benchmark = benchmark_registry.benchmark(entry.benchmark)
    parts = [part for part in benchmark.parts if any(record.id.part == part for record in records)]
    known = {judged.id: judged for judged in judged_of(benchmark, parts, sources)}
    if foreign := [record.id for record in records if record.id not in known]:
        yield f"{entry.title}: {len(foreign)} of {len(records)} verdicts are on samples that it does not have, first {foreign[0]}"
        return
    if entry.samples != len(records):
        yield f"{entry.title}: the card is of {entry.samples} verdicts, and its files have {len(records)}"
    if problem := _options_problem(card, entry, records):
        yield problem
        return
    judge = judge_of(records[0].provenance)
    if (judge.provenance.pack, judge.provenance.pack_hash) != (entry.pack, entry.pack_hash):
        yield (
            f"{entry.title}: judged with pack {entry.pack} ({entry.pack_hash}), and here it is {judge.provenance.pack} "
            f"({judge.provenance.pack_hash})"
        )
        return
    for record in records:
        yield from _problems_of(record, known[record.id], judge)
    yield from _wrong_numbers(card, entry, records, folder)


def _options_problem(card: Card, entry: CardEntry, records: Sequence[Record]) -> str:
    """The difference between what the card says of its judge and what the verdicts do; empty where there is none."""
    of: Provenance = records[0].provenance
    if any(record.provenance != of or record.provenance.options != of.options for record in records):
        return f"{entry.title}: verdicts of several runs; a submission has one judge with one set of options"
    said = (entry.judge, entry.setting, entry.pack, entry.pack_hash, card.model)
    found = (of.judge, of.setting, of.pack, of.pack_hash, of.backbone)
    names = ("judge", "setting", "pack", "pack hash", "model")
    for name, on_card, in_files in zip(names, said, found, strict=True):
        if on_card != in_files:
            return f"{entry.title}: {name} is {on_card!r} on the card and {in_files!r} in its verdicts"
    if run_hash(replace(of, options=entry.options)) != run_hash(of):
        return f"{entry.title}: the options on the card are not those in its verdicts"
    return f"{entry.title}: a replay of recorded verdicts, which has no raw replies" if of.recorded else ""


def _problems_of(record: Record, judged: Judged, judge: PreparedJudge) -> Iterator[str]:
    """The problems of a verdict: what people said, its images and texts, its scores and its reasons."""
    verdict = record.verdict
    people = (record.votes, record.candidates) if isinstance(judged, Contest) else record.ratings
    if people != (
        (judged.votes, tuple(c.id for c in judged.candidates)) if isinstance(judged, Contest) else judged.ratings
    ):
        yield f"{record.id}: what people said of it is not what the benchmark has"
    if record.sample is not None and (changed := next(_changed_from(record.sample, judged), "")):
        yield f"{record.id}: judged with other {changed} than the benchmark's"
    if verdict.status in (Status.MISSING, Status.NOT_APPLICABLE, Status.NO_IMAGE):
        yield f"{record.id}: no verdict ({verdict.status}); judge it, or leave the sample out"
        return
    if empty := next((step for step in verdict.trace if not (step.status.usable or step.reason.strip())), None):
        yield f"{record.id}: the step {'/'.join(empty.path)} failed ({empty.status}) and has no reason"
    if not verdict.status.usable and not verdict.trace:
        yield f"{record.id}: failed ({verdict.status}) and has no reason"
    if not was_asked(verdict):
        if verdict.scores or verdict.choice:
            yield f"{record.id}: has scores, and its trace says that the judge gave none"
        return
    try:
        _, again = rerun(judge.program, record.sample or judged, verdict)
    except VievalError as error:
        yield str(error)
        return
    if again.status is Status.NOT_APPLICABLE:
        yield f"{record.id}: {again.reason}; run `vieval prepare {record.id.benchmark}`, which fetches its conditions"
        return
    before, now = ((dict(of.scores), of.choice, of.status, dict(of.recorded)) for of in (verdict, again))
    if before != now:
        scores, scores_now = (_in_words(of) for of in (before, now))
        yield f"{record.id}: {scores} is not what its replies give, which is {scores_now}"


def _in_words(outcome: tuple[dict[str, float], object, Status, dict[str, float]]) -> str:
    scores, choice, status, _ = outcome
    return ", ".join(
        [*(f"{aspect} {score:.4g}" for aspect, score in scores.items()), *([str(choice)] * bool(choice)), str(status)]
    )


def _changed_from(shown: Judged, judged: Judged) -> Iterator[str]:
    """The texts and the images, of those that are here, of which others were judged."""
    for said, here in zip(candidates_of(shown), candidates_of(judged), strict=False):
        if here.texts and dict(said.texts) != dict(here.texts):
            yield "texts"
        for role, image in said.images.items():
            known = here.images.get(role)
            if known and is_changed(Image(known.source, known.origin, image.sha256)):
                yield f"content of {name_of(known)}"


def _wrong_numbers(card: Card, entry: CardEntry, records: Sequence[Record], folder: Path) -> Iterator[str]:
    """A line for each number of the card that its verdicts do not give."""
    try:
        options = _OPTIONS.validate_python(card.statistics)
    except ValidationError:
        options = None
    if options is None or not 0 < options.draws <= MOST_DRAWS:
        yield f"{entry.title}: the card's statistics are none that vieval card has ({MOST_DRAWS:,} draws at most)"
        return
    [run] = results_of(records).runs
    files = [folder / name for name in entry.files]
    # in its own folder are no published verdicts: the leaderboard computes its place anew
    again = entry_of(Material(replace(run, label=card.model), files, entry.available), folder, folder, options)
    if again.sample_digest != entry.sample_digest:
        yield f"{entry.title}: the digest of its samples is another than the card's"
    pairs: dict[str, tuple[CardNumber | None, CardNumber | None]] = {"its agreement": (entry.number, again.number)}
    for of, now in ((entry.statistics, again.statistics), (entry.words, again.words)):
        pairs |= {name: (of.get(name), now.get(name)) for name in {**of, **now}}
    for name, (said, computed) in pairs.items():
        if said != computed:
            yield f"{entry.title}: {name} is {said} on the card, and its verdicts give {computed}"
