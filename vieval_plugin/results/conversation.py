"""Conversations behind verdicts: the judge's program is run again on its recorded answers.

A verdict's trace holds every answer word for word, under the path of its question; judges have no I/O, so the same
program asks the same questions again. Training data and what `vieval show` prints come from here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.conversation import Exchange
from vieval_plugin.judges.protocol import Path, Program, Reply, Verdict
from vieval_plugin.run.prepare import UNJUDGED
from vieval_plugin.run.router import recorded_reply
from vieval_plugin.run.scheduler import BROKEN


def conversation(judge: Callable[[Judged], Program], judged: Judged, verdict: Verdict) -> list[Exchange]:
    """Every question behind a verdict with its answer, in order.

    Nothing is known of a program that broke, and a sample that the judge was not asked about
    has none. VievalError where the judge now asks something else, because its pack or its options are not those of the run.
    """
    if any(step.path in (BROKEN, UNJUDGED) for step in verdict.trace):
        return []
    steps = {(step.path, step.attempt): step for step in verdict.trace}
    asks_by_path: Counter[Path] = Counter()
    exchanges: list[Exchange] = []
    program = judge(judged)
    replies: list[Reply] | None = None
    try:
        while True:
            asks = next(program) if replies is None else program.send(replies)
            replies = []
            for ask in asks:
                attempt, asks_by_path[ask.path] = asks_by_path[ask.path], asks_by_path[ask.path] + 1
                step = steps.get((ask.path, attempt))
                if step is None:
                    raise VievalError(
                        f"{judged.id}: no recorded answer to {'/'.join(ask.path)}; use the options of the run that made it"
                    )
                replies.append(recorded_reply(ask, step))
                exchanges.append(Exchange(ask, replies[-1], step))
    except StopIteration as end:
        if dict(end.value.scores) != dict(verdict.scores) or end.value.choice != verdict.choice:
            raise VievalError(
                f"{judged.id}: the recorded answers give other scores now; use the options of the run that made it"
            ) from None
    return exchanges
