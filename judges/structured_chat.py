"""Asking and reading, with at most a few reminders when a reply cannot be read.

An answer with text around it counts only where a second reply says the same. Form decides first: it
begins a line or follows a colon or full stop, it is not quoted, and beside it stands no other
object, no list of numbers and no digit beside a slash. Then no word around it may say that it is
none (`doubts.txt`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Generic, TypeVar

from vieval_plugin.judges.parsing import Read, decoded, parse_scores
from vieval_plugin.judges.protocol import (
    Ask,
    Asking,
    Chat,
    Image,
    Message,
    Reply,
    Status,
    Step,
    Text,
    failed_step,
)
from vieval_plugin.judges.refusals import ECHO, repeats_request
from vieval_plugin.judges.wrapping import (
    doubts,
    is_negated,
    is_only_thinking,
    remove_pair,
    remove_thinking,
    unwrapped,
)
from vieval_plugin.prompts.pack import REMINDER, Pack

#: The finding of an answer with text around it, which a second reply confirmed.
CONFIRMED = "text around the answer, in two replies that agree"

_QUOTED = 2000
_OTHER_IMAGE = "the answer is labelled with the number of a different image"
_CUT = "cut off at the token limit"
_STARVED = (
    "cut{} before its first word; raise `--max-tokens` (`max_tokens` of the backbone)"
)
# what is kept of a text, from its beginning and from its end
_KEPT_HEAD = 48 * 1024
_KEPT_TAIL = 16 * 1024

_OBJECT = re.compile(r"\{(?!\s*\{)")
_OTHER_ANSWER = re.compile(
    r"[{}]|\[\[|\[[^\]\n]*\d[^\]\n]*\]|\d\s*/\s*\d|\|[^|\n]*\d[^|\n]*\|"
)
_FORM = (
    r"(?:[-*#\u2022\u2705_ \t]|`{1,8}[ \t]*\w{0,20}\s|~{3,8}[ "
    r"\t]*\w{0,20}\s|<[^<>\n]{1,60}>|\[[A-Z_ ]{2,30}\]|json\b|\$\$)*+"
)
_BEGINS_LINE = re.compile(
    rf"(?:\A|[\n:\uff1a.\u3002!\uff01\u0964]){_FORM}\s*\Z",
    re.IGNORECASE,
)
_IN_QUOTES = re.compile(
    r"(?:\A|\n)[ \t]*(?:>|\||//)[^\n]*\Z|<!--|~~(?!~)|[\"'\u201c\u2018\u00ab\u300c\u2039(,\t][ ]*\Z"
)
_GOES_ON = re.compile(
    r"[ \t]*[^\s\w`<*\[\]|.~\u2705$]|\.?[ \t]+[a-z]|[ \t]*[<\[](?![/|])"
)
_MARKS = re.compile(r"`{3,8}[ \t]*\w*|~{3,8}[ \t]*\w*|[*#_]")
_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f\u0964])\s*")
_CLAUSE = re.compile(r"[,.;:!\n\u2013\u2014\uff0c\u3002\uff1a\uff01\u3001\u060c\u0964]")
_LONGEST_REPLY = 20_000

T = TypeVar("T")


@dataclass(frozen=True)
class ChatRequest(Generic[T]):
    """Chat and the reader of its answer."""

    #: The question.
    chat: Chat
    #: Reader of the answer.
    read: Callable[[str], Read[T]]
    #: Reader of the answer to a reminder, where it is another.
    read_again: Callable[[str], Read[T]] | None = None


@dataclass(frozen=True)
class StructuredChatOutcome(Generic[T]):
    """Outcome of a question."""

    value: T | None
    #: Every step on the way, for the trace.
    steps: tuple[Step, ...]
    #: Findings of its replies.
    findings: tuple[str, ...] = ()

    @property
    def final(self) -> Step:
        """The step that counts: the last if it was read or its call failed, else the first."""
        unreadable = (Status.PARSE_FAILURE, Status.REFUSAL)
        if self.steps[-1].status in unreadable:
            return self.steps[0]
        return self.steps[-1]


def joined_steps(
    outcomes: Iterable[StructuredChatOutcome[Any]],
) -> tuple[Step, ...]:
    """The steps of several questions, in order."""
    return tuple(chain.from_iterable(outcome.steps for outcome in outcomes))


def joined_findings(
    outcomes: Iterable[StructuredChatOutcome[Any]],
) -> tuple[str, ...]:
    """The findings of several questions, in order."""
    return tuple(chain.from_iterable(outcome.findings for outcome in outcomes))


def joined_reasons(steps: Mapping[str, Step]) -> str:
    """The reasons of usable steps, each on a line after its name."""
    lines = []
    for name, step in steps.items():
        if step.status.usable and step.reason:
            lines.append(f"{name}: {step.reason}")
    return "\n".join(lines)


def score_request(
    chat: Chat, schema: Mapping[str, Any] | None = None, *, as_shown: bool = False
) -> ChatRequest[tuple[float, ...]]:
    """A chat that is to be answered with scores, which are the value and the step's scores.

    Args:
        chat: the question.
        schema: that of the answer where it is not the chat's, which a server may enforce.
        as_shown: as for `parse_scores`.
    """
    return ChatRequest(
        chat,
        partial(parse_scores, schema=schema or chat.schema or {}, as_shown=as_shown),
    )


def ask_all(
    questions: Sequence[ChatRequest[T]], wording: Pack
) -> Asking[list[StructuredChatOutcome[T]]]:
    """Ask all questions at once; those whose reply cannot be parsed again, up to
    `wording.reminders` times, with the error.

    One that was cut before its first word is not reminded: it would be again.
    A question that a reminder saved has the final status `repaired`. For use with `yield from` in a
    judge program.
    """
    if not questions:
        return []
    replies = yield [question.chat for question in questions]
    pairs = zip(replies, questions, strict=True)
    outcomes = [_outcome(reply, question) for reply, question in pairs]
    # a published protocol of labels has no second question
    for _ in range(0 if wording.asks_for_labels else wording.reminders):
        failed = []
        reminders: list[Ask] = []
        for i, outcome in enumerate(outcomes):
            last_step = outcome.steps[-1]
            if _is_unread(last_step):
                failed.append(i)
                reminder = _reminder_chat(questions[i].chat, last_step, wording)
                reminders.append(reminder)
        if not failed:
            break
        replies = yield reminders
        for i, reply in zip(failed, replies, strict=True):
            outcomes[i] = _outcome(reply, questions[i], outcomes[i])
    return outcomes


def _is_unread(step: Step) -> bool:
    if step.status is not Status.PARSE_FAILURE:
        return False
    return not (step.cut and is_only_thinking(step.answer))


def _outcome(
    reply: Reply,
    question: ChatRequest[T],
    earlier: StructuredChatOutcome[T] | None = None,
) -> StructuredChatOutcome[T]:
    """The outcome of a question after a reply to it, or to a reminder of it."""
    steps, findings = (earlier.steps, earlier.findings) if earlier else ((), ())
    last_step = steps[-1] if steps else None
    step, read = _read(reply, question, len(steps), last_step)
    if steps and step.status.usable:
        step = replace(step, status=Status.REPAIRED)
    if read.finding:
        findings = (*findings, read.finding)
    return StructuredChatOutcome(read.value, (*steps, step), findings)


def excerpt(text: str) -> str:
    """Shorten a text that a model said: all of it or, of one that ran on, its beginning and its
    end.

    >>> excerpt("short"), len(excerpt("long" * 10**6)) < 66_000
    ('short', True)
    """
    left_out = len(text) - _KEPT_HEAD - _KEPT_TAIL
    if left_out <= 0:
        return text
    head = text[:_KEPT_HEAD]
    tail = text[-_KEPT_TAIL:]
    return f"{head} [... {left_out} characters left out ...] {tail}"


def _read_alone(
    reply: Text, question: ChatRequest[T], attempt: int, images: int
) -> Read[T]:
    """Read a text regardless of earlier replies."""
    if reply.cut and is_only_thinking(reply.text):
        limit = f" at {reply.output_tokens:,} tokens" if reply.output_tokens else ""
        return Read(Status.PARSE_FAILURE, reason=_STARVED.format(limit))
    if names_other_image(reply.text, images):
        return Read(Status.PARSE_FAILURE, reason=_OTHER_IMAGE)
    read = question.read_again if attempt and question.read_again else question.read
    return read(reply.text)


def _read(
    reply: Reply, question: ChatRequest[T], attempt: int, earlier: Step | None
) -> tuple[Step, Read[T]]:
    """The step of a reply, and what was read of it: of all that was said, however much of it is
    kept.
    """
    path = question.chat.path
    if not isinstance(reply, Text):
        step = failed_step(reply, path, "text", attempt=attempt)
        return step, Read(step.status)
    parts = chain.from_iterable(message.parts for message in question.chat.messages)
    images = sum(isinstance(part, Image) for part in parts)
    reading = _read_alone(reply, question, attempt, images)
    if earlier and not reply.cut and not reading.status.usable:
        reading = _confirmed(reply.text, earlier, question, images) or reading
    if reply.cut and reading.status.usable:
        complete = reply.text.rstrip(" \r\n\t`").endswith(("}", "</answer>"))
        reading = (
            replace(reading, status=Status.REPAIRED)
            if complete
            else Read(Status.PARSE_FAILURE, reason=_CUT)
        )
    if reading.status.usable and repeats_request(reading.reason, question.chat):
        reading = replace(reading, finding=ECHO)
    step = Step(
        path,
        reading.status,
        reading.scores,
        attempt=attempt,
        cut=reply.cut,
    )
    step = replace(step, answer=excerpt(reply.text), reason=excerpt(reading.reason))
    return step, reading


def _confirmed(
    text: str, earlier: Step, question: ChatRequest[T], images: int
) -> Read[T] | None:
    """The reading of an answer with text around it, if the reply before, read in the same way,
    has the same scores.
    """
    if earlier.cut:
        return None
    answers = answers_inside(earlier.answer, images)
    for form, answer in answers_inside(text, images).items():
        first = question.read(answers.get(form, ""))
        second = question.read(answer)
        if second.scores:
            agree = first.scores == second.scores
        else:
            agree = first.value == second.value
        if first.status.usable and second.status.usable and agree:
            return replace(
                second,
                status=Status.REPAIRED,
                finding=second.finding or CONFIRMED,
            )
    return None


def _reminder_chat(chat: Chat, failed: Step, wording: Pack) -> Chat:
    """The same conversation, the answer that could not be read, and what was wrong with it."""
    text = wording.render(REMINDER, {"reason": failed.reason})
    answer = failed.answer[:_QUOTED]
    *earlier, last = chat.messages
    if answer.strip():
        quoted = Message("assistant", (answer,))
        reminder = Message("user", (text,))
        return replace(chat, messages=(*chat.messages, quoted, reminder))
    extended = Message(last.role, (*last.parts, text))
    return replace(chat, messages=(*earlier, extended))


def answers_inside(text: str, images: int = 1) -> dict[str, str]:
    """The answer of a reply by its form, without the text around it; empty if missing.

    Args:
        text: the reply as it came.
        images: number of images that were shown, the last of which is judged.

    >>> answers_inside('The hand is warped.\\n{"score": [7], "reasoning": "a hand"}\\nAnything else?')
    {'object': '{"score": [7], "reasoning": "a hand"}'}
    >>> answers_inside("Yes, there is a dog.")
    {'last line': 'Yes, there is a dog', 'first clause': 'Yes'}
    """
    body = remove_thinking(text)[:_LONGEST_REPLY]
    first = _OBJECT.search(body)
    if first is None:
        return _short_answers(body)
    start = first.start()
    try:
        _, end, _ = decoded(body, start)
    except ValueError:
        return {}
    prefix, suffix = remove_pair(body[:start], body[end:])
    inside = body[start:end]
    return {} if _tells_otherwise(prefix, suffix, images) else {"object": inside}


def names_other_image(text: str, images: int) -> bool:
    """Return whether the line before an object has the number of an image that is not judged.

    >>> names_other_image('Image 1: {"score": [9]}', 2), names_other_image('Image 2: {"score": [9]}', 2)
    (True, False)
    """
    body = remove_thinking(text)
    first = _OBJECT.search(body)
    if first and images > 1:
        numbers = re.findall(r"\d{1,3}", _line_before(body[: first.start()]))
    else:
        numbers = []
    return any(1 <= int(number) < images for number in numbers)


def _tells_otherwise(prefix: str, suffix: str, images: int) -> bool:
    """Return whether the text around an object may mean another answer, or none."""
    around = f"{prefix}\n{suffix}"
    if _OTHER_ANSWER.search(around) or _IN_QUOTES.search(prefix):
        return True
    if not _BEGINS_LINE.search(prefix):
        return True
    if _GOES_ON.match(suffix) or names_other_image(f"{prefix}{{", images):
        return True
    line_before = _line_before(prefix)
    if line_before.rstrip().endswith((":", "\uff1a")) and is_negated(line_before):
        return True
    first_line = next(filter(str.strip, suffix.splitlines()), "")
    return doubts(around, line_before, _MARKS.sub(" ", first_line))


def _line_before(prefix: str) -> str:
    """The sentence that stands directly before an object, or the heading."""
    unmarked = _MARKS.sub(" ", prefix)
    lines = [line for line in unmarked.splitlines() if line.strip()]
    sentences = _SENTENCE.split(lines[-1].strip()) if lines else []
    return next(filter(None, reversed(sentences)), "")


def _short_answers(body: str) -> dict[str, str]:
    """The last line of a reply without an object and the words before its first comma or stop."""
    stripped = body.strip()
    lines = stripped.splitlines() or [""]
    clauses = _CLAUSE.split(stripped, maxsplit=1)
    answers = {
        "last line": unwrapped(lines[-1]),
        "first clause": unwrapped(clauses[0]),
    }
    return {} if _OTHER_ANSWER.search(body) or doubts(body) else answers
