"""The faults: each is a name, what it puts on the wire, and what may become of a sample that meets
it.

Everything is bytes on a socket. Scores that are not the right ones stand in many of these replies:
whoever believes one of them has invented a verdict.
"""

from __future__ import annotations

import gzip
import json
import math
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from functools import cache
from typing import Any

CHAT, LIKELIHOOD = "chat", "likelihood"
_LONGEST = 20.0  # seconds that one reply is dragged out for
PAYLOAD = "\x1b]0;owned\x07\x1b[31m"  # sets a terminal's title and colour where somebody prints it


class Wire:
    """The server's end of a connection; `over` when nothing more may be said on it."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket, self.over = connection, False

    def raw(self, *pieces: str | bytes) -> None:
        """Bytes as they are, texts in UTF-8."""
        self._socket.sendall(
            b"".join(
                piece.encode() if isinstance(piece, str) else piece for piece in pieces
            )
        )

    def reply(
        self, code: int, body: Any, *headers: str, length: int | None = None
    ) -> None:
        """A whole answer; `length` is what it says of its length, where that is a lie."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.head(
            code, f"Content-Length: {len(data) if length is None else length}", *headers
        )
        self.raw(data)

    def head(self, code: int, *headers: str, version: str = "HTTP/1.1") -> None:
        self.raw(head_of(code, *headers, version=version))

    def reset(self) -> None:
        """Tear the connection, so that the client sees an error and not an end."""
        self._socket.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        self._socket.close()
        self.over = True

    def gone(self, seconds: float) -> bool:
        """Wait; whether the client went away meanwhile."""
        self._socket.settimeout(seconds)
        try:
            return not self._socket.recv(1)
        except TimeoutError:
            return False
        except OSError:
            return True

    def drip(self, data: bytes, every: float = 1.0) -> None:
        """A byte, a pause, a byte, until the client has had enough."""
        until, self.over = time.monotonic() + _LONGEST, True
        for place in range(len(data)):
            self.raw(data[place : place + 1])
            if time.monotonic() > until or self.gone(every):
                return


def head_of(code: int, *headers: str, version: str = "HTTP/1.1") -> str:
    """What stands above a body."""
    return "\r\n".join(
        [
            f"{version} {code} Whatever",
            "Content-Type: application/json",
            *headers,
            "",
            "",
        ]
    )


@dataclass(frozen=True)
class Replies:
    """What can be said to one request: the right answer and an invented one, scores of a chat or
    a probability.
    """

    right: Any
    wrong: Any
    schema: dict[str, Any]
    key: str
    elsewhere: str
    path: str

    def chat(
        self, content: Any, finish: str = "stop", **message: Any
    ) -> dict[str, Any]:
        """An answer with this content."""
        said = {"role": "assistant", "content": content, **message}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": "attack",
            "choices": [{"index": 0, "message": said, "finish_reason": finish}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
        }

    def listed(self, *pairs: tuple[str, Any]) -> dict[str, Any]:
        """An answer that lists log-probabilities of its first token."""
        entries = [
            {"token": token, "logprob": value, "bytes": None} for token, value in pairs
        ]
        answer = self.chat("Yes")
        answer["choices"][0]["logprobs"] = {
            "content": [{**one, "top_logprobs": entries} for one in entries[:1]]
        }
        return answer

    def _answer(self, value: Any, reasoning: str) -> dict[str, Any]:
        if isinstance(value, float):
            return self.listed(("Yes", math.log(value)), ("No", math.log1p(-value)))
        if not value:  # no question of a sample
            words = self.schema.get("properties", {}).get("probe", {}).get("enum")
            return self.chat(json.dumps({"probe": words[0]}) if words else "hello")
        return self.chat(scored(value, reasoning))

    def good(self, reasoning: str = "as it is") -> dict[str, Any]:
        return self._answer(self.right, reasoning)

    def bad(self, reasoning: str = "invented") -> dict[str, Any]:
        return self._answer(self.wrong, reasoning)

    def invented(self, wire: Wire) -> None:
        wire.reply(200, self.bad())


def scored(scores: Sequence[float], reasoning: str = "as it is") -> str:
    """The text of a reply that was asked for scores."""
    return json.dumps({"score": list(scores), "reasoning": reasoning})


