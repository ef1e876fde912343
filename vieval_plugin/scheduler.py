"""Runs many judge programs against one backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vieval_plugin.judges.protocol import Ask, Program, Reply, Verdict

Answer = Callable[[list[Ask]], list[Reply]]


@dataclass
class _Live:
    place: int
    program: Program
    asks: list[Ask]


def run_in_waves(programs: Sequence[Program], answer: Answer) -> list[Verdict]:
    """Advance all programs together: the asks of all live ones go to `answer` in one call a wave.

    For backends that answer whole batches, such as a harness model. Verdicts come in the order of the programs.
    """
    verdicts: dict[int, Verdict] = {}
    live = [_Live(place, program, []) for place, program in enumerate(programs)]
    live = [program for program in live if _advance(program, None, verdicts)]
    while live:
        replies = iter(answer([ask for program in live for ask in program.asks]))
        live = [p for p in live if _advance(p, [next(replies) for _ in p.asks], verdicts)]
    return [verdicts[place] for place in range(len(programs))]


def _advance(live: _Live, replies: list[Reply] | None, verdicts: dict[int, Verdict]) -> bool:
    """Send replies into a program; whether it goes on."""
    try:
        live.asks = next(live.program) if replies is None else live.program.send(replies)
        return True
    except StopIteration as end:
        verdicts[live.place] = end.value
        return False
