"""Several programs as one: what they ask at the same time is asked at once."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import islice
from typing import TypeVar

from vieval_plugin.judges.protocol import Ask, Reply

T = TypeVar("T")


def gather(
    programs: Sequence[Generator[list[Ask], list[Reply], T]],
) -> Generator[list[Ask], list[Reply], list[T]]:
    """Advance sub-programs in step: all their asks in one list, to each its own replies. Their
    results, in order.

    For use with `yield from` in a judge program.
    """
    results: dict[int, T] = {}
    asks: dict[int, list[Ask]] = {}

    def advance(index: int, replies: list[Reply] | None) -> None:
        asks.pop(index, None)
        try:
            asks[index] = (
                next(programs[index])
                if replies is None
                else programs[index].send(replies)
            )
        except StopIteration as end:
            results[index] = end.value

    for index in range(len(programs)):
        advance(index, None)
    while asks:
        under_way = list(asks.items())
        replies = iter(
            (yield [ask for _, program_asks in under_way for ask in program_asks])
        )
        for index, program_asks in under_way:
            advance(index, list(islice(replies, len(program_asks))))
    return [results[index] for index in range(len(programs))]
