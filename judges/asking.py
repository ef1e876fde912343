"""Asking for scores and reading them, with at most a few reminders when a reply cannot be read."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from vieval_plugin.judges.parsing import parse_scores
from vieval_plugin.judges.protocol import Ask, Chat, Failure, Message, Reply, Status, Step, Text, Wording

REMINDER = "reminder.jinja"
_QUOTED = 2000


@dataclass(frozen=True)
class ScoreAsk:
    """A chat that is to be answered with `count` scores from 0 to `high`."""

    chat: Chat
    count: int
    high: float = 10.0


@dataclass(frozen=True)
class Scored:
    """What came of a question: its final step, and every step on the way for the trace."""

    final: Step
    steps: tuple[Step, ...]


def ask_scores(
    asked: Sequence[ScoreAsk], wording: Wording, reminders: int = 1
) -> Generator[list[Ask], list[Reply], list[Scored]]:
    """Ask all questions at once; those whose reply cannot be parsed again, up to `reminders` times, with the error told.

    A question that a reminder saved has the final status `repaired`. For use with `yield from` in a judge program.
    """
    replies = yield [ask.chat for ask in asked]
    steps = [[_read(reply, ask, ask.chat.label)] for reply, ask in zip(replies, asked, strict=True)]
    for turn in range(1, reminders + 1):
        failed = [i for i, so_far in enumerate(steps) if so_far[-1].status is Status.PARSE_FAILURE]
        if not failed:
            break
        replies = yield [_reminded(asked[i].chat, steps[i][-1], wording) for i in failed]
        for i, reply in zip(failed, replies, strict=True):
            step = _read(reply, asked[i], f"{asked[i].chat.label} (reminder {turn})")
            steps[i].append(replace(step, status=Status.REPAIRED) if step.status.usable else step)
    return [Scored(_final(so_far), tuple(so_far)) for so_far in steps]


def _read(reply: Reply, ask: ScoreAsk, label: str) -> Step:
    if isinstance(reply, Failure):
        return Step(label, reply.status, reason=reply.reason)
    if not isinstance(reply, Text):
        return Step(label, Status.API_ERROR, reason=f"a text was asked for, {type(reply).__name__} came")
    parsed = parse_scores(reply.text, count=ask.count, high=ask.high)
    return Step(
        label, parsed.status, parsed.scores, reply.text, parsed.reasoning if parsed.status.usable else parsed.reason
    )


def _reminded(chat: Chat, failed: Step, wording: Wording) -> Chat:
    """The same conversation, the answer that could not be read, and what was wrong with it."""
    text = wording.render(REMINDER, {"reason": failed.reason})
    answer = failed.answer[:_QUOTED]
    said = (Message("assistant", (answer,)),) if answer.strip() else ()
    if said:
        return replace(chat, messages=(*chat.messages, *said, Message("user", (text,))))
    *before, last = chat.messages
    return replace(chat, messages=(*before, Message(last.role, (*last.parts, text))))


def _final(steps: list[Step]) -> Step:
    """The step that counts, under the question's own label: the last if it was read or its call failed, else the first."""
    unread = (Status.PARSE_FAILURE, Status.REFUSAL)
    last = steps[0] if steps[-1].status in unread else steps[-1]
    return replace(last, label=steps[0].label)
