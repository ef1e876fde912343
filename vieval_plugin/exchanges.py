"""From a verdict back to the conversation behind it: the judge's program is run again on its recorded answers.

A verdict's trace holds every answer word for word, under the label of its question; judges have no I/O, so the same
program asks the same questions again. Training data and what `vieval show` prints come from here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from vieval_plugin.backends.tools import run
from vieval_plugin.errors import VievalError
from vieval_plugin.judges import tools
from vieval_plugin.judges.protocol import (
    Ask,
    Chat,
    Failure,
    Judge,
    Likelihood,
    Probabilities,
    Reply,
    Sample,
    Status,
    Step,
    Text,
    UseTool,
    Verdict,
)


@dataclass(frozen=True)
class Exchange:
    """One question as it was asked, the reply to it, and the trace's step."""

    ask: Ask
    reply: Reply
    step: Step


def exchanges(judge: Judge, sample: Sample, verdict: Verdict) -> list[Exchange]:
    """Every question behind a verdict with its answer, in order.

    VievalError where the judge now asks something else, because its pack or its options are not those of the run.
    """
    steps = {step.label: step for step in verdict.trace}
    asked: Counter[str] = Counter()
    found: list[Exchange] = []
    program = judge(sample)
    replies: list[Reply] | None = None
    try:
        while True:
            asks = next(program) if replies is None else program.send(replies)
            replies = []
            for ask in asks:
                turn, asked[ask.label] = asked[ask.label], asked[ask.label] + 1
                label = f"{ask.label} (reminder {turn})" if turn else ask.label
                if label not in steps:
                    raise VievalError(
                        f"{sample.id}: no recorded answer to {label}; use the options of the run that made it"
                    )
                replies.append(_reply(ask, steps[label]))
                found.append(Exchange(ask, replies[-1], steps[label]))
    except StopIteration as end:
        if dict(end.value.scores) != dict(verdict.scores):
            raise VievalError(
                f"{sample.id}: the recorded answers give other scores now; use the options of the run that made it"
            ) from None
    return found


def _reply(ask: Ask, step: Step) -> Reply:
    """The reply that a step records; a step without an answer is a call that failed."""
    failed = not step.status.usable and not step.answer
    if failed and step.status is not Status.PARSE_FAILURE:
        return Failure(step.status, step.reason)
    if isinstance(ask, Chat):
        return Text(step.answer)
    if isinstance(ask, UseTool):
        return _tool_result(ask, step)
    if isinstance(ask, Likelihood):
        # a trace has the sum over the answer's spellings; which of them had it is not kept
        rest = (0.0,) * (len(ask.continuations) - 1)
        return Probabilities((step.scores[0], *rest), (step.scores[1], *rest))
    raise VievalError(f"{step.label}: what was measured cannot be told again")


def _tool_result(ask: UseTool, step: Step) -> Reply:
    """What a tool found, as recorded. A tool that only draws is run again: no trace holds images."""
    tool = tools.registry().get(ask.tool)
    return run(ask) if tool is not None and tool.use is None else tools.from_json(step.answer)


def final_chats(found: Sequence[Exchange]) -> dict[str, tuple[Chat, str]]:
    """For each label whose answer was read, the question as first asked and the answer that counted."""
    first: dict[str, Chat] = {}
    final: dict[str, tuple[Chat, str]] = {}
    for one in found:
        if isinstance(one.ask, Chat):
            first.setdefault(one.ask.label, one.ask)
            if one.step.status.usable:
                final[one.ask.label] = (first[one.ask.label], one.step.answer)
    return final
