"""Answerers of a run's questions: a server, an engine in this process, metrics, or a
function of the host.

A host names one and hands it jobs; the store of replies is opened here alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.cache.store_file import NoLocks
from vieval_plugin.backends.http.openai import Sampling
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.metrics.network_metrics import Scorers
from vieval_plugin.backends.reply_checks import NumberedQuestion
from vieval_plugin.config import Backbone, Config
from vieval_plugin.judges.protocol import Reply
from vieval_plugin.run.backbones import JUDGE, Backbones
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.router import AnswerBatch, Question, refuse_questions
from vieval_plugin.run.runner import judge_each, judge_in_batches
from vieval_plugin.run.scheduler import OnOutcome, Outcome
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import announce


@contextmanager
def opened_store(options: Config, asks_a_model: bool = True) -> Iterator[Store | None]:
    """Open the reply cache of the options during a run; None without one.

    One that cannot be used ends a run that asks a model, as replies would be paid for again;
    measurements are made again. A file system without locks ends no run.
    """
    path = options.store_path()
    store = None
    try:
        store = Store(path, options.store.max_age) if path else None
    except NoLocks as error:
        announce(f"continuing without the reply cache: {error}")
    except VievalError as error:
        if asks_a_model:
            raise
        announce(f"continuing without the reply cache (no model is asked): {error}")
    try:
        yield store
    finally:
        if store is not None:
            store.close()


class Answerer(Protocol):
    """A way to answer the questions of judges."""

    def judge(
        self,
        jobs: Sequence[Job],
        options: Config,
        progress: Progress,
        on_outcome: OnOutcome,
        bar: bool,
    ) -> None:
        """Judge all jobs.

        Args:
            jobs: samples or contests, each with its judge.
            options: those of the store, of image tools and of statistics; a server's other
                backbones are theirs too.
            progress: counts calls, tokens and failures.
            on_outcome: called with each outcome as it comes, and its job's number.
            bar: show a progress bar, where the answerer has none of its own.

        Raises:
            VievalError: the run cannot go on.
        """


@dataclass(frozen=True)
class ServerAnswerer:
    """An OpenAI-compatible server as the judge's backbone, each sample at its own pace."""

    backbone: Backbone

    def judge(
        self,
        jobs: Sequence[Job],
        options: Config,
        progress: Progress,
        on_outcome: OnOutcome,
        bar: bool,
    ) -> None:
        """Judge by the server and the options' other backbones, on an event loop of this run;
        see `Answerer.judge`.
        """
        by_name = {**options.backbones, JUDGE: self.backbone}
        live = self.backbone.num_concurrent

        async def ask_server() -> None:
            async with Backbones(
                by_name,
                store,
                progress.usage,
                options.statistics.seed,
            ) as backbones:
                await judge_each(
                    jobs,
                    backbones.answer,
                    progress,
                    on_outcome,
                    live=live,
                    store=store,
                    bar=bar,
                )

        with opened_store(options) as store:
            asyncio.run(ask_server())


@dataclass(frozen=True)
class MetricAnswerer:
    """Pixel metrics, and the network metrics of `scorers`; judges that ask a model are refused."""

    scorers: Scorers

    def judge(
        self,
        jobs: Sequence[Job],
        options: Config,
        progress: Progress,
        on_outcome: OnOutcome,
        bar: bool,
    ) -> None:
        """Judge by measuring alone; see `Answerer.judge`."""
        with opened_store(options, asks_a_model=False) as store:
            outcomes = judge_in_batches(
                jobs,
                refuse_questions,
                progress,
                store,
                bar,
                self.scorers,
            )
        _hand_on(outcomes, on_outcome)


@dataclass(frozen=True)
class BatchAnswerer:
    """A host's function that answers all questions of a batch step in one call."""

    #: Make it for a run, from the jobs, the store of replies (None for none) and the counter of
    #: calls.
    make_answer: Callable[[Sequence[Job], Store | None, Usage], AnswerBatch]
    #: Pass the store of replies to `make_answer`, whose function stores them itself; False where
    #: they could not be told from those of another model.
    keeps_replies: bool = True

    def judge(
        self,
        jobs: Sequence[Job],
        options: Config,
        progress: Progress,
        on_outcome: OnOutcome,
        bar: bool,
    ) -> None:
        """Judge in batch steps, under the host's own progress bar; see `Answerer.judge`."""
        if not self.keeps_replies:
            options = options.model_copy(
                update={"store": options.store.model_copy(update={"use": False})}
            )
        with opened_store(options) as store:
            outcomes = judge_in_batches(
                jobs,
                self.make_answer(jobs, store, progress.usage),
                progress,
                store,
            )
        _hand_on(outcomes, on_outcome)


