"""CIGEval's conversations as training examples: those of verdicts near the human mean.

Source: Wang et al., A Unified Agentic Framework for Evaluating Conditional Image Generation (2025), section on agent
tuning: trajectories within 0.3 of the human score are kept, loss is on thoughts and actions only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from vieval_plugin.exchanges import Exchange, final_chats
from vieval_plugin.judges.protocol import Message
from vieval_plugin.records import Record
from vieval_plugin.training.chat_format import Example

MARGIN = 0.3


def near_human(record: Record, margin: float = MARGIN) -> bool:
    """Whether a verdict's SC is at most `margin` from the mean of its human ratings; not without either."""
    rated = [value for value in record.ratings.get("SC", ()) if not math.isnan(value)]
    score = record.verdict.scores.get("SC")
    # scores and ratings are tenths and thirds: what is a margin apart on paper is so here
    return bool(rated) and score is not None and abs(score - math.fsum(rated) / len(rated)) <= margin + 1e-9


def examples(record: Record, found: Sequence[Exchange]) -> list[Example]:
    """Each conversation of a verdict as the model had it, with its tools' output; loss on every turn of the model's.

    A conversation that goes on in another is part of that one and no example of its own.
    """
    held = {
        label: (*chat.messages, Message("assistant", (answer,))) for label, (chat, answer) in final_chats(found).items()
    }
    whole = {
        label: messages
        for label, messages in held.items()
        if not any(len(other) > len(messages) and other[: len(messages)] == messages for other in held.values())
    }
    return [
        Example(f"{record.id}/{label}", label.rpartition("/")[2], messages, _own(messages))
        for label, messages in whole.items()
    ]


def _own(messages: Sequence[Message]) -> tuple[int, ...]:
    return tuple(place for place, message in enumerate(messages) if message.role == "assistant")