@dataclass(frozen=True)
class Fault:
    """One way to misbehave.

    `kept` replies are complete answers: they are to be stored and the conversation not asked again.
    `final` ones may be given up at once; after all others a client is to try again. `may` are the
    statuses a sample may end with because of it, besides a usable one. `of` limits it to chats or
    likelihoods. `ends_a_run` where it comes before any answer: of a wrong key, model or address.
    """

    name: str
    act: Callable[[Wire, Replies], None]
    kept: bool = False
    final: bool = False
    may: tuple[str, ...] = ("api_error",)
    of: str | None = None
    ends_a_run: bool = False
    weight: float = 1.0
    right: bool = False  # a complete and right answer, in an odd form at most


_FINE: dict[str, Any] = {"kept": True, "right": True, "may": ()}
RIGHT = Fault("none", lambda wire, replies: wire.reply(200, replies.good()), **_FINE)
FAULTS: list[Fault] = []


def _acted(name: str, act: Callable[[Wire, Replies], Any], **about: Any) -> Fault:
    FAULTS.append(Fault(name, act, **about))
    return FAULTS[-1]


def _error(said: str) -> dict[str, Any]:
    return {"error": {"message": said, "type": "some_error", "code": None}}


def _coded(name: str, code: int, *headers: str, **about: Any) -> Fault:
    """An error of HTTP, whole and well-formed."""
    return _acted(
        name,
        lambda wire, replies: wire.reply(code, _error(f"this is {name}"), *headers),
        **about,
    )


# -- errors of HTTP

SURE_FAILURES = [_coded(f"http_{code}", code) for code in (500, 502, 503, 504, 408)]
_coded("429_plain", 429)
_coded("429_retry_0", 429, "Retry-After: 0")
_coded("429_retry_1", 429, "Retry-After: 1")
_coded("429_retry_huge", 429, "Retry-After: 99999999")
_coded("429_retry_garbage", 429, "Retry-After: soon, I hope")
_coded("429_retry_negative", 429, "Retry-After: -5")
_coded("429_retry_nan", 429, "Retry-After: nan")
_coded("503_retry_huge", 503, "Retry-After: 99999999")
NO_KEY, *_REFUSING = [
    _coded(f"http_{code}", code, final=True, ends_a_run=True)
    for code in (401, 402, 403, 404)
]
for _code in (400, 413, 422):
    _coded(f"http_{_code}", _code, final=True)
_soon = lambda: f"Retry-After: {formatdate(time.time() + 2, usegmt=True)}"
_acted(
    "429_retry_date", lambda wire, replies: wire.reply(429, _error("later"), _soon())
)


def _redirect(code: int) -> None:
    location = "Location: {}/chat/completions".format
    act = lambda wire, replies: wire.reply(code, b"", location(replies.elsewhere))
    _acted(f"redirect_{code}", act, final=True, ends_a_run=True)


for _code in (301, 302, 303, 307, 308):
    _redirect(_code)


# -- connections and framing


def _framed(name: str, act: Callable[[Wire, bytes], Any], **about: Any) -> None:
    """An invented answer that goes wrong on its way, and nothing after it."""

    def acted(wire: Wire, replies: Replies) -> None:
        act(wire, json.dumps(replies.bad()).encode())
        wire.over = True

    _acted(name, acted, **about)


def continues_for_ever(wire: Wire, _: bytes) -> None:
    until = time.monotonic() + _LONGEST
    while time.monotonic() < until and not wire.gone(0.1):
        wire.raw("HTTP/1.1 100 Continue\r\n\r\n")


