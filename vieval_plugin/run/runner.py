"""The run loop of every caller: samples or contests and judges in, verdicts out, whoever answers the questions.

Programs go in waves where whole batches are answered, and each at its own pace where single questions are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from operator import itemgetter

from tqdm.auto import tqdm

from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.metrics.opening import Scorers
from vieval_plugin.config import ToolOptions
from vieval_plugin.errors import VievalError
from vieval_plugin.images import is_there, name_of
from vieval_plugin.judges.contests import Judged, candidates_of
from vieval_plugin.judges.protocol import Ask, Reply
from vieval_plugin.run.jobs import Apart, Job
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.router import AnswerBatch, Question, Router
from vieval_plugin.run.scheduler import Outcome, run_concurrently, run_in_waves
from vieval_plugin.run.warnings import warn_of_unlike_images


def judge_in_waves(
    jobs: Sequence[Job],
    answer: AnswerBatch,
    progress: Progress,
    store: Store | None = None,
    bar: bool = False,
    scorers: Scorers | None = None,
    tools: ToolOptions | None = None,
) -> list[Outcome]:
    """Judge all jobs together, the questions of all in one call of `answer` a wave; outcomes in the jobs' order.

    `scorers` measure for judges that measure with a network, `tools` bound the memory of image tools.

    VievalError when the run cannot go on.
    """
    warn_of_unlike_images(jobs)
    apart = Apart(jobs)

    def ask(asked: list[tuple[int, Ask]]) -> list[Reply]:
        return router.wave([(apart.owners[number], one) for number, one in asked], answer)

    with Router(progress.usage, store, bar, scorers, tools) as router:
        outcomes = run_in_waves([job.judge.program(job.judged) for job in apart.jobs], ask)
    found = [one for number, outcome in enumerate(outcomes) for one in apart.ended(number, outcome)]
    for number, outcome in found:
        progress.count([outcome], jobs[number].judge.spec.name)
    return [outcome for _, outcome in sorted(found, key=itemgetter(0))]


async def judge_each(
    jobs: Iterable[Job],
    answer: Callable[[Question, int], Awaitable[Reply]],
    progress: Progress,
    on_outcome: Callable[[int, Outcome], None],
    *,
    live: int,
    store: Store | None = None,
    bar: bool = True,
    scorers: Scorers | None = None,
    tools: ToolOptions | None = None,
) -> None:
    """Judge every job, `live` at a time; outcomes are handed on as they come, by the jobs' number.

    `answer` is given a question and the job's repeat; `scorers` measure for judges that measure with a network,
    `tools` bound the memory of image tools. VievalError when the run cannot go on, such as when a server is
    down for good.
    """
    with Router(progress.usage, store, scorers=scorers, tools=tools) as router:
        await judge_with(router, jobs, answer, progress, on_outcome, live=live, bar=bar)


async def judge_with(
    router: Router,
    jobs: Iterable[Job],
    answer: Callable[[Question, int], Awaitable[Reply]],
    progress: Progress,
    on_outcome: Callable[[int, Outcome], None],
    *,
    live: int,
    bar: bool = True,
) -> None:
    """`judge_each` by a router that is open already."""
    apart = Apart(whole := tuple(jobs))
    warn_of_unlike_images(whole)
    programs = (job.judge.program(job.judged) for job in apart.jobs)

    def ended(number: int, outcome: Outcome) -> None:
        for place, whole in apart.ended(number, outcome):
            progress.count([whole], apart.whole[place].judge.spec.name)
            on_outcome(place, whole)
        shown.set_postfix(progress.failures(), refresh=False)
        shown.update()

    async def ask_model(number: int, question: Question) -> Reply:
        job = apart.jobs[number]
        if job.judge.uses_tools:
            await router.look(question)
        return await answer(question, job.repeat)

    async def route(number: int, ask: Ask) -> Reply:
        return await router.one(number, ask, ask_model)

    with tqdm(total=len(apart.jobs), desc="Judging", unit="sample", disable=not bar) as shown:
        await run_concurrently(programs, route, live=min(live, len(apart.jobs)), on_outcome=ended)


def absent_image(judged: Judged) -> str:
    """Which image of a sample or contest is not there, in words; empty where all are."""
    for sample in candidates_of(judged):
        for role, image in sample.images.items():
            if not is_there(image):
                return f"the image {role} is not there: {name_of(image)}"
    return ""


def require_images(judged: Iterable[Judged], remedy: str) -> None:
    """VievalError naming the first image file that is absent and how many are, with what to do about it."""
    shown = (image for one in judged for sample in candidates_of(one) for image in sample.images.values())
    absent = list(dict.fromkeys(name_of(image) for image in shown if not is_there(image)))
    if absent:
        more = f" (and {len(absent) - 1} more images)" if len(absent) > 1 else ""
        raise VievalError(f"{absent[0]}: no such image{more}; {remedy}")
