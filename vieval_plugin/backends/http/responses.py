"""Responses of an OpenAI-compatible server: an answer and what it says, another try, or a refusal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from vieval_plugin.backends.reply_checks import log_probability
from vieval_plugin.judges.protocol import Failure, Reply, Status, Text
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.untrusted import address_of, retry_after

_FILTERED = ("content_filter", "content_policy", "content management policy", "responsible_ai", "safety system")
_SHORT = 120
_TOO_LONG = ("context length", "maximum context", "too long")


class Refused(Exception):
    """The server refused this one request for good: retrying cannot help."""

    def __init__(self, status: Status, kind: str, reason: str, code: int = 0) -> None:
        super().__init__(reason)
        self.status, self.kind, self.reason, self.code = status, kind, reason, code


class Denied(Refused):
    """A refusal that need not be about this request: of a key, a model, an address; `ending` says so of them all."""

    def __init__(self, code: int, reason: str, ending: str) -> None:
        super().__init__(Status.API_ERROR, f"HTTP {code}", f"HTTP {code}: {reason}", code)
        self.ending = ending


class Again(Exception):
    """This try went wrong in a way that another may not; `wait` is what the server asked for."""

    def __init__(self, kind: str, reason: str, wait: float | None = None, limited: bool = False) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.wait, self.limited = kind, reason, wait, limited


def answer_of(body: bytes | bytearray) -> dict[str, Any]:
    """The JSON object of a response."""
    if not isinstance(answer := parsed_json(body), dict):
        raise Again("malformed answer", "an answer that is not a JSON object")
    return answer


def failure_of(code: int, body: bytes | bytearray, headers: Mapping[str, str], url: str) -> Again | Refused:
    """The exception for a response that is not 200; `url` is the base address that was called."""
    message, server = redacted(_error_message(body))[:300], redacted(url)
    if 300 <= code < 400:
        where = _redirect_target(url, headers.get("Location", ""))
        remedy = "redirects are not followed: base_url should be the final address"
        reason = f"a redirect to {where}, which is not followed" if where else "a redirect, which is not followed"
        return Denied(code, reason, f"{server} answers with HTTP {code} ({reason}); {remedy}")
    if code in (401, 403):
        remedy = "set the environment variable that holds it"
        return Denied(code, message or "refused", f"{server} refuses the key (HTTP {code}); {remedy}")
    if code == 404:
        remedy = "check the name, and that the address ends in /v1"
        ending = f"{server} knows no such model or address (HTTP 404: {message}); {remedy}"
        return Denied(code, message or "not found", ending)
    if code == 402 or (code == 429 and "insufficient_quota" in message):
        ending = f"{server}: the account of this key has no credit left (HTTP {code}: {message})"
        return Denied(code, message or "no credit", ending)
    wait = retry_after(headers.get("Retry-After"))
    if code == 429:
        return Again("rate limit", "too many requests (HTTP 429)", wait, limited=True)
    if code >= 500 or code == 408:
        # a proxy's page of HTML says no more than the code
        detail = f": {message[:_SHORT]}" if message and not message.startswith("<") else ""
        return Again("server error", f"HTTP {code}{detail}", wait)
    lowered = message.lower()
    if any(sign in lowered for sign in _FILTERED):
        return Refused(Status.REFUSAL, "content filter", f"the server's content filter declined: {message}", code)
    if code == 413 or any(sign in lowered for sign in _TOO_LONG):
        return Refused(Status.API_ERROR, "too long", f"too long for the server: {message}", code)
    return Refused(Status.API_ERROR, f"HTTP {code}", f"HTTP {code}: {message}", code)


def parsed_json(body: str | bytes | bytearray) -> Any:
    """A document of JSON, None where it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _error_message(body: bytes | bytearray) -> str:
    """The error's own words and code, in one line."""
    document = parsed_json(body)
    error = document.get("error", document) if isinstance(document, dict) else document
    if isinstance(error, dict):
        fields = [error.get(name) for name in ("message", "code", "type")]
        text = " ".join(str(field)[:4000] for field in fields if field and isinstance(field, (str, int)))
    else:
        text = error if isinstance(error, str) else body[:4000].decode(errors="replace")
    return " ".join(text[:12000].split())


def _redirect_target(url: str, location: str) -> str:
    """The target of a redirect, less what may be a secret: user, query and fragment."""
    target = address_of(location, f"{url}/") if location else None
    address = f"{target.scheme}://{target.server}{target.path}" if target else ""
    return redacted(address)[:200] if address.isprintable() else ""


#: Return whether a token limit ended an answer, by what servers call its end.
CUT = {"stop": False, "length": True}
_ANSWERING = ("text", "output_text")
_MOST_TOKENS = 2**53  # a number of tokens beyond is none


def unusable(answer: Mapping[str, Any]) -> str | None:
    """The fault of an answer that has no message to read, else None; one that was cut before its first word is empty."""
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
    if finish_reason(answer) == "content_filter" and not message.get("content"):
        return Failure(Status.REFUSAL, "the server's content filter cut the answer")
    return Text(text_of(answer), *tokens_of(answer), CUT.get(str(finish_reason(answer))))


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


def finish_reason(answer: Mapping[str, Any]) -> Any:
    """The reason why an answer ends where it does: `stop` for a complete one, `length` where its token limit cut it."""
    return answer["choices"][0].get("finish_reason")


def tokens_of(answer: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Tokens in and out, as far as the server tells."""
    usage = answer.get("usage")
    counts = [usage.get(k) if isinstance(usage, dict) else None for k in ("prompt_tokens", "completion_tokens")]
    input_tokens, output_tokens = (n if type(n) is int and 0 <= n < _MOST_TOKENS else None for n in counts)
    return input_tokens, output_tokens


def cached_tokens_of(answer: Mapping[str, Any]) -> int:
    """Tokens in that the server had in its cache, 0 where it does not tell; never more than all tokens in."""
    usage = answer.get("usage")
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    count = details.get("cached_tokens") if isinstance(details, dict) else None
    return min(max(count, 0), tokens_of(answer)[0] or 0) if type(count) is int else 0


def first_token(answer: Mapping[str, Any]) -> dict[str, float]:
    """Log-probabilities of the likeliest first tokens by their text, none if there are none; of two alike the sum.

    ValueError for a value that is no log-probability.
    """
    try:
        entries = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        pairs = [(entry["token"], entry["logprob"]) for entry in entries]
    except (KeyError, IndexError, TypeError):
        return {}
    by_token: dict[str, float] = {}
    for token, number in pairs:
        value = log_probability(number)
        if not isinstance(token, str):
            raise ValueError("a token that is no text")
        by_token[token] = min(float(np.logaddexp(by_token[token], value)), 0.0) if token in by_token else value
    return by_token
