"""Check submissions, which are cards with their verdict files: recompute every score
from the raw replies in the traces with the judge's own program, and every number from
the scores.

No check can show which model wrote the replies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from pydantic import TypeAdapter, ValidationError

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.card.card import Card, CardEntry
from vieval_plugin.card.making import entry_of
from vieval_plugin.card.placing import place_judge
from vieval_plugin.card.read import read_card, runs_of
from vieval_plugin.images import is_changed, name_of
from vieval_plugin.judges.contests import Contest, Judged, candidates_of
from vieval_plugin.judges.protocol import Image, Status
from vieval_plugin.leaderboard.making import Sources
from vieval_plugin.meta_evaluation.rows import NumberRow
from vieval_plugin.records import Provenance, Record
from vieval_plugin.results.lookup import judge_of, rerun, was_asked
from vieval_plugin.results.published.files import descriptions
from vieval_plugin.results.runs import results_of
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.verdict_lines import run_hash
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import plural

CANNOT_SHOW = (
    "no check can show which model wrote the replies, or that it was asked only once"
)
#: Largest number of problems that are listed per entry.
MOST_PROBLEMS = 20
MOST_DRAWS = 10_000
_MISSING = "missing"
_OPTIONS = TypeAdapter(StatisticsOptions)

#: An entry of a card with the records of its files.
CheckedEntry: TypeAlias = tuple[CardEntry, Sequence[Record]]


def check_submission(
    folder: Path, sources: Sources
) -> tuple[Card, list[CheckedEntry], list[str]]:
    """Check a submission; return its card, the records of each entry on a benchmark
    with a leaderboard, and one line per problem.

    Args:
        folder: with `card.json` and its verdict files.
        sources: folders of human ratings and votes, and of the published verdicts.

    Raises:
        VievalError: the card cannot be read.
    """
    card = read_card(folder)
    checked: list[CheckedEntry] = []
    problems = []
    for entry in card.entries:
        if entry.benchmark not in descriptions():
            continue
        try:
            records = _records(card, entry, folder)
            lines = list(_problems(card, entry, records, folder, sources))
        except VievalError as error:
            problems.append(str(error))
            continue
        checked.append((entry, records))
        problems += lines[:MOST_PROBLEMS]
        if len(lines) > MOST_PROBLEMS:
            further_count = len(lines) - MOST_PROBLEMS
            problems.append(f"{entry.title}: {plural(further_count, 'more problem')}")
    if not checked and not problems:
        benchmarks = ", ".join(descriptions())
        covered = ", ".join(entry.benchmark for entry in card.entries) or "none"
        problems.append(
            f"{folder}: the card must cover a benchmark of the leaderboard ({benchmarks}), "
            f"got {covered}"
        )
    return card, checked, problems


def _records(card: Card, entry: CardEntry, folder: Path) -> list[Record]:
    """Read the records of an entry's files; VievalError for a missing or changed file,
    or a repeated verdict.
    """
    runs = runs_of(replace(card, entries=(entry,)), folder, card.model)
    if foreign := ", ".join(
        run.benchmark for run in runs if run.benchmark != entry.benchmark
    ):
        files = f"its files also hold verdicts on {foreign}"
        raise VievalError(f"{entry.title}: {files}; use one file per benchmark")
    if len(runs) != 1:
        raise VievalError(
            f"{entry.title}: its files must hold verdicts from one run, got {len(runs)}"
        )
    judged = runs[0].records_by_sample
    if repeated := next((records for records in judged if len(records) > 1), None):
        raise VievalError(
            f"{entry.title}: each sample must have one verdict, got {len(repeated)} "
            f"on {repeated[0].id}"
        )
    return [record for [record] in judged]


def _problems(
    card: Card,
    entry: CardEntry,
    records: Sequence[Record],
    folder: Path,
    sources: Sources,
) -> Iterator[str]:
    benchmark = benchmark_registry.benchmark(entry.benchmark)
    parts = [
        part
        for part in benchmark.parts
        if any(record.id.part == part for record in records)
    ]
    by_id = {judged.id: judged for judged in sources.judged(benchmark, parts)}
    if foreign := [record.id for record in records if record.id not in by_id]:
        are = "is" if len(foreign) == 1 else "are"
        yield (
            f"{entry.title}: {len(foreign)} of {len(records)} verdicts {are} on "
            f"unknown samples (first: {foreign[0]})"
        )
        return
    if entry.samples != len(records):
        record_count = len(records)
        yield (
            f"{entry.title}: the card counts {plural(entry.samples, 'verdict')}, but its "
            f"files hold {record_count}"
        )
    if problem := _options_problem(card, entry, records):
        yield problem
        return
    judge = judge_of(records[0].provenance)
    if problem := _pack_problem(entry, judge.provenance):
        yield problem
        return
    for record in records:
        yield from _problems_of(record, by_id[record.id], judge)
    yield from _wrong_numbers(card, entry, records, folder)


def _pack_problem(entry: CardEntry, current: Provenance) -> str:
    """Describe how the card's prompt pack differs from the current one; empty if it does not."""
    if (current.pack, current.pack_hash) == (entry.pack, entry.pack_hash):
        return ""
    return (
        f"{entry.title}: judged with pack {entry.pack} ({entry.pack_hash}), but the pack "
        f"is now {current.pack} ({current.pack_hash})"
    )