_SLOW = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Slow: indeed\r\n"
_CHUNKED = "Transfer-Encoding: chunked"
_framed("reset_before_headers", lambda wire, data: wire.reset())
_framed(
    "reset_after_headers",
    lambda wire, data: (wire.head(200, "Content-Length: 500"), wire.reset()),
)
_framed("closed_without_a_byte", lambda wire, data: None)
_framed(
    "closed_in_the_body",
    lambda wire, data: wire.reply(200, data[: len(data) // 2], length=len(data)),
)
_framed(
    "slow_loris",
    lambda wire, data: (
        wire.head(200, f"Content-Length: {len(data)}"),
        wire.drip(data),
    ),
    weight=0.7,
)
_framed("slow_headers", lambda wire, data: wire.drip(_SLOW, 0.5), weight=0.7)
_framed("silence", lambda wire, data: wire.gone(_LONGEST), weight=0.7)
_framed("continues_for_ever", continues_for_ever, weight=0.7)
_framed(
    "garbage_for_chunks",
    lambda wire, data: wire.raw(
        head_of(200, _CHUNKED), "zz\r\nnot a chunk\r\n-1\r\n\r\n"
    ),
)
_framed(
    "chunks_without_end",
    lambda wire, data: wire.raw(
        head_of(200, _CHUNKED), f"{len(data):x}\r\n", data, "\r\n"
    ),
)
_framed(
    "length_too_long", lambda wire, data: wire.reply(200, data, length=len(data) + 10)
)
_framed(
    "length_too_short",
    lambda wire, data: wire.reply(200, data, length=len(data) - 10),
    final=True,
)
_framed(
    "two_lengths",
    lambda wire, data: wire.reply(200, data, f"Content-Length: {len(data) - 3}"),
    final=True,
)
_framed(
    "header_bomb",
    lambda wire, data: wire.reply(
        200, data, *(f"X-Bomb-{n}: {'b' * 90}" for n in range(20_000))
    ),
)
_framed(
    "header_of_a_megabyte",
    lambda wire, data: wire.reply(200, data, f"X-Long: {'l' * (1 << 20)}"),
)
_framed(
    "no_status_line",
    lambda wire, data: wire.raw("ICY 200 banana\r\n\r\n", data),
    final=True,
)


def http_1_0(wire: Wire, replies: Replies) -> None:
    """A whole and right answer as it was sent in 1996: it ends where the connection does."""
    wire.raw(head_of(200, version="HTTP/1.0"), json.dumps(replies.good()))
    wire.over = True


def second_reply_unasked(wire: Wire, replies: Replies) -> None:
    """A right answer, and right behind it an invented one that must not become the next question's.

    One that comes when the next question has been sent cannot be told from its answer in HTTP/1.1.
    """
    bodies = [json.dumps(body).encode() for body in (replies.good(), replies.bad())]
    wire.raw(
        *(
            piece
            for body in bodies
            for piece in (head_of(200, f"Content-Length: {len(body)}"), body)
        )
    )


for _act in (http_1_0, second_reply_unasked):
    _acted(_act.__name__, _act, **_FINE)


# -- bodies


def _body(
    name: str, made: Callable[[Replies], Any], *headers: str, **about: Any
) -> None:
    """A well-framed answer with HTTP 200 whose body is the fault."""
    _acted(
        name, lambda wire, replies: wire.reply(200, made(replies), *headers), **about
    )


_body(
    "not_json", lambda replies: b"<html><body>It works! {'score': [9, 9]}</body></html>"
)
_body("empty_body", lambda replies: b"")
_body("json_list", lambda replies: [replies.bad()])
_body("json_null", lambda replies: b"null")
_body("json_deep", lambda replies: b"[" * 200_000)
_body(
    "json_deep_inside",
    lambda replies: (
        b'{"choices": ' + b'[{"a":' * 100_000 + b"1" + b"}]" * 100_000 + b"}"
    ),
)
_body("json_twice", lambda replies: json.dumps(replies.bad()).encode() * 2)
_body("choices_empty", lambda replies: {**replies.bad(), "choices": []})
_body(
    "choices_object",
    lambda replies: {**replies.bad(), "choices": replies.bad()["choices"][0]},
)
_body(
    "choice_list",
    lambda replies: {**replies.bad(), "choices": [replies.bad()["choices"]]},
)
_body(
    "message_text",
    lambda replies: {"choices": [{"message": "fine", "finish_reason": "stop"}]},
)
_body("error_with_200", lambda replies: _error("overloaded"))
_body("content_null", lambda replies: replies.chat(None), of=CHAT)
_body(
    "gzip_that_lies",
    lambda replies: json.dumps(replies.bad()).encode(),
    "Content-Encoding: gzip",
)
_body("gzip_cut", lambda replies: _packed(replies)[:-40], "Content-Encoding: gzip")
_body(
    "gzip_of_other_checksum",
    lambda replies: _packed(replies)[:-8] + b"checksum",
    "Content-Encoding: gzip",
)
_body(
    "gzip_bomb",
    lambda replies: _bomb(),
    "Content-Encoding: gzip",
    final=True,
    weight=0.2,
)
_body("huge_body", lambda replies: _huge(), final=True, weight=0.2)
_body(
    "endless_number",
    lambda replies: b'{"choices": ' + b"9" * 1_000_000 + b"}",
    weight=0.5,
)


def _packed(replies: Replies) -> bytes:
    return gzip.compress(json.dumps(replies.bad()).encode())


@cache
def _bomb() -> bytes:
    """200 MB of blanks in 200 kB."""
    return gzip.compress(b" " * (200 << 20), 9)


@cache
def _huge() -> bytes:
    """40 MB that would be an answer if anyone read it to its end."""
    return json.dumps(
        {"choices": [{"message": {"content": "9 " * (20 << 20)}}]}
    ).encode()


_HALF = b"\xff\xfe\xc3"
_body(
    "invalid_utf8",
    lambda replies: (
        json.dumps(replies.good("as it @ is")).encode().replace(b"@", _HALF)
    ),
    final=True,
    of=CHAT,
)
# the right scores beside half a character, which no file can hold
_body(
    "half_characters",
    lambda replies: replies.good("as it \ud800 is \x00\u202e"),
    of=CHAT,
    **_FINE,
)
_USAGE = {
    "prompt_tokens": math.nan,
    "completion_tokens": math.inf,
    "total_tokens": "many",
}
_body(
    "usage_of_nan",
    lambda replies: {**replies.good(), "usage": _USAGE},
    of=CHAT,
    **_FINE,
)


def _telling(name: str, code: int, said: str, **about: Any) -> None:
    """An error that repeats the key."""
    _acted(
        name,
        lambda wire, replies: wire.reply(
            code, _error(f"{PAYLOAD} {said.format(replies.key)}")
        ),
        **about,
    )


_telling("key_in_error", 500, "the key {} is fine, the server is not")
_telling("key_in_final_error", 418, "Incorrect API key provided: {}", final=True)


# -- what models say

_body(
    "key_in_reply",
    lambda replies: replies.good(f"{PAYLOAD} asked with {replies.key}"),
    of=CHAT,
    **_FINE,
)
# the right scores and 4 MB of reasons: believed or not, it must not swell the verdicts
_UNREAD = ("api_error", "parse_failure")
_body(
    "large_reply",
    lambda replies: replies.good("reason " * 600_000),
    of=CHAT,
    final=True,
    may=_UNREAD,
)


def _said(
    name: str, content: Callable[[Replies], Any], finish: str = "stop", **about: Any
) -> None:
    """A whole answer whose text is the fault."""
    about = {"kept": True, "may": ("parse_failure",), **about}
    _body(
        name, lambda replies: replies.chat(content(replies), finish), of=CHAT, **about
    )


# one that is empty is asked again by a rerun
for _name, _content in {
    "content_empty": lambda replies: "",
    "content_true": lambda replies: True,
    "content_object": lambda replies: {"thought": replies.wrong},
    "thinking_as_content": lambda replies: [
        {
            "type": "thinking",
            **dict.fromkeys(("thinking", "text"), scored(replies.wrong)),
        }
    ],
}.items():
    _said(_name, _content, kept=False, may=_UNREAD, final=True)
_said(
    "thinking_before",
    lambda replies: f"<think>{scored(replies.wrong)}</think>{scored(replies.right)}",
    right=True,
)
_said("thinking_unclosed", lambda replies: f"<think>{scored(replies.wrong)}")
_said("cut_by_the_limit", lambda replies: scored(replies.wrong)[:13], finish="length")
_said(
    "cut_in_the_reasons",
    lambda replies: scored(replies.wrong, "cut " * 9)[:-9],
    finish="length",
)
# a right score is below 10
_said(
    "scores_twice",
    lambda replies: (
        f'{{"score": {[10.0] * len(replies.wrong)}, "score": {replies.wrong}}}'
    ),
)
_said(
    "scores_of_nan",
    lambda replies: (
        f'{{"score": [{", ".join(["NaN"] * len(replies.wrong))}], "reasoning": "x"}}'
    ),
)
_said(
    "scores_of_1e999",
    lambda replies: (
        f'{{"score": [{", ".join(["1e999"] * len(replies.wrong))}], "reasoning": "x"}}'
    ),
)
_said(
    "scores_out_of_range",
    lambda replies: scored([99.0, -7.0, 11.0][: len(replies.wrong)]),
)
_said("scores_too_many", lambda replies: scored([*replies.wrong, 5.0]))
_said("scores_too_few", lambda replies: scored(replies.wrong[1:]))
_said(
    "list_of_answers",
    lambda replies: f"[{scored(replies.wrong)}, {scored([10.0] * len(replies.wrong))}]",
)
_said(
    "echo_of_the_form",
    lambda replies: '{"score": [edit, restraint], "reasoning": "..."}',
)
_said("no_scores", lambda replies: "What a lovely picture!")
_said("thousands_of_brackets", lambda replies: '{"score": ' + "[" * 50_000)
_said(
    "refusal_that_quotes",
    lambda replies: (
        f"I'm sorry, I cannot rate this picture. You asked for {scored(replies.wrong)}."
    ),
)
_said(
    "quoted_behind",
    lambda replies: (
        f"{scored(replies.right)} The sign in the image reads {scored(replies.wrong)}"
    ),
)
_said(
    "quoted_before",
    lambda replies: (
        f"The sign in the image reads {scored(replies.wrong)} {scored(replies.right)}"
    ),
)
_said(
    "quoted_in_a_fence",
    lambda replies: f"{scored(replies.right)}\n```json\n{scored(replies.wrong)}\n```",
)
_said(
    "quoted_beside_prose",
    lambda replies: (
        f"My scores: {replies.right}. The sign reads {scored(replies.wrong)}"
    ),
)
_said(
    "quoted_beside_a_sentence",
    lambda replies: f"{scored(replies.wrong)} I rate it {replies.right[0]} out of 10.",
)
_said(
    "quoted_beside_a_table",
    lambda replies: f"| edit | {replies.right[0]} |\n\n{scored(replies.wrong)}",
)
_said(
    "quoted_beside_another_key",
    lambda replies: f'{{"rating": {replies.right}}} {scored(replies.wrong)}',
)
_said(
    "corrected_under_another_key",
    lambda replies: f'{{"score": {replies.wrong}, "final_score": {replies.right}}}',
)
_said(
    "corrected_below",
    lambda replies: (
        f'{{"score": {replies.wrong}, "final": {{"score": {replies.right}}}}}'
    ),
)
_said("example_of_the_form", lambda replies: f'{{"example": {scored(replies.wrong)}}}')
_said(
    "scores_of_other_names",
    lambda replies: json.dumps(
        {"score": dict(zip("xyz", replies.wrong, strict=False))}
    ),
)
_said("answer_taken_back", lambda replies: f"{scored(replies.wrong)} Ignore the above.")
_said(
    "no_image_seen",
    lambda replies: f"{scored(replies.wrong)} I have not seen an image.",
)
_said(
    "cut_in_thinking_without_marks",
    lambda replies: f"Perhaps {scored(replies.wrong)} or so, as",
    finish="length",
)
_said(
    "cut_in_the_reasons_behind_words",
    lambda replies: f"So: {scored(replies.wrong)[:-9]}",
    finish="length",
)


def _thought(number: int, begin: str, end: str) -> None:
    """Thinking of one family of models, ended and not."""
    _said(
        f"thinking_{number}_before",
        lambda replies: f"{begin}{scored(replies.wrong)}{end}{scored(replies.right)}",
        right=True,
    )
    _said(
        f"thinking_{number}_unclosed", lambda replies: f"{begin}{scored(replies.wrong)}"
    )


_FAMILIES = {
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<scratchpad >": "</scratchpad >",
    "&lt;think&gt;": "&lt;/think&gt;",
    "\u25c1think\u25b7": "\u25c1/think\u25b7",
    "[THINK]": "[/THINK]",
    "<|channel|>analysis<|message|>": "<|end|><|start|>assistant<|channel|>final<|message|>",
}
for _number, (_begin, _end) in enumerate(_FAMILIES.items(), 1):
    _thought(_number, _begin, _end)


def _thinking_beside(replies: Replies) -> dict[str, Any]:
    wrong = scored(replies.wrong)
    return replies.chat(scored(replies.right), reasoning_content=wrong, reasoning=wrong)


_body("thinking_beside_the_content", _thinking_beside, of=CHAT, **_FINE)
_said("refusal_in_words", lambda replies: "I'm sorry, but I can't assist with that.")
_NO = "I will not look at this."
_body(
    "refusal",
    lambda replies: replies.chat(None, refusal=_NO),
    of=CHAT,
    final=True,
    may=("refusal",),
)


# -- log-probabilities


def _logprob(name: str, literal: str) -> None:
    """A log-probability that is none; JSON of Python's kind lets some of them through."""
    told = lambda replies: json.dumps(
        replies.listed(("Yes", "@"), ("No", -3.0))
    ).replace('"@"', literal)
    _body(name, lambda replies: told(replies).encode(), final=True, of=LIKELIHOOD)


for _name, _literal in {
    "nan": "NaN",
    "infinite": "Infinity",
    "1e999": "1e999",
    "positive": "0.75",
    "true": "true",
    "null": "null",
    "list": "[-0.1]",
}.items():
    _logprob(f"logprob_{_name}", _literal)
_body("logprobs_absent", lambda replies: replies.chat("Yes"), final=True, of=LIKELIHOOD)
_body("logprobs_empty", lambda replies: replies.listed(), final=True, of=LIKELIHOOD)

BY_NAME = {one.name: one for one in FAULTS}
TRANSPORT = [
    one
    for one in FAULTS
    if not one.final and (not one.kept or one.right) and one.of is None
]
"""After these a client tries again, or has been answered; none leaves a trace in a verdict."""
