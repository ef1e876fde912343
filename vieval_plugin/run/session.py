"""What runs need open (the store, connections to servers, networks), kept open from one run to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack

from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.metrics.opening import Scorers
from vieval_plugin.config import Backbone, Config
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Status, Verdict
from vieval_plugin.run.answerers import opened_store
from vieval_plugin.run.backbones import JUDGE, Backbones
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.prepare import PreparedJudge, unjudged
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.question_count import Counted, count_of
from vieval_plugin.run.router import Router
from vieval_plugin.run.runner import absent_image, judge_with
from vieval_plugin.run.scheduler import Outcome

MEASURED_AT_ONCE = 128
"""Samples under way where no server bounds them, so that batches are full; who measures has bounds for memory."""


class Session:
    """Runs of one set of options, one after another or several at once in one event loop; use as `async with`.

    `backbone` is the one that answers, where a caller names it and not the options; `progress` counts over all runs.
    """

    def __init__(self, options: Config, backbone: Backbone | None, progress: Progress) -> None:
        self._options, self._progress = options, progress
        self._named = dict(options.backbones) if backbone is None else {**options.backbones, JUDGE: backbone}
        self._stack = AsyncExitStack()
        self._store: Store | None = None

    async def __aenter__(self) -> Session:
        async with AsyncExitStack() as stack:
            self._store = stack.enter_context(opened_store(self._options))
            usage, seed = self._progress.usage, self._options.statistics.seed
            self._backbones = await stack.enter_async_context(Backbones(self._named, self._store, usage, seed))
            scorers = Scorers(self._options.scorers)
            self._router = stack.enter_context(Router(usage, self._store, scorers=scorers, tools=self._options.tools))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def ask_anew(self) -> None:
        """From now on, what was stored before this moment is as if absent."""
        if self._store is not None:
            self._store.ask_anew()

    async def count(self, judged: Iterable[Judged], prepared: PreparedJudge, counted: Counted) -> None:
        """Count the questions that judging these begins with, and those that the store answers; nothing is asked."""
        for one in judged:
            if prepared.asks_a_model and not absent_image(one):
                await count_of(prepared.program(one), self._backbones.look_up, counted)

    async def judge(
        self,
        samples: Sequence[Judged],
        prepared: PreparedJudge,
        outcomes: dict[int, Outcome],
        bar: bool,
        decided: Mapping[int, Verdict] | None = None,
    ) -> None:
        """Judge samples or contests; their outcomes are put into `outcomes` as they come, by number.

        `decided` has the verdicts that are known before, by number. A sample with an image file that is not there is
        not asked about.
        """
        known = {number: Outcome(verdict) for number, verdict in (decided or {}).items()}
        for number, sample in enumerate(samples):
            if number not in known and (reason := absent_image(sample)):
                known[number] = Outcome(unjudged(Status.TOOL_ERROR, reason))
        self._progress.count(known.values())
        outcomes |= known
        asked = [number for number in range(len(samples)) if number not in known]

        def ended(place: int, outcome: Outcome) -> None:
            outcomes[asked[place]] = outcome

        asks_server = JUDGE in self._named and not prepared.spec.scored
        await judge_with(
            self._router,
            [Job(samples[number], prepared) for number in asked],
            self._backbones.answer,
            self._progress,
            ended,
            live=self._named[JUDGE].num_concurrent if asks_server else MEASURED_AT_ONCE,
            bar=bar,
        )
