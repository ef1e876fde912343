"""Answers that come as server-sent events: the chunks of a chat, put together as the answer that they stream."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from vieval_plugin.backends.http.faults import Again, parsed_json

#: Fields of a request that have a chat answered as a stream, with its usage at the end.
STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
_END = "[DONE]"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")


def is_stream(body: bytes | bytearray) -> bool:
    """Return whether a response is an event stream, whatever media type it claims."""
    return body[:16].lstrip().startswith(_FIELDS)


def whole_answer(body: bytes | bytearray) -> bytes:
    """The JSON of the answer that an event stream holds: of its first choice, with the usage of the last event.

    Sources: https://platform.openai.com/docs/api-reference/chat-streaming,
    https://html.spec.whatwg.org/multipage/server-sent-events.html

    Args:
        body: the whole stream.

    Raises:
        Again: the stream broke off before its end, or an event is not a JSON object.

    >>> whole_answer(b'data: {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}\\n\\n')
    b'{"choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}'
    """
    answer: dict[str, Any] = {}
    message: dict[str, Any] = {"role": "assistant"}
    choice: dict[str, Any] = {"message": message, "finish_reason": None}
    ended = False
    for data in _events(body):
        if data == _END:
            ended = True
            break
        event = parsed_json(data)
        if not isinstance(event, dict):
            raise Again("malformed answer", "an event that is not a JSON object")
        if event.get("error"):  # which the run classifies as any other answer's
            return data.encode()
        answer |= {name: value for name, value in event.items() if name != "choices" and value is not None}
        for part in _first_choices(event):
            _add(choice, message, part)
    if not ended and choice["finish_reason"] is None:
        raise Again("cut answer", "the stream broke off")
    return json.dumps({**answer, "choices": [choice]}).encode()


def _events(body: bytes | bytearray) -> Iterator[str]:
    """The data of each event; comments, such as those that keep a connection alive, and other fields are left out."""
    lines: list[str] = []
    for line in body.decode("utf-8", "replace").splitlines():
        if line.startswith("data:"):
            lines.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


def _first_choices(event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    choices = event.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            yield choice


def _add(choice: dict[str, Any], message: dict[str, Any], part: Mapping[str, Any]) -> None:
    """Add a part of a choice: texts to texts, log-probabilities to the list, and its end."""
    delta = part.get("delta") or part.get("message")
    for name in _TEXTS if isinstance(delta, dict) else ():
        if isinstance(text := delta.get(name), str):
            message[name] = message.get(name, "") + text
    logprobs = part.get("logprobs")
    if isinstance(logprobs, dict) and isinstance(logprobs.get("content"), list):
        listed = choice.setdefault("logprobs", {"content": []})
        listed["content"] += logprobs["content"]
    other = {name: value for name, value in part.items() if name not in ("delta", "message", "logprobs", "index")}
    choice |= {name: value for name, value in other.items() if value is not None}
