"""Judging live: samples and a judge in, verdicts out, through the backbones that the options name."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tqdm import tqdm

from vieval_plugin.backends.measure import measure
from vieval_plugin.backends.openai import OpenAIBackend, Sampling
from vieval_plugin.backends.server import ServerOptions, Usage
from vieval_plugin.backends.store import Store
from vieval_plugin.backends.tools import Threads
from vieval_plugin.config import Backbone, Config
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import (
    Ask,
    Chat,
    Judge,
    Likelihood,
    Measure,
    Program,
    Reply,
    Sample,
    Status,
    UseTool,
)
from vieval_plugin.scheduler import Outcome, run_concurrently

JUDGE = "judge"


class Answering(Protocol):
    """Whoever answers chats and likelihoods."""

    async def answer(self, ask: Chat | Likelihood, repeat: int = 0) -> Reply: ...


@dataclass
class Job:
    """One sample to judge; `repeat` numbers verdicts of the same sample."""

    sample: Sample
    judge: Judge
    repeat: int = 0


@dataclass
class Progress:
    """What is printed while a run goes on, and at its end."""

    usage: Usage = field(default_factory=Usage)
    statuses: Counter[Status] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)

    @property
    def failed_calls(self) -> int:
        """Verdicts that lack a score because a call or a tool failed; unreadable answers and refusals are findings."""
        return self.statuses[Status.API_ERROR] + self.statuses[Status.TOOL_ERROR]

    def count(self, outcomes: Iterable[Outcome]) -> None:
        """Take note of how verdicts came out."""
        for outcome in outcomes:
            self.statuses[outcome.verdict.status] += 1
            self.findings.update(outcome.verdict.findings)

    def lines(self) -> list[str]:
        """The last lines of a run: what it cost, and what failed."""
        u = self.usage
        lines = [
            f"verdicts: {_counted(self.statuses) or 'none'}",
            f"calls: {u.calls}, answered from the store: {u.cached}, tokens in: {u.input_tokens}, out: {u.output_tokens}",
        ]
        if self.findings:
            lines.append(f"findings: {_counted(self.findings)}")
        if u.retries:
            lines.append(f"tried again: {_counted(u.retries)}")
        if u.failures:
            lines.append(f"FAILED CALLS: {_counted(u.failures)}")
        return lines


async def judge_all(
    jobs: Iterable[Job],
    backbones: Answering,
    progress: Progress,
    on_outcome: Callable[[int, Outcome], None],
    *,
    live: int,
    total: int | None = None,
    bar: bool = True,
) -> None:
    """Judge every job, `live` at a time; outcomes are handed on as they come, by the jobs' number.

    VievalError when the run cannot go on, such as when a server is down for good.
    """
    repeats: dict[int, int] = {}
    shown = tqdm(total=total, desc="Judging", unit="sample", disable=not bar)
    threads = Threads()

    def programs() -> Iterable[Program]:
        for number, job in enumerate(jobs):
            repeats[number] = job.repeat
            yield job.judge(job.sample)

    async def answer(number: int, ask: Ask) -> Reply:
        if isinstance(ask, Measure):
            return await asyncio.to_thread(measure, ask)
        if isinstance(ask, UseTool):
            return await asyncio.wrap_future(threads.start(ask))
        return await backbones.answer(ask, repeats[number])

    def ended(number: int, outcome: Outcome) -> None:
        del repeats[number]
        progress.count([outcome])
        failed = {str(s): n for s, n in progress.statuses.items() if not s.usable}
        shown.set_postfix(failed, refresh=False)
        shown.update()
        on_outcome(number, outcome)

    try:
        await run_concurrently(programs(), answer, live=live, on_outcome=ended)
    finally:
        shown.close()
        threads.close()


def require_images(samples: Iterable[Sample], remedy: str) -> None:
    """VievalError naming the first image file that is absent and how many are, with what to do about it."""
    absent = list(
        dict.fromkeys(
            image.source
            for sample in samples
            for image in sample.images.values()
            if isinstance(image.source, Path) and not image.source.is_file()
        )
    )
    if absent:
        more = f" (and {len(absent) - 1} more images)" if len(absent) > 1 else ""
        raise VievalError(f"{absent[0]}: no such image{more}; {remedy}")


class Backbones:
    """The backbones of a run, each opened when it is first asked; use as `async with`."""

    def __init__(self, named: Mapping[str, Backbone], config: Config, usage: Usage) -> None:
        self._named, self._config, self._usage = named, config, usage
        self._stack = AsyncExitStack()
        self._opened: dict[str, OpenAIBackend] = {}
        self._opening = asyncio.Lock()
        self._store: Store | None = None

    async def __aenter__(self) -> Backbones:
        if self._named and (path := self._config.store_path()):
            self._store = Store(path)
            self._stack.callback(self._store.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def answer(self, ask: Chat | Likelihood, repeat: int = 0) -> Reply:
        """The reply of the backbone that the ask names, or of `judge` where no such one is configured."""
        name = ask.backbone if ask.backbone in self._named else JUDGE
        if name not in self._named:
            raise VievalError(
                f"the judge asks a model and no backbone {ask.backbone!r} is configured; name one with --model and --base-url "
                "(vieval score), or under backbones in the options"
            )
        if name not in self._opened:
            async with self._opening:
                if name not in self._opened:
                    self._opened[name] = await self._stack.enter_async_context(self._backend(name))
        return await self._opened[name].answer(ask, repeat)

    def _backend(self, name: str) -> OpenAIBackend:
        backbone = self._named[name]
        return OpenAIBackend(
            backbone.model,
            server_options(name, backbone),
            usage=self._usage,
            sampling=Sampling(backbone.temperature, backbone.max_tokens, dict(backbone.extra)),
            store=self._store,
            max_pixels=backbone.max_pixels,
            seed=self._config.statistics.seed,
        )


def server_options(name: str, backbone: Backbone) -> ServerOptions:
    """How to call a backbone's servers; VievalError if the variable that should hold its key is not set."""
    return ServerOptions(
        backbone.base_url,
        backbone.key(name),
        backbone.num_concurrent,
        backbone.timeout,
        backbone.retries,
        backbone.patience,
    )


def _counted(counts: Mapping[Status, int] | Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in sorted(counts.items(), key=lambda item: -item[1]))
