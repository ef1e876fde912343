"""Reasonings that repeat the request instead of judging, in any language: a finding, which is counted over a run."""

from __future__ import annotations

from collections.abc import Iterable

from vieval_plugin.judges.protocol import Chat

ECHO = "a reasoning that repeats the request"

#: Letters of a reasoning that is not in a request by chance.
_FEWEST_LETTERS = 12


def letters(text: str) -> str:
    """The letters and digits of a text, by which two texts are compared.

    >>> letters("One or two *short* sentences.")
    'oneortwoshortsentences'
    """
    return "".join(filter(str.isalnum, text.casefold()))


def repeats_request(reasoning: str, chat: Chat) -> bool:
    """Return whether the words of a reasoning stand in the question, such as those of the prompt or of the form."""
    said = letters(reasoning)
    return len(said) >= _FEWEST_LETTERS and said in letters(" ".join(_texts(chat)))


def _texts(chat: Chat) -> Iterable[str]:
    for message in chat.messages:
        yield from (part for part in message.parts if isinstance(part, str) and message.role != "assistant")