class InProcessBackend(Protocol):
    """A model in this process, such as `VLLMBackend` or `TransformersBackend`."""

    model: str
    #: Counter of calls and tokens.
    usage: Usage
    #: Store of replies; None for none.
    store: Store | None
    #: Sampling of answers.
    sampling: Sampling

    def answer(
        self, questions: list[NumberedQuestion], repeats: Sequence[int]
    ) -> list[Reply]:
        """Replies to questions, in order; each comes with its program's number, an index into
        `repeats`.
        """


class EngineAnswerer:
    """A model in this process that answers in batch steps.

    `load` is called once, with the model and the arguments, when the engine is first used;
    `sampling` holds for the runs that follow.
    """

    def __init__(
        self,
        load: Callable[..., InProcessBackend],
        model: str,
        arguments: Mapping[str, Any],
        sampling: Sampling = Sampling(),
    ) -> None:
        self.model = model
        self.sampling = sampling
        self._load = load
        self._arguments = arguments
        self._backend: InProcessBackend | None = None

    def load(self, options: Config) -> None:
        """Load the model now, after a look at the store, and not when it is first asked."""
        with opened_store(options) as store:
            self._loaded(Usage(), store)

    def judge(
        self,
        jobs: Sequence[Job],
        options: Config,
        progress: Progress,
        on_outcome: OnOutcome,
        bar: bool,
    ) -> None:
        """Judge in batch steps, under the backend's own progress bar; see `Answerer.judge`."""
        BatchAnswerer(self._make_answer).judge(
            jobs,
            options,
            progress,
            on_outcome,
            bar,
        )

    def _make_answer(
        self,
        jobs: Sequence[Job],
        store: Store | None,
        usage: Usage,
    ) -> AnswerBatch:
        backend = self._loaded(usage, store)
        repeats = [job.repeat for job in jobs]
        return lambda questions: backend.answer(questions, repeats)

    def _loaded(self, usage: Usage, store: Store | None) -> InProcessBackend:
        if self._backend is None:
            self._backend = self._load(
                self.model,
                usage=usage,
                store=store,
                sampling=self.sampling,
                **self._arguments,
            )
        self._backend.usage = usage
        self._backend.store = store
        self._backend.sampling = self.sampling
        return self._backend


@dataclass(frozen=True)
class CallAnswerer:
    """A host's function that answers one question, each sample at its own pace."""

    #: Make it for a run, from the store of replies (None for none) and the counter of calls; asked
    #: with the job's repeat.
    make_answer: Callable[[Store | None, Usage], Callable[[Question, int], Reply]]
    #: Calls at once, each in a thread; with 0 it is called in the caller's own.
    threads: int = 0

    def judge(
        self,
        jobs: Sequence[Job],
        options: Config,
        progress: Progress,
        on_outcome: OnOutcome,
        bar: bool,
    ) -> None:
        """Judge question by question; see `Answerer.judge`."""
        live = max(1, self.threads)
        with opened_store(options) as store, ThreadPoolExecutor(live) as pool:
            call = self.make_answer(store, progress.usage)

            async def answer(question: Question, repeat: int) -> Reply:
                if not self.threads:
                    return call(question, repeat)
                return await asyncio.get_running_loop().run_in_executor(
                    pool,
                    call,
                    question,
                    repeat,
                )

            asyncio.run(
                judge_each(
                    jobs,
                    answer,
                    progress,
                    on_outcome,
                    live=live,
                    store=store,
                    bar=bar,
                )
            )


def _hand_on(outcomes: Sequence[Outcome], on_outcome: OnOutcome) -> None:
    for number, outcome in enumerate(outcomes):
        on_outcome(number, outcome)
