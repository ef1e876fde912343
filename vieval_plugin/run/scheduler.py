"""Runs many judge programs against one backend: in batch steps, or each at its own pace for
servers.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Sequence,
)
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any, TypeVar

from vieval_plugin.backends.concurrency import gather_or_cancel
from vieval_plugin.judges.protocol import (
    Ask,
    Measurement,
    Probabilities,
    Program,
    Reply,
    Status,
    Step,
    Text,
    Verdict,
)
from vieval_plugin.text.errors import VievalError, line_of

T = TypeVar("T")
#: The path of the one step of a program that broke.
BROKEN = ("program",)
_log = logging.getLogger("vieval")


@dataclass(frozen=True)
class Outcome:
    """A program's verdict and its cost."""

    verdict: Verdict
    #: Tokens of its chats, as far as the backend told.
    input_tokens: int = 0
    #: Tokens of the answers, as far as the backend told.
    output_tokens: int = 0
    #: Answers of a model.
    calls: int = 0
    #: Seconds from its first question to its verdict, where it went at its own pace.
    seconds: float = field(default=0.0, compare=False)


@dataclass
class _Live:
    """A program under way."""

    program: Program
    #: What it asked last.
    asks: list[Ask] = field(default_factory=list)
    #: Tokens so far.
    input_tokens: int = 0
    #: Tokens of answers so far.
    output_tokens: int = 0
    #: Answers of a model so far.
    calls: int = 0
    #: Notes of backends, once each.
    notes: dict[str, None] = field(default_factory=dict)

    def advance(self, replies: list[Reply] | None) -> Outcome | None:
        """Send replies (None to begin); the outcome if that was the end."""
        for reply in replies or []:
            if isinstance(reply, Text):
                self.input_tokens += reply.input_tokens or 0
                self.output_tokens += reply.output_tokens or 0
            self.calls += isinstance(reply, (Text, Probabilities))
            if isinstance(reply, (Text, Probabilities, Measurement)):
                self.notes |= dict.fromkeys(reply.notes)
        try:
            if replies is None:
                self.asks = list(next(self.program))
            else:
                self.asks = list(self.program.send(replies))
            return None
        except StopIteration as end:
            return self._outcome(_writable(end.value))
        except (
            Exception
        ) as error:  # a program that breaks is its sample's failure and no other's
            _log.debug("a judge's program failed", exc_info=True)
            return self._outcome(_broken(error))

    def _outcome(self, verdict: Verdict) -> Outcome:
        """The outcome, with what backends took note of on the way among the verdict's findings,
        once each.
        """
        if self.notes:
            verdict = replace(verdict, findings=(*verdict.findings, *self.notes))
        return Outcome(verdict, self.input_tokens, self.output_tokens, self.calls)


def _writable(returned: Any) -> Verdict:
    """The verdict of a program, or an error if it has NaN, which JSON cannot hold."""
    if not isinstance(returned, Verdict):
        return _broken(TypeError("it must return a Verdict"))
    try:
        numbers = [*returned.scores.values(), *returned.recorded.values()]
        numbers += chain(*returned.bounds.values())
        for step in returned.trace:
            numbers += (*step.scores, *step.recorded, *(step.bounds or ()))
    except (AttributeError, TypeError) as error:
        return _broken(error)
    if not_finite := [number for number in numbers if not _is_finite(number)]:
        return _broken(
            ValueError(
                f"its verdict must contain only finite numbers, got {not_finite[0]!r}"
            )
        )
    return returned


def _is_finite(number: object) -> bool:
    try:
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            return False
        return math.isfinite(number)
    except OverflowError:  # of an integer that no float can hold
        return False


def _broken(error: Exception) -> Verdict:
    message = line_of(error)
    reason = message
    if not isinstance(error, VievalError):
        reason = f"the judge's program failed: {type(error).__name__}: {message}"
    return Verdict(
        {}, Status.TOOL_ERROR, trace=(Step(BROKEN, Status.TOOL_ERROR, reason=reason),)
    )


def run_in_batches(
    programs: Sequence[Program], answer: Callable[[list[tuple[int, Ask]]], list[Reply]]
) -> list[Outcome]:
    """Advance all programs together: the asks of all live ones go to `answer` in one call a batch
    step.

    For backends that answer whole batches, such as a harness model. Each ask comes with its
    program's number, replies go back in the asks' order, outcomes come in the programs'. An
    exception in a program is its sample's failure, one in `answer` ends the run.
    """
    outcomes: dict[int, Outcome] = {}
    live = {number: _Live(program) for number, program in enumerate(programs)}
    replies: dict[int, list[Reply]] | None = None
    while live:
        for number in list(live):
            program_replies = None if replies is None else replies[number]
            outcome = live[number].advance(program_replies)
            if outcome is not None:
                outcomes[number] = outcome
                del live[number]
        asks = [
            (number, ask) for number, running in live.items() for ask in running.asks
        ]
        answers = answer(asks) if asks else []
        replies = {number: [] for number in live}
        for (number, _), reply in zip(asks, answers, strict=True):
            replies[number].append(reply)
    return [outcomes[number] for number in range(len(programs))]


async def run_concurrently(
    programs: Iterable[Program] | AsyncIterable[Program],
    answer: Callable[[int, Ask], Awaitable[Reply]],
    *,
    live: int,
    on_outcome: Callable[[int, Outcome], None],
) -> None:
    """Advance each program as soon as its own replies are in, `live` of them at a time, started in
    order.

    `answer` gets the program's number with each ask; `on_outcome` is called as programs end.
    Programs are taken from the iterable one by one, so that no more than `live` exist. An exception
    in a program is its sample's failure, one in `answer` ends the run.
    """
    waiting = one_by_one(programs)
    numbers = count()
    taking = asyncio.Lock()

    async def work() -> None:
        while True:
            async with taking:
                program = await anext(waiting, None)
                number = next(numbers)
            if program is None:
                return
            on_outcome(number, await _drive(number, program, answer))

    await gather_or_cancel(work() for _ in range(live))


async def ends(
    program: Program,
    answer: Callable[[int, Ask], Awaitable[Reply]],
    deferred: type[Exception],
) -> bool:
    """Advance a program as far as there are answers; whether it ended, and none of them was
    `deferred`.
    """
    running = _Live(program)
    replies: list[Reply] | None = None
    while running.advance(replies) is None:
        replies = []
        for reply in await asyncio.gather(
            *(answer(0, ask) for ask in running.asks), return_exceptions=True
        ):
            if isinstance(reply, BaseException) and not isinstance(reply, deferred):
                raise reply
            replies += [] if isinstance(reply, BaseException) else [reply]
        if len(replies) < len(running.asks):
            return False
    return True


async def one_by_one(iterable: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    """The items of an iterable, whether they are waited for or not."""
    if isinstance(iterable, AsyncIterable):
        async for item in iterable:
            yield item
    else:
        for item in iterable:
            yield item


async def _drive(
    number: int,
    program: Program,
    answer: Callable[[int, Ask], Awaitable[Reply]],
) -> Outcome:
    running = _Live(program)
    started = time.monotonic()
    replies: list[Reply] | None = None
    while (outcome := running.advance(replies)) is None:
        if len(running.asks) == 1:
            replies = [await answer(number, running.asks[0])]
        else:
            replies = await gather_or_cancel(
                answer(number, ask) for ask in running.asks
            )
    return replace(outcome, seconds=time.monotonic() - started)
