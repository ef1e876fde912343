"""A verdict's conversation, question by question, and what it can teach another model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from vieval_plugin.judges.protocol import Ask, Chat, Message, Path, Reply, Step, Text


@dataclass(frozen=True)
class Exchange:
    """Question as it was asked, the reply to it, and the trace's step."""

    ask: Ask
    reply: Reply
    step: Step


@dataclass(frozen=True)
class TrainingExample:
    """Conversation to train on.

    `sub_task` names what it teaches. `trained` are the numbers of the messages that carry loss: assistant's turns.
    """

    id: str
    sub_task: str
    messages: tuple[Message, ...]
    trained: tuple[int, ...]


@dataclass(frozen=True)
class TrainingUnit:
    """Examples that belong together: the turns of one question, or of one summary.

    `kind` is what is repeated as a whole, `category` what is balanced by score within it; `score` (0 to 10) is None for
    what has none, which is kept as it is.
    """

    kind: str
    category: str
    score: float | None
    examples: tuple[TrainingExample, ...]


def final_chats(exchanges: Sequence[Exchange]) -> dict[Path, tuple[Chat, str]]:
    """For each question whose answer was read, the question as first asked and the answer that counted."""
    first: dict[Path, Chat] = {}
    final: dict[Path, tuple[Chat, str]] = {}
    for exchange in exchanges:
        # only a chat is answered with a text
        if isinstance(exchange.reply, Text):
            chat = cast(Chat, exchange.ask)
            first.setdefault(chat.path, chat)
            if exchange.step.status.usable:
                final[chat.path] = (first[chat.path], exchange.step.answer)
    return final
