"""Asking and reading, with at most a few reminders when a reply cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from vieval_plugin.judges.echoes import ECHO, repeats_request
from vieval_plugin.judges.parsing import Read, parse_scores
from vieval_plugin.judges.protocol import Ask, Chat, Image, Message, Reply, Status, Step, Text, failed_step
from vieval_plugin.judges.text_around import answers_inside, names_other_image
from vieval_plugin.judges.thinking import is_only_thinking
from vieval_plugin.prompts.pack import REMINDER, Pack

#: The finding of an answer with text around it, which a second reply confirmed.
CONFIRMED = "text around the answer, in two replies that agree"

_QUOTED = 2000
_OTHER_IMAGE = "the answer stands under the number of an image that is not judged"
_CUT = "cut off by its token limit"
_STARVED = "cut{} before its first word; raise `--max-tokens` (`max_tokens` of the backbone)"
# what is kept of a text, from its beginning and from its end
_KEPT_HEAD, _KEPT_TAIL = 48 * 1024, 16 * 1024

T = TypeVar("T")


@dataclass(frozen=True)
class ChatRequest(Generic[T]):
    """Chat and the reader of its answer."""

    #: The question.
    chat: Chat
    #: Reader of the answer.
    read: Callable[[str], Read[T]]


@dataclass(frozen=True)
class StructuredChatOutcome(Generic[T]):
    """Outcome of a question."""

    #: Its value, if there is one.
    value: T | None
    #: Every step on the way, for the trace.
    steps: tuple[Step, ...]
    #: Findings of its replies.
    findings: tuple[str, ...] = ()

    @property
    def final(self) -> Step:
        """The step that counts: the last if it was read or its call failed, else the first."""
        unreadable = (Status.PARSE_FAILURE, Status.REFUSAL)
        return self.steps[0] if self.steps[-1].status in unreadable else self.steps[-1]


def score_request(
    chat: Chat, schema: Mapping[str, Any] | None = None, *, as_shown: bool = False
) -> ChatRequest[tuple[float, ...]]:
    """A chat that is to be answered with scores, which are the value and the step's scores.

    Args:
        chat: the question.
        schema: that of the answer where it is not the chat's, which a server may enforce.
        as_shown: as for `parse_scores`.
    """
    return ChatRequest(chat, partial(parse_scores, schema=schema or chat.schema or {}, as_shown=as_shown))


def ask_all(
    questions: Sequence[ChatRequest[T]], wording: Pack
) -> Generator[list[Ask], list[Reply], list[StructuredChatOutcome[T]]]:
    """Ask all questions at once; those whose reply cannot be parsed again, up to `wording.reminders` times, with the error.

    One that was cut before its first word is not reminded: it would be again.
    A question that a reminder saved has the final status `repaired`. For use with `yield from` in a judge program.
    """
    if not questions:
        return []
    replies = yield [question.chat for question in questions]
    outcomes = [_outcome(reply, question) for reply, question in zip(replies, questions, strict=True)]
    # a published protocol of labels has no second question
    for _ in range(0 if wording.replies == "labels" else wording.reminders):
        failed = [i for i, outcome in enumerate(outcomes) if _is_unread(outcome.steps[-1])]
        if not failed:
            break
        replies = yield [_reminder_chat(questions[i].chat, outcomes[i].steps[-1], wording) for i in failed]
        for i, reply in zip(failed, replies, strict=True):
            outcomes[i] = _outcome(reply, questions[i], outcomes[i])
    return outcomes


def _is_unread(step: Step) -> bool:
    return step.status is Status.PARSE_FAILURE and not (step.cut and is_only_thinking(step.answer))


def _outcome(
    reply: Reply, question: ChatRequest[T], earlier: StructuredChatOutcome[T] | None = None
) -> StructuredChatOutcome[T]:
    """The outcome of a question after a reply to it, or to a reminder of it."""
    steps, findings = (earlier.steps, earlier.findings) if earlier else ((), ())
    step, read = _read(reply, question, len(steps), steps[-1] if steps else None)
    if steps and step.status.usable:
        step = replace(step, status=Status.REPAIRED)
    return StructuredChatOutcome(read.value, (*steps, step), (*findings, *filter(None, [read.finding])))


def excerpt(text: str) -> str:
    """Shorten a text that a model said: all of it or, of one that ran on, its beginning and its end.

    >>> excerpt("short"), len(excerpt("long" * 10**6)) < 66_000
    ('short', True)
    """
    if len(text) <= _KEPT_HEAD + _KEPT_TAIL:
        return text
    return (
        f"{text[:_KEPT_HEAD]} [... {len(text) - _KEPT_HEAD - _KEPT_TAIL} characters left out ...] {text[-_KEPT_TAIL:]}"
    )


def _read(reply: Reply, question: ChatRequest[T], attempt: int, earlier: Step | None) -> tuple[Step, Read[T]]:
    """The step of a reply, and what was read of it: of all that was said, however much of it is kept."""
    path = question.chat.path
    if not isinstance(reply, Text):
        step = failed_step(reply, path, "a text was", attempt=attempt)
        return step, Read(step.status)
    images = sum(isinstance(part, Image) for message in question.chat.messages for part in message.parts)
    if reply.cut and is_only_thinking(reply.text):
        limit = f" at {reply.output_tokens:,} tokens" if reply.output_tokens else ""
        reading: Read[T] = Read(Status.PARSE_FAILURE, reason=_STARVED.format(limit))
    elif names_other_image(reply.text, images):
        reading = Read(Status.PARSE_FAILURE, reason=_OTHER_IMAGE)
    else:
        reading = question.read(reply.text)
    if earlier and not reply.cut and not reading.status.usable:
        reading = _confirmed(reply.text, earlier, question, images) or reading
    if reply.cut and reading.status.usable:
        complete = reply.text.rstrip(" \r\n\t`").endswith(("}", "</answer>"))
        reading = replace(reading, status=Status.REPAIRED) if complete else Read(Status.PARSE_FAILURE, reason=_CUT)
    if reading.status.usable and repeats_request(reading.reason, question.chat):
        reading = replace(reading, finding=ECHO)
    step = Step(
        path, reading.status, reading.scores, excerpt(reply.text), excerpt(reading.reason), attempt, cut=reply.cut
    )
    return step, reading


def _confirmed(text: str, earlier: Step, question: ChatRequest[T], images: int) -> Read[T] | None:
    """The reading of an answer with text around it, if the reply before, read in the same way, has the same scores."""
    if earlier.cut:
        return None
    answers = answers_inside(earlier.answer, images)
    for form, answer in answers_inside(text, images).items():
        first, second = question.read(answers.get(form, "")), question.read(answer)
        agree = first.scores == second.scores if second.scores else first.value == second.value
        if first.status.usable and second.status.usable and agree:
            return replace(second, status=Status.REPAIRED, finding=second.finding or CONFIRMED)
    return None


def _reminder_chat(chat: Chat, failed: Step, wording: Pack) -> Chat:
    """The same conversation, the answer that could not be read, and what was wrong with it."""
    text = wording.render(REMINDER, {"reason": failed.reason})
    answer = failed.answer[:_QUOTED]
    previous = (Message("assistant", (answer,)),) if answer.strip() else ()
    if previous:
        return replace(chat, messages=(*chat.messages, *previous, Message("user", (text,))))
    *earlier, last = chat.messages
    return replace(chat, messages=(*earlier, Message(last.role, (*last.parts, text))))
