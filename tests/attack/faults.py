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
from string import Template
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
        encoded = [one.encode() if isinstance(one, str) else one for one in pieces]
        self._socket.sendall(b"".join(encoded))

    def reply(
        self, code: int, body: Any, *headers: str, length: int | None = None
    ) -> None:
        """A whole answer; `length` is what it says of its length, where that is a lie."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        said = len(data) if length is None else length
        self.raw(head_of(code, f"Content-Length: {said}", *headers), data)

    def reset(self) -> None:
        """Tear the connection, so that the client sees an error and not an end."""
        linger = struct.pack("ii", 1, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
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
    first = (f"{version} {code} Whatever", "Content-Type: application/json")
    return "\r\n".join([*first, *headers, "", ""])


@dataclass(frozen=True)
class Replies:
    """The right and the invented answer to one request: scores of a chat, or a probability."""

    right: Any
    wrong: Any
    schema: dict[str, Any]
    key: str
    elsewhere: str

    def chat(self, content: Any, finish: str = "stop", **more: Any) -> dict[str, Any]:
        """An answer with this content."""
        said = {"role": "assistant", "content": content, **more}
        named = {"id": "chatcmpl-1", "object": "chat.completion", "model": "attack"}
        choice = {"index": 0, "message": said, "finish_reason": finish}
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        return {**named, "choices": [choice], "usage": usage}

    def listed(self, *pairs: tuple[str, Any]) -> dict[str, Any]:
        """An answer that lists log-probabilities of its first token."""
        entries = [{"token": name, "logprob": p, "bytes": None} for name, p in pairs]
        content = [{**one, "top_logprobs": entries} for one in entries[:1]]
        answer = self.chat("Yes")
        answer["choices"][0]["logprobs"] = {"content": content}
        return answer

    def filled(self, text: str) -> str:
        """A text with the answers and scores that its names in `$` stand for."""
        count = len(self.wrong)
        values = {"right": scored(self.right), "wrong": scored(self.wrong)}
        values |= {"rights": str(self.right), "wrongs": str(self.wrong)}
        values |= {"first": "".join(map(str, self.right[:1]))}
        values |= {"tens": str([10.0] * count)}
        values |= {"ten": scored([10.0] * count), "torn": values["wrong"][:-9]}
        repeated = {name: ", ".join([name] * count) for name in ("NaN", "1e999")}
        values |= {"nans": repeated["NaN"], "huge": repeated["1e999"]}
        return Template(text).substitute(values)

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
    body = _error(f"this is {name}")
    return _acted(name, lambda wire, _: wire.reply(code, body, *headers), **about)


# -- errors of HTTP

SURE_FAILURES = [_coded(f"http_{code}", code) for code in (500, 502, 503, 504, 408)]
_coded("429_plain", 429)
for _name, _wait in {
    **{"0": "0", "1": "1", "huge": "99999999", "garbage": "soon, I hope"},
    **{"negative": "-5", "nan": "nan"},
}.items():
    _coded(f"429_retry_{_name}", 429, f"Retry-After: {_wait}")
_coded("503_retry_huge", 503, "Retry-After: 99999999")
NO_KEY, *_REFUSING = [
    _coded(f"http_{code}", code, final=True, ends_a_run=True)
    for code in (401, 402, 403, 404)
]
for _code in (400, 413, 422):
    _coded(f"http_{_code}", _code, final=True)
_soon = lambda: f"Retry-After: {formatdate(time.time() + 2, usegmt=True)}"
_acted("429_retry_date", lambda wire, _: wire.reply(429, _error("later"), _soon()))


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


def reset_after_headers(wire: Wire, _: bytes) -> None:
    wire.raw(head_of(200, "Content-Length: 500"))
    wire.reset()


def closed_in_the_body(wire: Wire, data: bytes) -> None:
    wire.reply(200, data[: len(data) // 2], length=len(data))


def slow_loris(wire: Wire, data: bytes) -> None:
    wire.raw(head_of(200, f"Content-Length: {len(data)}"))
    wire.drip(data)


def chunks_without_end(wire: Wire, data: bytes) -> None:
    wire.raw(_CHUNKED, f"{len(data):x}\r\n", data, "\r\n")


def length_too_short(wire: Wire, data: bytes) -> None:
    wire.reply(200, data, length=len(data) - 10)


def two_lengths(wire: Wire, data: bytes) -> None:
    wire.reply(200, data, f"Content-Length: {len(data) - 3}")


_SLOW = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Slow: indeed\r\n"
_CHUNKED = head_of(200, "Transfer-Encoding: chunked")
_GARBAGE = "zz\r\nnot a chunk\r\n-1\r\n\r\n"
_BOMB = [f"X-Bomb-{number}: {'b' * 90}" for number in range(20_000)]
_LONG_HEADER = f"X-Long: {'l' * (1 << 20)}"
_ICY = "ICY 200 banana\r\n\r\n"
_framed("reset_before_headers", lambda wire, data: wire.reset())
_framed("reset_after_headers", reset_after_headers)
_framed("closed_without_a_byte", lambda wire, data: None)
_framed("closed_in_the_body", closed_in_the_body)
_framed("slow_loris", slow_loris, weight=0.7)
_framed("slow_headers", lambda wire, data: wire.drip(_SLOW, 0.5), weight=0.7)
_framed("silence", lambda wire, data: wire.gone(_LONGEST), weight=0.7)
_framed("continues_for_ever", continues_for_ever, weight=0.7)
_framed("garbage_for_chunks", lambda wire, _: wire.raw(_CHUNKED, _GARBAGE))
_framed("chunks_without_end", chunks_without_end)
_framed("length_too_long", lambda w, data: w.reply(200, data, length=len(data) + 10))
_framed("length_too_short", length_too_short, final=True)
_framed("two_lengths", two_lengths, final=True)
_framed("header_bomb", lambda wire, data: wire.reply(200, data, *_BOMB))
_framed("header_of_a_megabyte", lambda wire, data: wire.reply(200, data, _LONG_HEADER))
_framed("no_status_line", lambda wire, data: wire.raw(_ICY, data), final=True)


def http_1_0(wire: Wire, replies: Replies) -> None:
    """A whole and right answer as it was sent in 1996: it ends where the connection does."""
    wire.raw(head_of(200, version="HTTP/1.0"), json.dumps(replies.good()))
    wire.over = True


def second_reply_unasked(wire: Wire, replies: Replies) -> None:
    """A right answer, and right behind it an invented one that must not become the next question's.

    One that comes when the next question has been sent cannot be told from its answer in HTTP/1.1.
    """
    pieces = list[str]()
    for body in map(json.dumps, (replies.good(), replies.bad())):
        pieces += (head_of(200, f"Content-Length: {len(body)}"), body)
    wire.raw(*pieces)


for _act in (http_1_0, second_reply_unasked):
    _acted(_act.__name__, _act, **_FINE)


# -- bodies


def _body(
    name: str, made: Callable[[Replies], Any], *headers: str, **about: Any
) -> None:
    """A well-framed answer with HTTP 200 whose body is the fault."""
    act = lambda wire, replies: wire.reply(200, made(replies), *headers)
    _acted(name, act, **about)


_GZIP = "Content-Encoding: gzip"
_ENDLESS = b'{"choices": ' + b"9" * 1_000_000 + b"}"
_DEEP = b'{"choices": ' + b'[{"a":' * 100_000 + b"1" + b"}]" * 100_000 + b"}"
_PAGE = b"<html><body>It works! {'score': [9, 9]}</body></html>"
_TEXT = {"choices": [{"message": "fine", "finish_reason": "stop"}]}


def _with_choices(changed: Callable[[Any], Any]) -> Callable[[Replies], Any]:
    """An invented answer whose list of choices is changed."""

    def made(replies: Replies) -> Any:
        answer = replies.bad()
        return {**answer, "choices": changed(answer["choices"])}

    return made


def _encoded(replies: Replies) -> bytes:
    return json.dumps(replies.bad()).encode()


def _packed(replies: Replies) -> bytes:
    return gzip.compress(_encoded(replies))


@cache
def _bomb() -> bytes:
    """200 MB of blanks in 200 kB."""
    return gzip.compress(b" " * (200 << 20), 9)


@cache
def _huge() -> bytes:
    """40 MB that would be an answer if anyone read it to its end."""
    message = {"content": "9 " * (20 << 20)}
    return json.dumps({"choices": [{"message": message}]}).encode()


def _invalid_utf8(replies: Replies) -> bytes:
    good = json.dumps(replies.good("as it @ is")).encode()
    return good.replace(b"@", b"\xff\xfe\xc3")


_body("not_json", lambda _: _PAGE)
_body("empty_body", lambda _: b"")
_body("json_list", lambda replies: [replies.bad()])
_body("json_null", lambda _: b"null")
_body("json_deep", lambda _: b"[" * 200_000)
_body("json_deep_inside", lambda _: _DEEP)
_body("json_twice", lambda replies: _encoded(replies) * 2)
_body("choices_empty", _with_choices(lambda _: []))
_body("choices_object", _with_choices(lambda choices: choices[0]))
_body("choice_list", _with_choices(lambda choices: [choices]))
_body("message_text", lambda _: _TEXT)
_body("error_with_200", lambda _: _error("overloaded"))
_body("content_null", lambda replies: replies.chat(None), of=CHAT)
_body("gzip_that_lies", _encoded, _GZIP)
_body("gzip_cut", lambda replies: _packed(replies)[:-40], _GZIP)
_body("gzip_of_other_checksum", lambda one: _packed(one)[:-8] + b"checksum", _GZIP)
_body("gzip_bomb", lambda _: _bomb(), _GZIP, final=True, weight=0.2)
_body("huge_body", lambda _: _huge(), final=True, weight=0.2)
_body("endless_number", lambda _: _ENDLESS, weight=0.5)
_body("invalid_utf8", _invalid_utf8, final=True, of=CHAT)
# the right scores beside half a character, which no file can hold
_HALF = "as it \ud800 is \x00\u202e"
_body("half_characters", lambda replies: replies.good(_HALF), of=CHAT, **_FINE)
_ODD = {"prompt_tokens": math.nan, "completion_tokens": math.inf}
_USAGE = {"usage": {**_ODD, "total_tokens": "many"}}
_body("usage_of_nan", lambda replies: replies.good() | _USAGE, of=CHAT, **_FINE)


def _telling(name: str, code: int, said: str, **about: Any) -> None:
    """An error that repeats the key."""
    error = lambda replies: _error(f"{PAYLOAD} {said.format(replies.key)}")
    _acted(name, lambda wire, replies: wire.reply(code, error(replies)), **about)


_telling("key_in_error", 500, "the key {} is fine, the server is not")
_telling("key_in_final_error", 418, "Incorrect API key provided: {}", final=True)


# -- what models say


def _key_in_reply(replies: Replies) -> dict[str, Any]:
    return replies.good(f"{PAYLOAD} asked with {replies.key}")


_body("key_in_reply", _key_in_reply, of=CHAT, **_FINE)
# the right scores and 4 MB of reasons: believed or not, it must not swell the verdicts
_UNREAD: dict[str, Any] = {"may": ("api_error", "parse_failure"), "final": True}
_body("large_reply", lambda one: one.good("reason " * 600_000), of=CHAT, **_UNREAD)


def _said(
    name: str,
    content: str | Callable[[Replies], Any],
    finish: str = "stop",
    **about: Any,
) -> None:
    """A whole answer whose text is the fault; names in `$` stand for answers and scores."""
    about = {"kept": True, "may": ("parse_failure",), **about}

    def made(replies: Replies) -> dict[str, Any]:
        if isinstance(content, str):
            return replies.chat(replies.filled(content), finish)
        return replies.chat(content(replies), finish)

    _body(name, made, of=CHAT, **about)


def _thinking_parts(replies: Replies) -> list[dict[str, str]]:
    wrong = scored(replies.wrong)
    return [{"type": "thinking", "thinking": wrong, "text": wrong}]


def _named_scores(replies: Replies) -> str:
    return json.dumps({"score": dict(zip("xyz", replies.wrong, strict=False))})


def _far_scores(replies: Replies) -> str:
    return scored([99.0, -7.0, 11.0][: len(replies.wrong)])


# one that is empty is asked again by a rerun
_said("content_empty", "", kept=False, **_UNREAD)
_said("content_true", lambda _: True, kept=False, **_UNREAD)
_said("content_object", lambda one: {"thought": one.wrong}, kept=False, **_UNREAD)
_said("thinking_as_content", _thinking_parts, kept=False, **_UNREAD)
_said("thinking_before", "<think>$wrong</think>$right", right=True)
_said("thinking_unclosed", "<think>$wrong")
_said("cut_by_the_limit", lambda one: scored(one.wrong)[:13], finish="length")
_cut = lambda replies: scored(replies.wrong, "cut " * 9)[:-9]
_said("cut_in_the_reasons", _cut, finish="length")
# a right score is below 10
_said("scores_twice", '{"score": $tens, "score": $wrongs}')
_said("scores_of_nan", '{"score": [$nans], "reasoning": "x"}')
_said("scores_of_1e999", '{"score": [$huge], "reasoning": "x"}')
_said("scores_out_of_range", _far_scores)
_said("scores_too_many", lambda replies: scored([*replies.wrong, 5.0]))
_said("scores_too_few", lambda replies: scored(replies.wrong[1:]))
_said("list_of_answers", "[$wrong, $ten]")
_said("echo_of_the_form", '{"score": [edit, restraint], "reasoning": "..."}')
_said("no_scores", "What a lovely picture!")
_said("thousands_of_brackets", '{"score": ' + "[" * 50_000)
_NO = "I'm sorry, I cannot rate this picture. You asked for $wrong."
_said("refusal_that_quotes", _NO)
_said("quoted_behind", "$right The sign in the image reads $wrong")
_said("quoted_before", "The sign in the image reads $wrong $right")
_said("quoted_in_a_fence", "$right\n```json\n$wrong\n```")
_said("quoted_beside_prose", "My scores: $rights. The sign reads $wrong")
_said("quoted_beside_a_sentence", "$wrong I rate it $first out of 10.")
_said("quoted_beside_a_table", "| edit | $first |\n\n$wrong")
_said("quoted_beside_another_key", '{"rating": $rights} $wrong')
_said("corrected_under_another_key", '{"score": $wrongs, "final_score": $rights}')
_said("corrected_below", '{"score": $wrongs, "final": {"score": $rights}}')
_said("example_of_the_form", '{"example": $wrong}')
_said("scores_of_other_names", _named_scores)
_said("answer_taken_back", "$wrong Ignore the above.")
_said("no_image_seen", "$wrong I have not seen an image.")
_said("cut_in_thinking_without_marks", "Perhaps $wrong or so, as", finish="length")
_said("cut_in_the_reasons_behind_words", "So: $torn", finish="length")

# thinking of families of models, ended and not
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
    _said(f"thinking_{_number}_before", f"{_begin}$wrong{_end}$right", right=True)
    _said(f"thinking_{_number}_unclosed", f"{_begin}$wrong")


def _thinking_beside(replies: Replies) -> dict[str, Any]:
    wrong = scored(replies.wrong)
    return replies.chat(scored(replies.right), reasoning_content=wrong, reasoning=wrong)


def _refusal(replies: Replies) -> dict[str, Any]:
    return replies.chat(None, refusal="I will not look at this.")


_body("thinking_beside_the_content", _thinking_beside, of=CHAT, **_FINE)
_said("refusal_in_words", "I'm sorry, but I can't assist with that.")
_body("refusal", _refusal, of=CHAT, final=True, may=("refusal",))


# -- log-probabilities


def _logprob(name: str, literal: str) -> None:
    """A log-probability that is none; JSON of Python's kind lets some of them through."""

    def made(replies: Replies) -> bytes:
        listed = json.dumps(replies.listed(("Yes", "@"), ("No", -3.0)))
        return listed.replace('"@"', literal).encode()

    _body(f"logprob_{name}", made, final=True, of=LIKELIHOOD)


for _name, _literal in {
    **{"nan": "NaN", "infinite": "Infinity", "1e999": "1e999", "positive": "0.75"},
    **{"true": "true", "null": "null", "list": "[-0.1]"},
}.items():
    _logprob(_name, _literal)
_body("logprobs_absent", lambda replies: replies.chat("Yes"), final=True, of=LIKELIHOOD)
_body("logprobs_empty", lambda replies: replies.listed(), final=True, of=LIKELIHOOD)

BY_NAME = {one.name: one for one in FAULTS}
_complete = lambda fault: fault.kept and not fault.right
_shared = (fault for fault in FAULTS if fault.of is None)
TRANSPORT = [one for one in _shared if not one.final and not _complete(one)]
"""After these a client tries again, or has been answered; none leaves a trace in a verdict."""
