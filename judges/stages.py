"""Common needs of judges that take a prompt apart: questions of a pack as chats on a sample, and
how answers are read.

What such a judge asks about the prompt alone is the same question for all images of that prompt, so
a store answers it once. Two known ways in which small models fail are told apart: missing parts,
endless repetition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from vieval_plugin.judges.parsing import Read, unread
from vieval_plugin.judges.protocol import (
    FAILED_CALLS,
    Asking,
    Chat,
    Message,
    Path,
    Sample,
    Schema,
    Status,
    Step,
)
from vieval_plugin.judges.structured_chat import ChatRequest, ask_all
from vieval_plugin.prompts.pack import Pack

MISSING = "missing parts"
REPEATED = "endless repetition"
UNREADABLE = "unreadable answer"
REFUSED = "refused to extract"

_REPEATS = 5
_SPAN = 120
_LONGEST_PERIOD = 400

T = TypeVar("T")


@dataclass(frozen=True)
class StageAsker:
    """Sample under one prompt pack, each stage of whose questions may have a backbone of its
    own.
    """

    #: Prompt pack.
    wording: Pack
    sample: Sample
    #: Name of the backbone of each stage that is not answered by `judge`.
    backbones: Mapping[Any, str]

    def chat(
        self,
        key: str,
        stage: str,
        path: Path,
        schema: Schema,
        variables: Mapping[str, Any],
        max_tokens: int,
        history: tuple[Message, ...] = (),
    ) -> Chat:
        """The next turn of a conversation, or its first: the images and the text of the pack's
        question, in its order.
        """
        messages = (*history, self.message(key, variables))
        return Chat(
            messages,
            path,
            schema if self.wording.is_enforced else None,
            max_tokens,
            self.backbone(stage),
            stop_repeating=True,
        )

    def message(self, key: str, variables: Mapping[str, Any]) -> Message:
        """A question of the pack about the sample."""
        question = self.wording.questions[key]
        images = [
            self.sample.images[role] for role in question.images if self.shows(role)
        ]
        text = self.wording.render(question.template, variables)
        return Message("user", question.parts(images, text))

    def backbone(self, stage: str) -> str:
        """Name of the backbone that answers a stage."""
        return self.backbones.get(stage, "judge")

    def shows(self, role: str) -> bool:
        """Return whether an image of the sample is shown where a question names its role."""
        return role in self.sample.images


@dataclass
class Notes:
    """Notes that a program takes on its way."""

    trace: list[Step] = field(default_factory=list)
    #: What is counted.
    findings: list[str] = field(default_factory=list)

    def add_failure(self, final: Step) -> Status:
        """Take down in which way an answer was no use, unless its call failed; returns its status.

        The words are ours: a refusal's reason is the server's, and would be counted by itself.
        """
        if final.status not in FAILED_CALLS:
            cause, *_ = final.reason.partition(":")
            if cause not in (MISSING, REPEATED):
                cause = REFUSED if final.status is Status.REFUSAL else UNREADABLE
            self.findings.append(cause)
        return final.status


def ask_one(
    chat: Chat,
    read: Callable[[str], Read[T]],
    wording: Pack,
    notes: Notes,
    read_again: Callable[[str], Read[T]] | None = None,
) -> Asking[T | Status]:
    """The value of one answer on which the next stages build, or the status of one that cannot be
    used.

    `read_again` is as for `ChatRequest`.
    """
    [answer] = yield from ask_all([ChatRequest(chat, read, read_again)], wording)
    notes.trace += answer.steps
    notes.findings += answer.findings
    return notes.add_failure(answer.final) if answer.value is None else answer.value


def read_as(text: str, parse: Callable[[str], tuple[T, bool]]) -> Read[T]:
    """The reading of a reply by a parser, which says whether it came exactly as asked for, or
    raises ValueError.
    """
    if repeats(text):
        return unread(REPEATED)
    try:
        value, exact = parse(text)
    except ValueError as error:
        return unread(error)
    return Read(Status.OK if exact else Status.REPAIRED, value)


def repeats(text: str) -> bool:
    """Return whether a text ends in the same words over and over: at least five times and for 120
    characters.

    >>> repeats("It is a cat. " + "Its tail is red. " * 9)
    True
    """
    tail = text.rstrip()
    for period in range(1, min(_LONGEST_PERIOD, len(tail) // _REPEATS) + 1):
        span = max(_SPAN, _REPEATS * period)
        if span > len(tail):
            continue
        # the last turn may have been cut anywhere, which a comparison with itself moved by a period
        # does not mind
        is_periodic = tail[-span + period :] == tail[-span:-period]
        if is_periodic and tail[-period:].strip():
            return True
    return False
