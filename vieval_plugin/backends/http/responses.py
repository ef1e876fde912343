"""Read answers of an OpenAI-compatible server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from vieval_plugin.backends.http.faults import Again, json_object, parsed_json
from vieval_plugin.backends.reply_checks import log_probability
from vieval_plugin.judges.protocol import Failure, Reply, Status, Text
from vieval_plugin.judges.wrapping import is_only_thinking
from vieval_plugin.text.yaml_json import JsonObject

#: Return whether a token limit ended an answer, by what servers call its end.
CUT = {
    "stop": False,
    "length": True,
    "max_tokens": True,
    "MAX_TOKENS": True,
    "model_length": True,
    "model_context_window_exceeded": True,
    "FinishReason.MAX_TOKENS": True,
    "end_turn": False,
}
_THINKING = ("reasoning_content", "reasoning", "thinking")
_ANSWERING = ("text", "output_text")
_MOST_TOKENS = 2**53  # a number of tokens beyond is none


def answer_of(body: bytes | bytearray) -> JsonObject:
    """The JSON object of a response."""
    if not isinstance(answer := parsed_json(body), dict):
        raise Again("malformed answer", "the response is not a JSON object")
    return answer


def unusable(answer: JsonObject) -> str | None:
    """The fault of an answer that has no message to read, else None; one that was cut before its
    first word is empty.
    """
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return "the response has no choices"
    message = choices[0].get("message")
    if not isinstance(message, dict):
        return "the choice has no message"
    content = message.get("content")
    refusal = message.get("refusal")
    is_content = isinstance(content, (str, list, type(None)))
    if not is_content or not isinstance(refusal, (str, type(None))):
        return "the content of the message is not text"
    is_cut = CUT.get(str(finish_reason(answer)))
    if content is None and not refusal and not is_cut and not thinking_of(answer):
        return "the message has no content"
    return None


def reply_of(answer: JsonObject) -> Reply:
    """The text of a usable answer, or the refusal that it is."""
    message = answer["choices"][0]["message"]
    if message.get("refusal"):
        return Failure(
            Status.REFUSAL, str(message["refusal"]).encode("utf-8", "replace").decode()
        )
    text = text_of(answer)
    cut = CUT.get(str(finish_reason(answer)))
    if not text.strip() and not cut and (field := thinking_of(answer)):
        return Failure(
            Status.API_ERROR,
            (
                f"the whole reply is in `{field}`, and `content` is empty; turn thinking "
                "off (`chat_template_kwargs` in `extra`), or fix the server's reasoning "
                "parser"
            ),
        )
    return Text(
        text,
        *tokens_of(answer),
        cut,
    )


def thinking_of(answer: JsonObject) -> str:
    """The field of an answer that holds thinking, empty where none does."""
    message = answer["choices"][0]["message"]
    return next((field for field in _THINKING if message.get(field)), "")


def is_starved(answer: JsonObject) -> bool:
    """Return whether the token limit cut an answer before its first word."""
    is_cut = CUT.get(str(finish_reason(answer)))
    return bool(is_cut) and is_only_thinking(text_of(answer))


def text_of(answer: JsonObject) -> str:
    """The text of an answer; some servers send it in parts, and those of another type
    (`thinking`) are left out.

    Halves of a character cannot be kept in files.
    """
    content = answer["choices"][0]["message"].get("content") or ""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        texts = [
            part.get("text") for part in parts if part.get("type", "text") in _ANSWERING
        ]
        content = "".join(text for text in texts if isinstance(text, str))
    return str(content).encode("utf-8", "replace").decode()


def takes_lengths(answer: JsonObject) -> bool:
    """Return whether an answer has fields of vLLM, SGLang or llama.cpp, whose schemas bound the
    lengths of texts.

    OpenAI's strict mode refuses such bounds.
    """
    has_own_field = bool(answer.keys() & {"prompt_logprobs", "timings"})
    return has_own_field or "matched_stop" in answer["choices"][0]


def finish_reason(answer: JsonObject) -> Any:
    """The reason why an answer ends where it does: `stop` for a complete one, `length` where its
    token limit cut it.
    """
    return answer["choices"][0].get("finish_reason")


def tokens_of(answer: JsonObject) -> tuple[int | None, int | None]:
    """Tokens in and out, those of thinking among the latter, as far as the server tells."""
    usage = json_object(answer.get("usage"))
    input_tokens = _count(usage.get("prompt_tokens"))
    output_tokens = _count(usage.get("completion_tokens"))
    if input_tokens is not None and output_tokens is not None:
        # xAI and Gemini leave thinking out of `completion_tokens`, and count it in the total
        details = json_object(usage.get("completion_tokens_details"))
        thinking = _count(details.get("reasoning_tokens")) or 0
        total = _count(usage.get("total_tokens")) or 0
        if thinking > output_tokens:
            output_tokens += thinking
        output_tokens = max(output_tokens, total - input_tokens)
    return input_tokens, output_tokens


def _count(number: Any) -> int | None:
    """A number of tokens, None for an invalid value."""
    return number if type(number) is int and 0 <= number < _MOST_TOKENS else None


def cached_tokens_of(answer: JsonObject) -> int:
    """Cached input tokens, at most all input tokens; 0 where the server does not report them.

    OpenAI and vLLM report them among the details, DeepSeek and Moonshot beside the totals.
    """
    usage = json_object(answer.get("usage"))
    details = json_object(usage.get("prompt_tokens_details"))
    counts = (
        details.get("cached_tokens"),
        usage.get("prompt_cache_hit_tokens"),
        usage.get("cached_tokens"),
    )
    cached_tokens = max(_count(count) or 0 for count in counts)
    input_tokens, _ = tokens_of(answer)
    return min(cached_tokens, input_tokens or 0)


def first_token(answer: JsonObject) -> dict[str, float]:
    """Log-probabilities of the likeliest first tokens by their text, none if there are none; of two
    alike the sum.

    ValueError for a value that is not a log-probability.
    """
    try:
        entries = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        pairs = [(entry["token"], entry["logprob"]) for entry in entries]
    except (KeyError, IndexError, TypeError):
        return {}
    by_token: dict[str, float] = {}
    for token, number in pairs:
        value = log_probability(number, masked=True)
        if not isinstance(token, str):
            raise ValueError("a token is not text")
        if token in by_token:
            value = min(float(np.logaddexp(by_token[token], value)), 0.0)
        by_token[token] = value
    return by_token


# Event streams: the chunks of a chat, put together as the answer that they stream.

#: Fields of a request that have a chat answered as a stream, with its usage at the end.
STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
_END = "[DONE]"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")


def is_stream(body: bytes | bytearray) -> bool:
    """Return whether a response is an event stream, whatever media type it claims."""
    return body[:16].lstrip().startswith(_FIELDS)


def whole_answer(body: bytes | bytearray) -> bytes:
    """The JSON of the answer that an event stream holds: of its first choice, with the usage of the
    last event.

    Sources: https://platform.openai.com/docs/api-reference/chat-streaming,
    https://html.spec.whatwg.org/multipage/server-sent-events.html

    Args:
        body: the whole stream.

    Raises:
        Again: the stream broke off before its end, or an event is not a JSON object.

    >>> whole_answer(b'data: {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}\\n\\n')
    b'{"choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}'
    """
    answer = {}
    message = {"role": "assistant"}
    choice = {"message": message, "finish_reason": None}
    is_complete = False
    for data in _events(body):
        if data == _END:
            is_complete = True
            break
        event = parsed_json(data)
        if not isinstance(event, dict):
            raise Again("malformed answer", "an event is not a JSON object")
        if event.get("error"):  # which the run classifies as any other answer's
            return data.encode()
        for name, value in event.items():
            if name != "choices" and value is not None:
                answer[name] = value
        for part in _first_choices(event):
            _add(choice, message, part)
    if not is_complete and choice["finish_reason"] is None:
        raise Again("cut answer", "the stream ended early")
    return json.dumps({**answer, "choices": [choice]}).encode()


def _events(body: bytes | bytearray) -> Iterator[str]:
    """The data of each event; comments, such as those that keep a connection alive, and other
    fields are left out.
    """
    lines = []
    for line in body.decode("utf-8", "replace").splitlines():
        if line.startswith("data:"):
            lines.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


def _first_choices(event: JsonObject) -> Iterator[JsonObject]:
    choices = event.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            yield choice


def _add(choice: JsonObject, message: JsonObject, part: JsonObject) -> None:
    """Add a part of a choice: texts to texts, log-probabilities to the list, and its end."""
    delta = json_object(part.get("delta") or part.get("message"))
    for name in _TEXTS:
        if isinstance(text := delta.get(name), str):
            message[name] = message.get(name, "") + text
    logprobs = json_object(part.get("logprobs")).get("content")
    if isinstance(logprobs, list):
        choice.setdefault("logprobs", {"content": []})["content"] += logprobs
    for name, value in part.items():
        is_added = name in ("delta", "message", "logprobs", "index")
        if not is_added and value is not None:
            choice[name] = value
