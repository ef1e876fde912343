"""Resources that runs keep open (the store, connections to servers, networks), kept open from
one run to the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING, TypeVar

from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.concurrency import gather_or_cancel
from vieval_plugin.backends.http.batches import MOST_SENDS, BatchOptions, Deferred
from vieval_plugin.backends.metrics.network_metrics import Scorers
from vieval_plugin.config import Backbone, Config
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Ask, Path, Program, Reply, Status, Verdict
from vieval_plugin.readers.absent_images import absence
from vieval_plugin.run.answerers import opened_store
from vieval_plugin.run.backbones import JUDGE, Backbones
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.router import Question, Router, question_of
from vieval_plugin.run.runner import judge_each, run_jobs
from vieval_plugin.run.scheduler import Outcome, combined, ends, one_by_one
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import announce
from vieval_plugin.text.wording import plural

if TYPE_CHECKING:
    from vieval_plugin.readers.samples import SampleRow

K = TypeVar("K")


@dataclass
class QuestionCounts:
    """The number of times that each question of a model comes, by key."""

    #: Questions to be asked.
    to_ask: Counter[str] = field(default_factory=Counter)
    #: Questions that the store answers.
    stored: Counter[str] = field(default_factory=Counter)


async def count_of(
    program: Program,
    look_up: Callable[[Question], Awaitable[tuple[str, Reply | None] | None]],
    totals: QuestionCounts,
) -> None:
    """Follow a judge's program as far as stored replies lead, and count what it asks up to there.

    `look_up` gives the key of a question and its stored reply, None where it cannot be asked. What
    a program asks after an answer that is not stored, or after a tool, cannot be known.
    """

    async def stored(_: int, ask: Ask) -> Reply:
        question = question_of(ask)
        if question is None or (lookup := await look_up(question)) is None:
            raise Deferred
        key, reply = lookup
        (totals.to_ask if reply is None else totals.stored)[key] += 1
        if reply is None:
            raise Deferred
        return reply

    await ends(program, stored, Deferred)


_ASKED_AGAIN = (Status.PARSE_FAILURE, Status.REFUSAL, Status.API_ERROR)


def unanswered(verdict: Verdict) -> list[Path]:
    """The paths of a failed verdict's questions that came to nothing and may be asked again."""
    if verdict.status not in _ASKED_AGAIN:
        return []
    last = {step.path: step.status for step in verdict.trace}
    return [path for path, status in last.items() if status in _ASKED_AGAIN]


#: Samples under way where no server bounds them, so that batches are full; who measures has bounds
#: for memory.
MEASURED_AT_ONCE = 128


