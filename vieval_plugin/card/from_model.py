"""Make a card by asking a model: plan, judge, and judge a part again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from vieval_plugin.audit.anchor import REPEATS
from vieval_plugin.audit.audit import audit, changed_samples
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.card import plan as planning
from vieval_plugin.card.card import Card, CardAudit, CardRepeats
from vieval_plugin.card.judging import (
    FIRST_REPEAT,
    Judging,
    entry_file,
    is_complete,
    judge_entry,
    judge_repeats,
    repeats_file,
)
from vieval_plugin.card.making import (
    card_of,
    entry_of,
    missing_place_reason,
    repeats_of,
)
from vieval_plugin.card.placing import PlacedJudge, place_judge
from vieval_plugin.card.plan import (
    PlannedCalls,
    PlannedEntry,
    draw_sample,
    first_of_each_judge,
)
from vieval_plugin.results.published.judges import present, require_published
from vieval_plugin.results.runs import results_of
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.session import Session
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.errors import VievalError


@dataclass(frozen=True)
class CardRequest:
    """Options of a requested card."""

    model: str
    benchmarks: Sequence[str]
    judges: Sequence[PreparedJudge]
    #: Samples of each benchmark, None for the default.
    samples: int | None
    #: Samples of each judge that are judged again.
    repeats: int
    #: Samples of each judge whose images are changed.
    audited: int
    #: Folder of published verdicts.
    published: Path
    #: Folder of the card.
    folder: Path
    statistics: StatisticsOptions


@dataclass(frozen=True)
class CardPlan:
    """The plan of a card."""

    #: One a judge and benchmark.
    entries: tuple[PlannedEntry, ...]
    #: Calls that they begin with.
    calls: tuple[PlannedCalls, ...]
    #: Lines on unprepared data.
    unprepared: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """Lines that show the plan in a terminal."""
        calls = sum(row.calls for row in self.calls)
        answers = sum(row.answers for row in self.calls)
        total = str(PlannedCalls("in all", calls, answers))
        return [*map(str, self.calls), total]


def _missing_places(
    entries: Sequence[PlannedEntry], published_folder: Path
) -> Iterator[str]:
    """Check the logs of published judges of each benchmark; yield a line for each
    benchmark without any.
    """
    by_name = {entry.benchmark.name: entry.benchmark for entry in entries}
    for benchmark in by_name.values():
        placed = present(benchmark.name, published_folder)
        for published in placed:
            require_published(published, published_folder)
        if not placed:
            yield missing_place_reason(
                benchmark.name, benchmark.title or benchmark.name
            )


async def plan_card(request: CardRequest, judging: Judging) -> CardPlan:
    """Draw the samples and count the calls, without asking the model.

    Raises:
        VievalError: these judges support no prepared benchmark, a cell would have too few
            samples, or a log of a published judge differs from the published one.
    """
    entries: list[PlannedEntry] = []
    unprepared: list[str] = []
    seed = request.statistics.seed
    for name in request.benchmarks:
        benchmark = benchmark_registry.benchmark(name)
        more, lines = planning.planned(
            benchmark, request.judges, judging.options, request.samples, seed
        )
        entries += more
        unprepared += lines
    entries.sort(key=lambda entry: request.judges.index(entry.prepared))
    if not entries:
        judges = ", ".join(judge.spec.name for judge in request.judges)
        synthetic = next(
            name
            for name, benchmark in benchmark_registry.benchmarks().items()
            if benchmark.synthetic
        )
        reasons = "; ".join(unprepared) or "pass --benchmark"
        raise VievalError(
            f"{judges} cannot judge any prepared benchmark: {reasons}; "
            "to make a card without data, "
            f"pass --benchmark {synthetic}"
        )
    unprepared += _missing_places(entries, request.published)
    async with Session(judging.options, judging.backbone, judging.progress) as session:
        calls = await planning.calls_of(
            entries,
            request.repeats,
            request.audited,
            session,
            judging.options,
            seed,
        )
    return CardPlan(tuple(entries), tuple(calls), tuple(unprepared))


def card_jobs(request: CardRequest, plan: CardPlan) -> Iterator[Job]:
    """Yield everything that the model still has to answer: entries, their repeats, and
    samples with changed images.
    """
    entries = [entry for entry in plan.entries if entry.prepared.asks_a_model]
    seed = request.statistics.seed
    for entry in entries:
        if not is_complete(entry_file(entry, request.folder)):
            yield from (Job(judged, entry.prepared) for judged in entry.judged)
    for entry in first_of_each_judge(entries):
        sampled = draw_sample(entry.judged, request.repeats, seed)
        if not is_complete(repeats_file(entry, request.folder)):
            yield from (
                Job(judged, entry.prepared, repeat)
                for repeat in range(FIRST_REPEAT, FIRST_REPEAT + REPEATS)
                for judged in sampled
            )
        with suppress(VievalError):  # the card says so
            samples = (
                planning.audited_samples(entry, request.audited, seed)
                if request.audited
                else []
            )
            variants = changed_samples(samples, entry.prepared, seed)
            yield from (Job(judged, entry.prepared) for judged in variants)


def make_card(
    request: CardRequest,
    plan: CardPlan,
    judging: Judging,
    on_step: Callable[[str], None] = lambda line: None,
) -> tuple[Card, list[PlacedJudge]]:
    """Judge the planned samples and make a card of the verdicts; earlier verdicts are
    reused.

    Args:
        request, plan: of the card.
        judging: options and model.
        on_step: called with a line on the next step.

    Raises:
        VievalError: the run cannot continue; verdicts are kept, and the same call resumes.
    """
    judged = []
    for entry in plan.entries:
        on_step(
            f"{entry.benchmark.name} by {entry.prepared.spec.name}: {len(entry.judged)} "
            f"{entry.unit}"
        )
        judged.append(asyncio.run(judge_entry(entry, request.folder, judging)))
    first = first_of_each_judge(plan.entries)
    repeats = [
        _repeats(entry, request, judging, on_step) for entry in first if request.repeats
    ]
    audits, problems = _audits(first, request, judging, on_step)
    on_step(
        "computing numbers and comparing with published judges; this takes a "
        "minute or two"
    )
    judges = []
    entries = []
    for entry, file in zip(plan.entries, judged, strict=True):
        [run] = results_of(file.records).runs
        judge = place_judge(
            replace(run, label=request.model), request.published, request.statistics
        )
        judges.append(judge)
        seconds = file.usage.seconds or None
        entries.append(
            entry_of(judge, file.files, request.folder, entry.available, seconds)
        )
    left_out = [*plan.unprepared, *problems]
    return card_of(
        "vieval card",
        judges,
        entries,
        repeats,
        audits,
        left_out,
        request.statistics,
    ), judges


def _audits(
    entries: Sequence[PlannedEntry],
    request: CardRequest,
    judging: Judging,
    on_step: Callable[[str], None],
) -> tuple[list[CardAudit], list[str]]:
    """Audit the judge of each entry, and list the reasons why some cannot be audited."""
    audits = []
    problems = []
    for entry in entries if request.audited else ():
        try:
            audits.append(_audit(entry, request, judging, on_step))
        except VievalError as error:
            problems.append(f"{entry.prepared.spec.name} was not audited: {error}")
    return audits, problems


def _repeats(
    entry: PlannedEntry,
    request: CardRequest,
    judging: Judging,
    on_step: Callable[[str], None],
) -> CardRepeats:
    n = min(request.repeats, len(entry.judged))
    judge = entry.prepared.spec.name
    on_step(f"{judge}: {n} {entry.unit}, three times each, without the cache")
    seed = request.statistics.seed
    file = asyncio.run(judge_repeats(entry, n, seed, request.folder, judging))
    return repeats_of(
        judge,
        request.model,
        file.files,
        file.records,
        request.folder,
        request.statistics,
    )


def _audit(
    entry: PlannedEntry,
    request: CardRequest,
    judging: Judging,
    on_step: Callable[[str], None],
) -> CardAudit:
    prepared = entry.prepared
    seed = request.statistics.seed
    samples = planning.audited_samples(entry, request.audited, seed)
    on_step(f"{prepared.spec.name}: {len(samples)} {entry.unit} with changed images")
    answered_before = _answer_count(judging.progress.usage)
    effects = asyncio.run(
        audit(
            samples,
            prepared,
            judging.options,
            judging.backbone,
            seed,
            judging.progress,
            judging.batch if prepared.asks_a_model else None,
        )
    )
    rows = tuple(effect.row for effect in effects)
    answers = _answer_count(judging.progress.usage) - answered_before
    return CardAudit(
        prepared.spec.name, entry.benchmark.name, len(samples), rows, answers
    )


def _answer_count(usage: Usage) -> int:
    """Number of questions and measurements with an answer, whether new or stored.

    Probes do not count, because a run with a full store sends none.
    """
    new = usage.calls - usage.probes + usage.measured
    return new + usage.cached + usage.repeated
