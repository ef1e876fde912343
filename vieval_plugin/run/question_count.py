"""How many questions a run would ask, and how many of them the store answers, before any is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from vieval_plugin.judges.protocol import Program, Reply
from vieval_plugin.run.router import Question, question_of


@dataclass
class Counted:
    """How often each question of a model comes, by its key: those that are to be asked, and those that the store answers."""

    to_ask: Counter[str] = field(default_factory=Counter)
    stored: Counter[str] = field(default_factory=Counter)


async def count_of(
    program: Program, look_up: Callable[[Question], Awaitable[tuple[str, Reply | None] | None]], counted: Counted
) -> None:
    """Follow a judge's program as far as stored replies lead, and count what it asks up to there.

    `look_up` gives the key of a question and its stored reply, None where it cannot be asked. What a program asks
    after an answer that is not stored, or after a tool, cannot be known.
    """
    replies: list[Reply] | None = None
    while True:
        try:
            asks = next(program) if replies is None else program.send(replies)
        except StopIteration:
            return
        known: list[Reply] = []
        for ask in asks:
            question = question_of(ask)
            if question is None or (found := await look_up(question)) is None:
                continue
            key, reply = found
            (counted.to_ask if reply is None else counted.stored)[key] += 1
            known += [] if reply is None else [reply]
        if len(known) < len(asks):
            return
        replies = known