class Session:
    """Runs of one set of options, one after another or several at once in one event loop; use as
    `async with`.

    `backbone` is the one that answers, where a caller names it and not the options; `progress`
    counts over all runs.
    `asks_a_model`: that some judge of theirs does, and none of them measures alone. `batch`: that
    models are asked by batches.
    """

    def __init__(
        self,
        options: Config,
        backbone: Backbone | None,
        progress: Progress,
        asks_a_model: bool = True,
        batch: BatchOptions | None = None,
    ) -> None:
        self._options = options
        self._progress = progress
        self._asks_a_model = asks_a_model
        self._batch = batch
        self._by_name = dict(options.backbones)
        if backbone is not None:
            self._by_name[JUDGE] = backbone
        self._stack = AsyncExitStack()
        self._store: Store | None = None

    async def __aenter__(self) -> Session:
        async with AsyncExitStack() as stack:
            self._store = stack.enter_context(
                opened_store(self._options, self._asks_a_model)
            )
            usage = self._progress.usage
            backbones = Backbones(
                self._by_name,
                self._store,
                usage,
                self._options.statistics.seed,
                self._batch,
            )
            self._backbones = await stack.enter_async_context(backbones)
            self._router = stack.enter_context(
                Router(usage, self._store, scorers=Scorers(self._options.scorers))
            )
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def ask_anew(self) -> None:
        """Count what was stored before this moment as absent from now on."""
        if self._store is not None:
            self._store.ask_anew()

    async def count(
        self,
        judged: Iterable[Judged],
        prepared: PreparedJudge,
        totals: QuestionCounts,
    ) -> None:
        """Count the questions that judging these begins with, and those that the store answers;
        nothing is asked.
        """
        for sample in judged:
            if prepared.asks_a_model and not absence(sample):
                await count_of(
                    prepared.program(sample),
                    self._backbones.look_up,
                    totals,
                )

    async def ask_in_waves(self, jobs: Callable[[], Iterable[Job]]) -> None:
        """Have all questions of jobs answered by batches: a wave of them, and of what follows from
        the answers.

        `jobs` begins anew for each wave, with samples whose images are there.
        """

        async def has_ended(job: Job) -> bool:
            async def ask_model(_: int, question: Question) -> Reply:
                return await self._backbones.answer(question, job.repeat)

            return await ends(
                job.judge.program(job.judged),
                partial(self._router.answer_one, answer=ask_model),
                Deferred,
            )

        for wave in count(1):
            remaining = iter(jobs())
            waiting = 0
            while chunk := list(islice(remaining, MEASURED_AT_ONCE)):
                waiting += (await gather_or_cancel(map(has_ended, chunk))).count(False)
            if not waiting:
                return
            samples = plural(waiting, "sample")
            announce(f"wave {wave}: waiting for answers on {samples}")
            await self._backbones.settle()

    async def judge(
        self,
        samples: Sequence[Judged],
        prepared: PreparedJudge,
        outcomes: dict[int, Outcome],
        bar: bool,
        decided: Mapping[int, Verdict] | None = None,
        attempts: int = 1,
    ) -> None:
        """Judge samples or contests; their outcomes are put into `outcomes` as they come, by
        number.

        `decided` has the verdicts that are known before, by number; `attempts` is as for `outcome`.
        A sample with an image file that is not there is not asked about.
        """
        if prepared.calibration:
            prepared.calibration.require_kinds(sample.kind for sample in samples)
        early = {
            number: Outcome(verdict) for number, verdict in (decided or {}).items()
        }
        for number, sample in enumerate(samples):
            if number not in early and (verdict := absence(sample)):
                early[number] = Outcome(verdict)
        for outcome in early.values():
            self._progress.count(outcome.verdict)
        outcomes |= early
        unjudged_numbers = [
            number for number in range(len(samples)) if number not in early
        ]

        def keep_outcome(index: int, outcome: Outcome) -> None:
            outcomes[unjudged_numbers[index]] = outcome

        await judge_each(
            [Job(samples[number], prepared) for number in unjudged_numbers],
            self._backbones.answer,
            self._progress,
            keep_outcome,
            live=self.live(prepared),
            bar=bar,
            router=self._router,
        )
        failed = [
            number
            for number in unjudged_numbers
            if unanswered(outcomes[number].verdict)
        ]
        if attempts > 1 and failed:
            again = await gather_or_cancel(
                self.outcome(samples[number], prepared, attempts) for number in failed
            )
            outcomes |= zip(failed, again, strict=True)

    async def outcome(
        self,
        judged: Judged,
        prepared: PreparedJudge,
        attempts: int = 1,
        repeat: int = 0,
        repeats: int = 1,
    ) -> Outcome:
        """Judge one sample or contest concurrently with others.

        Args:
            judged: with images that are there.
            prepared: the judge.
            attempts: how often a question is asked in all until it is answered. The store does not
                answer it again: what could not be read the first time is kept under a key of its
                own.
            repeat: number of this verdict among those on the same, from 0, each with answers of its
                own.
            repeats: how many of these there are.

        Raises:
            VievalError: its server is away, or the judge cannot run.
        """
        asked_again: Counter[Path] = Counter()
        outcomes = []

        async def answer(question: Question, number: int) -> Reply:
            return await self._backbones.answer(
                question, number + repeats * asked_again[question.path]
            )

        for _ in range(attempts):
            await run_jobs(
                self._router,
                [Job(judged, prepared, repeat)],
                answer,
                lambda _, outcome: outcomes.append(outcome),
                live=1,
            )
            if not (failed := unanswered(outcomes[-1].verdict)):
                break
            asked_again.update(failed)
        return combined(outcomes[-1].verdict, outcomes)

    async def judge_stream(
        self,
        rows: Iterable[tuple[K, SampleRow]] | AsyncIterable[tuple[K, SampleRow]],
        prepared: PreparedJudge,
        on_outcome: Callable[[K, SampleRow, Outcome], None],
        repeat: int = 0,
    ) -> None:
        """Judge rows, each with a key, as they are read, holding no more than are under way; their
        outcomes come as they end.

        `repeat` is the number of these verdicts among those on the same.
        """
        under_way = {}

        async def jobs() -> AsyncIterator[Job]:
            indexes = count()
            async for key, row in one_by_one(rows):
                under_way[next(indexes)] = key, row
                yield Job(row.sample, prepared, repeat)

        def hand_on(index: int, outcome: Outcome) -> None:
            self._progress.count(outcome.verdict, prepared.spec.name)
            on_outcome(*under_way.pop(index), outcome)

        await run_jobs(
            self._router,
            jobs(),
            self._backbones.answer,
            hand_on,
            live=self.live(prepared),
        )

    def live(self, prepared: PreparedJudge) -> int:
        """The number of samples under way at once."""
        asks_server = JUDGE in self._by_name and not prepared.spec.scored
        return self._by_name[JUDGE].num_concurrent if asks_server else MEASURED_AT_ONCE


async def ask_in_batches(
    jobs: Callable[[], Iterable[Job]],
    judges: Iterable[PreparedJudge],
    options: Config,
    backbone: Backbone | None,
    batch: BatchOptions,
) -> None:
    """Have all questions of jobs answered by batches, after a line on how many follow from one
    another.

    Args:
        jobs: begins anew for each wave of batches, with samples whose images are there.
        judges: those of the jobs.
        options: those in force.
        backbone: the model that answers, where a command names it and not the options.
        batch: the folder that answers are kept in, for a session with it that judges these jobs.

    Raises:
        VievalError: batches are nothing for this judge or service, or the user is to have files
            answered; what was sent is kept.
    """
    reminders = options.judges.reminders
    for prepared in judges:
        name = prepared.spec.name
        if prepared.uses_tools:
            raise VievalError(
                f"{name} uses image tools between its questions, so each question "
                "would be a separate batch; run it without --batch"
            )
        questions = plural(prepared.rounds, "question")
        waves = plural(prepared.rounds * (1 + reminders), "wave")
        announce(
            f"{name} with batches: at most {waves} ({questions} in a row, "
            f"{plural(reminders, 're-ask')} for each), each sent up to {MOST_SENDS} times "
            "if batches expire or fail"
        )
    async with Session(
        options,
        backbone,
        Progress(),
        batch=replace(batch, sends=True),
    ) as session:
        await session.ask_in_waves(jobs)
