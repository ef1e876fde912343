"""What the answer of an OpenAI-compatible server to a chat says, whatever form it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vieval_plugin.backends.reply_checks import log_probability
from vieval_plugin.judges.protocol import Failure, Reply, Status, Text

CUT = {"stop": False, "length": True}
"""Whether a token limit ended an answer, by what servers call its end."""
_ANSWERING = ("text", "output_text")
_MOST_TOKENS = 2**53  # a number of tokens beyond is none


def unusable(answer: Mapping[str, Any]) -> str | None:
    """What is wrong with an answer that has no message to read; one that was cut before its first word is empty."""
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return "an answer without choices"
    message, end = choices[0].get("message"), choices[0].get("finish_reason")
    if not isinstance(message, dict):
        return "a choice without a message"
    content, refusal = message.get("content"), message.get("refusal")
    if not isinstance(content, (str, list, type(None))) or not isinstance(refusal, (str, type(None))):
        return "a message whose content is no text"
    if content is None and not refusal and end not in ("length", "content_filter"):
        return "a message without content"
    return None


def reply_of(answer: Mapping[str, Any]) -> Reply:
    """The text of a usable answer, or the refusal that it is."""
    message = answer["choices"][0]["message"]
    if message.get("refusal") and not message.get("content"):
        return Failure(Status.REFUSAL, str(message["refusal"]).encode("utf-8", "replace").decode())
    if ended(answer) == "content_filter" and not message.get("content"):
        return Failure(Status.REFUSAL, "the server's content filter cut the answer")
    return Text(text_of(answer), *tokens_of(answer), CUT.get(str(ended(answer))))


def text_of(answer: Mapping[str, Any]) -> str:
    """The text of an answer; some servers send it in parts, of which those of another type (`thinking`) are no answer.

    Halves of a character cannot be kept in files.
    """
    content = answer["choices"][0]["message"].get("content") or ""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict) and part.get("type", "text") in _ANSWERING]
        texts = [part.get("text") for part in parts]
        content = "".join(text for text in texts if isinstance(text, str))
    return str(content).encode("utf-8", "replace").decode()


def ended(answer: Mapping[str, Any]) -> Any:
    """Why an answer ends where it does: `stop` for a complete one, `length` where its token limit cut it."""
    return answer["choices"][0].get("finish_reason")


def tokens_of(answer: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Tokens in and out, as far as the server tells."""
    usage = answer.get("usage")
    told = [usage.get(k) if isinstance(usage, dict) else None for k in ("prompt_tokens", "completion_tokens")]
    given, made = (n if type(n) is int and 0 <= n < _MOST_TOKENS else None for n in told)
    return given, made


def first_token(answer: Mapping[str, Any]) -> dict[str, float]:
    """Log-probabilities of the likeliest first tokens by their text, none if there are none; of two alike the sum.

    ValueError for a value that is no log-probability.
    """
    try:
        listed = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        pairs = [(entry["token"], entry["logprob"]) for entry in listed]
    except (KeyError, IndexError, TypeError):
        return {}
    found: dict[str, float] = {}
    for token, told in pairs:
        value = log_probability(told)
        if not isinstance(token, str):
            raise ValueError("a token that is no text")
        found[token] = min(float(np.logaddexp(found[token], value)), 0.0) if token in found else value
    return found