def _options_problem(card: Card, entry: CardEntry, records: Sequence[Record]) -> str:
    """Describe how the card's judge differs from the judge of the verdicts; empty if it
    does not.
    """
    source = records[0].provenance
    if any(
        record.provenance != source or record.provenance.options != source.options
        for record in records
    ):
        return (
            f"{entry.title}: contains verdicts from several runs; a submission must "
            "have one judge with one set of options"
        )
    for name, on_card, in_files in (
        ("judge", entry.judge, source.judge),
        ("setting", entry.setting, source.setting),
        ("pack", entry.pack, source.pack),
        ("pack hash", entry.pack_hash, source.pack_hash),
        ("model", card.model, source.backbone),
    ):
        if on_card != in_files:
            return (
                f"{entry.title}: {name} is {on_card!r} on the card, but {in_files!r} "
                "in its verdicts"
            )
    if run_hash(replace(source, options=entry.options)) != run_hash(source):
        return (
            f"{entry.title}: the options on the card differ from those in its verdicts"
        )
    return (
        f"{entry.title}: a replay of recorded verdicts cannot be submitted, because "
        "it has no raw replies"
        if source.recorded
        else ""
    )


def _problems_of(record: Record, judged: Judged, judge: PreparedJudge) -> Iterator[str]:
    """Yield the problems of a verdict: its ratings, images, texts, scores and reasons."""
    verdict = record.verdict
    if isinstance(judged, Contest):
        candidates = tuple(candidate.id for candidate in judged.candidates)
        is_same = (record.votes, record.candidates) == (judged.votes, candidates)
    else:
        is_same = record.ratings == judged.ratings
    if not is_same:
        yield f"{record.id}: its human ratings or votes differ from the benchmark's"
    if record.sample is not None and (
        difference := next(_changed_from(record.sample, judged), "")
    ):
        yield f"{record.id}: judged with {difference} other than the benchmark's"
    if verdict.status in (Status.MISSING, Status.NOT_APPLICABLE, Status.NO_IMAGE):
        yield f"{record.id}: no verdict ({verdict.status}); judge it, or leave the sample out"
        return
    if empty := next(
        (
            step
            for step in verdict.trace
            if not (step.status.usable or step.reason.strip())
        ),
        None,
    ):
        path = "/".join(empty.path)
        yield f"{record.id}: the step {path} failed ({empty.status}) without a reason"
    if not verdict.status.usable and not verdict.trace:
        yield f"{record.id}: failed ({verdict.status}) without a reason"
    if not was_asked(verdict):
        if verdict.scores or verdict.choice:
            yield (
                f"{record.id}: has scores, but its trace shows that the judge gave none"
            )
        return
    try:
        _, again = rerun(judge.program, record.sample or judged, verdict)
    except VievalError as error:
        yield str(error)
        return
    if again.status is Status.NOT_APPLICABLE:
        yield (
            f"{record.id}: {again.reason}; run `vieval prepare "
            f"{record.id.benchmark}` to download its conditions"
        )
        return
    recorded, now = (
        (dict(v.scores), v.choice, v.status, dict(v.recorded)) for v in (verdict, again)
    )
    if recorded != now:
        scores, scores_now = (_outcome_words(v) for v in (recorded, now))
        yield (
            f"{record.id}: the verdict is {scores}, but its replies give {scores_now}"
        )


def _outcome_words(
    outcome: tuple[dict[str, float], object, Status, dict[str, float]],
) -> str:
    scores, choice, status, _ = outcome
    texts = [f"{aspect} {score:.4g}" for aspect, score in scores.items()]
    if choice:
        texts.append(str(choice))
    return ", ".join([*texts, str(status)])


def _changed_from(judged_then: Judged, judged: Judged) -> Iterator[str]:
    """Yield the texts and available images that differ from the ones judged."""
    for submitted, current in zip(
        candidates_of(judged_then), candidates_of(judged), strict=False
    ):
        if current.texts and dict(submitted.texts) != dict(current.texts):
            yield "texts"
        for role, image in submitted.images.items():
            stored = current.images.get(role)
            if stored and is_changed(Image(stored.source, stored.origin, image.sha256)):
                yield f"content of {name_of(stored)}"


def _wrong_numbers(
    card: Card,
    entry: CardEntry,
    records: Sequence[Record],
    folder: Path,
) -> Iterator[str]:
    """Yield a line for each number of the card that its verdicts do not give."""
    try:
        options = _OPTIONS.validate_python(card.statistics)
    except ValidationError:
        options = None
    if options is None or not 0 < options.draws <= MOST_DRAWS:
        yield (
            f"{entry.title}: the card's statistics must be those of `vieval card`, "
            f"with at most {MOST_DRAWS:,} draws; run `vieval card` again"
        )
        return
    [run] = results_of(records).runs
    # its own folder has no published verdicts: the leaderboard recomputes its place
    judge = place_judge(replace(run, label=card.model), folder, options)
    files = [folder / name for name in entry.files]
    again = entry_of(judge, files, folder, entry.available)
    if again.sample_digest != entry.sample_digest:
        yield f"{entry.title}: the digest of its samples differs from the card's"
    claimed, computed = (
        {
            _place(row): _number(row)
            for row in rows_of_entry.numbers
            if row.system == card.model
        }
        for rows_of_entry in (entry, again)
    )
    for place in {**claimed, **computed}:
        on_card = claimed.get(place, _MISSING)
        given = computed.get(place, _MISSING)
        if on_card != given:
            name = " ".join(filter(None, place))
            yield (
                f"{entry.title}: {name} is {on_card} on the card, but its verdicts "
                f"give {given}"
            )


def _place(row: NumberRow) -> tuple[str, ...]:
    return (
        row.statistic,
        row.aspect,
        row.part,
        row.breakdown,
        row.breakdown_value,
    )


def _number(row: NumberRow) -> str:
    numbers = {"value": row.value, "low": row.low, "high": row.high, "n": row.n}
    parts = (
        f"{name} {number:g}" for name, number in numbers.items() if number is not None
    )
    return ", ".join(parts)
