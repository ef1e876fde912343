"""A verdict's conversation, question by question, and what it can teach another model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from vieval_plugin.judges.protocol import (
    Ask,
    Chat,
    Message,
    Path,
    Reply,
    SampleId,
    Step,
    Text,
)


@dataclass(frozen=True)
class Exchange:
    """Question and reply."""

    #: Question as it was asked.
    ask: Ask
    reply: Reply
    #: Step of the trace.
    step: Step


@dataclass(frozen=True)
class TrainingExample:
    """Conversation to train on."""

    #: Name of the example.
    id: str
    #: What it teaches.
    sub_task: str
    #: The conversation.
    messages: tuple[Message, ...]
    #: Numbers of the messages that carry loss: the assistant's turns.
    trained: tuple[int, ...]


@dataclass(frozen=True)
class TrainingUnit:
    """Examples that belong together: the turns of one question, or of one summary."""

    #: What is repeated as a whole.
    kind: str
    #: What is balanced by score within a kind.
    category: str
    #: 0 to 10; None for what has none, which is kept as it is.
    score: float | None
    #: The turns.
    examples: tuple[TrainingExample, ...]


def final_chats(exchanges: Sequence[Exchange]) -> dict[Path, tuple[Chat, str]]:
    """For each question whose answer was read, the question as first asked and the answer that
    counted.
    """
    first: dict[Path, Chat] = {}
    final = {}
    for exchange in exchanges:
        # only a chat is answered with a text
        if isinstance(exchange.reply, Text):
            chat = cast(Chat, exchange.ask)
            first.setdefault(chat.path, chat)
            if exchange.step.status.usable:
                final[chat.path] = (first[chat.path], exchange.step.answer)
    return final


def turn_example(
    identity: SampleId,
    path: Path,
    chat: Chat,
    answer: str,
    sub_task: str,
) -> TrainingExample:
    """A conversation with the answer to it, with loss on that turn alone."""
    messages = (*chat.messages, Message("assistant", (answer,)))
    name = f"{identity}/{'/'.join(path)}"
    return TrainingExample(
        name,
        sub_task,
        messages,
        (len(messages) - 1,),
    )


def turn_units(
    identity: SampleId, exchanges: Sequence[Exchange], kind: str = ""
) -> list[TrainingUnit]:
    """An example of one turn for each question whose answer was read; of answers that could not be
    read, none.

    Args:
        identity: sample or contest.
        exchanges: the conversation behind its verdict.
        kind: what the examples teach; where empty, what each question's path begins with.
    """
    units = []
    for path, (chat, answer) in final_chats(exchanges).items():
        sub_task = kind or path[0]
        example = turn_example(identity, path, chat, answer, sub_task)
        units.append(TrainingUnit(sub_task, sub_task, None, (example,)))
    return units
