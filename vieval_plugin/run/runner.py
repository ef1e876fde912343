"""The run loop of every caller: samples or contests and judges in, verdicts out, whoever answers
the questions.

Programs go in batch steps where whole batches are answered, and each at its own pace where single
questions are.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Sequence,
)
from contextlib import nullcontext
from dataclasses import replace
from operator import itemgetter
from typing import TypeAlias

from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.metrics.network_metrics import Scorers
from vieval_plugin.judges.protocol import Ask, Program, Reply
from vieval_plugin.readers.absent_images import mark_unreadable_output
from vieval_plugin.run.jobs import Job, JobsSplitByCandidate
from vieval_plugin.run.judging_bar import judging_bar
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.router import AnswerBatch, Question, Router
from vieval_plugin.run.scheduler import (
    OnOutcome,
    Outcome,
    one_by_one,
    run_concurrently,
    run_in_batches,
)

AnswerQuestion: TypeAlias = Callable[[Question, int], Awaitable[Reply]]


def judge_in_batches(
    jobs: Sequence[Job],
    answer: AnswerBatch,
    progress: Progress,
    store: Store | None = None,
    bar: bool = False,
    scorers: Scorers | None = None,
) -> list[Outcome]:
    """Judge all jobs together, the questions of all in one call of `answer` a batch step; outcomes
    in the jobs' order.

    `scorers` measure for judges that measure with a network.

    VievalError when the run cannot go on.
    """
    split_contests = JobsSplitByCandidate(jobs)

    def ask(asks: list[tuple[int, Ask]]) -> list[Reply]:
        owners = split_contests.owners
        return router.answer_batch(
            [(owners[number], question) for number, question in asks], answer
        )

    with Router(progress.usage, store, bar, scorers) as router:
        outcomes = run_in_batches(
            [job.judge.program(job.judged) for job in split_contests.jobs], ask
        )
    outcomes = list(map(_examined, split_contests.jobs, outcomes))
    assembled = list[tuple[int, Outcome]]()
    for number, outcome in enumerate(outcomes):
        assembled += split_contests.assemble(number, outcome)
    for number, outcome in assembled:
        progress.count(outcome.verdict, jobs[number].judge.spec.name)
    return [outcome for _, outcome in sorted(assembled, key=itemgetter(0))]


async def judge_each(
    jobs: Iterable[Job],
    answer: AnswerQuestion,
    progress: Progress,
    on_outcome: OnOutcome,
    *,
    live: int,
    store: Store | None = None,
    bar: bool = True,
    router: Router | None = None,
) -> None:
    """Judge every job, `live` at a time; outcomes are handed on as they come, by the jobs' number.

    `answer` is given a question and the job's repeat; `router` is one that is open already.
    VievalError when the run cannot go on, such as when a server is down for good.
    """
    split_contests = JobsSplitByCandidate(all_jobs := tuple(jobs))

    def hand_on(number: int, outcome: Outcome) -> None:
        for job_number, assembled in split_contests.assemble(number, outcome):
            progress.count(assembled.verdict, all_jobs[job_number].judge.spec.name)
            on_outcome(job_number, assembled)
        update(1)

    total = len(split_contests.jobs)
    opened = nullcontext(router) if router else Router(progress.usage, store)
    with opened as route, judging_bar(progress, total, bar) as update:
        await run_jobs(
            route,
            split_contests.jobs,
            answer,
            hand_on,
            live=min(live, total),
        )


async def run_jobs(
    router: Router,
    jobs: Iterable[Job] | AsyncIterable[Job],
    answer: AnswerQuestion,
    on_outcome: OnOutcome,
    *,
    live: int,
) -> None:
    """Judge jobs as they are read, `live` at a time and no more in memory; outcomes are handed
    on by the jobs' number.
    """
    under_way = {}

    async def programs() -> AsyncIterator[Program]:
        number = 0
        async for job in one_by_one(jobs):
            under_way[number] = job
            number += 1
            yield job.judge.program(job.judged)

    def hand_on(number: int, outcome: Outcome) -> None:
        on_outcome(number, _examined(under_way.pop(number), outcome))

    async def ask_model(number: int, question: Question) -> Reply:
        job = under_way[number]
        if job.judge.uses_tools:
            await router.look(question)
        return await answer(question, job.repeat)

    async def route(number: int, ask: Ask) -> Reply:
        return await router.answer_one(number, ask, ask_model)

    await run_concurrently(programs(), route, live=live, on_outcome=hand_on)


def _examined(job: Job, outcome: Outcome) -> Outcome:
    return replace(outcome, verdict=mark_unreadable_output(job.judged, outcome.verdict))
