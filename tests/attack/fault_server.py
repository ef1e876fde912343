"""An OpenAI-compatible server that misbehaves by plan: raw sockets, threads and the standard
library.

It shares no code with `tests/fake_server.py`, so that what one of them takes for granted the other
may not. For every request a fault is drawn by the seed, the conversation and how often it was
asked, so a run can be had again. The right answer follows from the request alone (`right_scores`,
`right_probability`), and so whoever knows a sample knows its verdict. Every request is noted by its
question, with what was sent and whether the client took it.

It listens on 127.0.0.1 only, answers a bounded number of requests and lives for a bounded time.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import random
import re
import socket
import struct
import threading
import time
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .faults import CHAT, LIKELIHOOD, RIGHT, SURE_FAILURES, Fault, Replies, Wire

_MOST_REQUESTS, _MOST_CONNECTIONS, _LONGEST_LIFE = 200_000, 600, 900.0
_MOST_HEADERS, _MOST_BODY, _MOST_PIXELS = 64 << 10, 64 << 20, 16 << 20
_IDLE = 60.0
# whoever is told 401 before any answer has a wrong key, and may end; so those come only after this
# many answers
_ANSWERED_FIRST = 100

_MARKER = re.compile(r"\[\[([^\[\]]+)\]\]")
_ASKED_NAMES = re.compile(r'"score":\s*\[([a-z0-9_, ]+)\]')


# -- what the right answer is


def picture_name(data: bytes) -> str:
    """A name for what an image file shows: of a PNG its header and pixels."""
    if not data.startswith(b"\x89PNG\r\n\x1a\n"):
        return hashlib.sha256(data).hexdigest()[:16]
    place, header, packed = 8, b"", b""
    while place + 8 <= len(data):
        length, kind = struct.unpack(">I4s", data[place : place + 8])
        body = data[place + 8 : place + 8 + length]
        header = body if kind == b"IHDR" else header
        packed += body if kind == b"IDAT" else b""
        place += 12 + length
    try:
        pixels = zlib.decompressobj().decompress(packed, _MOST_PIXELS)
    except zlib.error:
        pixels = packed
    return hashlib.sha256(header + pixels).hexdigest()[:16]


def question_name(marker: str, pictures: Sequence[str], count: int) -> str:
    """A question: its `[[marker]]`, the pictures in order, how many scores (0: a probability)."""
    return f"{marker}|{' '.join(pictures)}|{count}"


def right_scores(question: str, count: int) -> list[float]:
    """The only scores that this question deserves, 0.0 to 9.9."""
    digest = hashlib.sha256(question.encode()).digest()
    return [digest[place] % 100 / 10 for place in range(count)]


def right_probability(question: str) -> float:
    """The only probability of "Yes" that this question deserves, 0.001 to 0.999."""
    digest = hashlib.sha256(question.encode()).digest()
    return (int.from_bytes(digest[:4], "big") % 999 + 1) / 1000


# -- what was asked


@dataclass
class Asked:
    """One request: what it asked, by which client, what was done to it, and how that went."""

    question: str
    conversation: str
    session: str
    fault: Fault
    began: float
    sent: float | None = None  # when all of an answer had been handed to the network
    broken: bool = False  # the client had left, or left what was sent unread

    @property
    def delivered(self) -> bool:
        """Whether the client was given all of a reply that is worth keeping."""
        return self.fault.kept and self.sent is not None and not self.broken


@dataclass(frozen=True)
class Again:
    """A conversation asked although its reply had been delivered, and when."""

    conversation: str
    reply: str
    delivered: float
    asked: float


@dataclass
class _Request:
    """A request as it was read, with the names that follow from it."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    question: str = ""
    conversation: str = ""
    count: int = 0
    likelihood: bool = False
    about_images: bool = False

    @property
    def key(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")


@dataclass
class Plan:
    """What the server does from now on.

    `share` of requests meet a fault out of `kinds`; a question with a marker in `cursed` always
    meets that one, and where `always` is set every request does, once so many were `spared`.
    `pause` seconds pass before a right answer.
    """

    seed: int = 0
    share: float = 0.4
    kinds: Sequence[Fault] = ()
    cursed: Mapping[str, Fault] = field(default_factory=dict)
    always: Fault | None = None
    spared: int = 0
    pause: float = 0.0


class FaultServer:
    """The server: `server.plan` may be replaced at any time, `server.asked` is the log."""

    def __init__(self, plan: Plan | None = None) -> None:
        self.plan = plan or Plan()
        self.asked: list[Asked] = []
        self.probes = 0
        self.redirected = 0  # requests that reached the place redirects point to
        self.crashes: list[str] = []  # defects of this server itself
        self._lock = threading.Lock()
        self._answered: Counter[str] = Counter()
        self._times: Counter[str] = Counter()
        self._open: set[socket.socket] = set()
        self._dies = time.monotonic() + _LONGEST_LIFE
        self._listening = [
            self._listen(self._serve),
            self._listen(self._serve_stranger),
        ]
        self.base_url, self.elsewhere = (
            f"http://127.0.0.1:{s.getsockname()[1]}/v1" for s in self._listening
        )

    def __enter__(self) -> FaultServer:
        return self

    def __exit__(self, *_: object) -> None:
        for one in (*self._listening, *self._open.copy()):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def forget(self) -> None:
        """Empty the log, as before a new scenario."""
        with self._lock:
            self.asked, self.probes, self.redirected = [], 0, 0
            self._times.clear()

    def log(self) -> list[str]:
        """Every request as a line of JSON, with only the beginning of its key."""
        requests = []
        for one in self.asked.copy():
            less = {"fault": one.fault.name, "session": one.session[:14]}
            requests.append(json.dumps({**vars(one), **less}))
        return requests

    def answers(self) -> int:
        """How many replies worth keeping were sent since `forget`."""
        return sum(one.delivered for one in self.asked.copy())

    def asked_again(self) -> list[Again]:
        """Requests that began after the reply to the same conversation had been delivered."""
        found, delivered = [], dict[str, Asked]()
        for one in sorted(self.asked.copy(), key=lambda asked: asked.began):
            before = delivered.get(one.conversation)
            sent = before.sent if before is not None else None
            if sent is not None and sent < one.began:
                clients = "itself" if one.session == before.session else "another"
                late = f"{one.began - sent:.2f} s later by {clients}"
                reply = f"{before.fault.name}, {late}"
                found.append(Again(one.conversation, reply, sent, one.began))
            if one.delivered and before is None:
                delivered[one.conversation] = one
        return found

    def asked_at_once(self) -> int:
        """Conversations asked while a good answer to the same was under way to another request."""
        found, ends = 0, dict[str, float]()
        for one in sorted(self.asked.copy(), key=lambda asked: asked.began):
            found += one.began < ends.get(one.conversation, 0.0)
            if one.delivered and one.sent is not None:
                ends[one.conversation] = max(one.sent, ends.get(one.conversation, 0.0))
        return found

    def _listen(self, serve: Any) -> socket.socket:
        listening = socket.create_server(("127.0.0.1", 0), backlog=256)
        _begin(self._accept, listening, serve)
        return listening

    def _accept(self, listening: socket.socket, serve: Any) -> None:
        while time.monotonic() < self._dies:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            if len(self._open) >= _MOST_CONNECTIONS:
                connection.close()
                continue
            self._open.add(connection)
            _begin(self._guarded, connection, serve)

    def _guarded(self, connection: socket.socket, serve: Any) -> None:
        try:
            connection.settimeout(_IDLE)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            serve(connection)
        except OSError:
            pass  # the client left
        except Exception as error:
            self.crashes.append(f"{type(error).__name__}: {error}")
        finally:
            self._open.discard(connection)
            with contextlib.suppress(OSError):
                connection.close()

    def _serve(self, connection: socket.socket) -> None:
        """Answer one request after another; the next one shows what the client did with the last."""
        stream, last = connection.makefile("rb"), None
        while len(self.asked) < _MOST_REQUESTS and time.monotonic() < self._dies:
            try:
                request = _read(stream)
            except OSError:  # it closed with our bytes unread
                if last is not None:
                    last.broken = True
                return
            if request is None:
                return
            wire = Wire(connection)
            # GET /v1/models, /tokenize
            if not request.path.endswith("/v1/chat/completions"):
                wire.reply(404, {"error": {"message": "nothing here"}})
                continue
            last = self._answer(wire, _named(request))
            if wire.over:
                return self._wait_for_end(connection, last)

    def _serve_stranger(self, connection: socket.socket) -> None:
        """The target of redirects, which no client should follow; it invents scores."""
        stream = connection.makefile("rb")
        while (request := _read(stream)) is not None:
            self.redirected += 1
            _replies_to(_named(request)).invented(Wire(connection))

    def _wait_for_end(self, connection: socket.socket, last: Asked) -> None:
        """Let the client read to the end before the connection closes, and note whether it did."""
        try:
            connection.settimeout(5.0)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass
        except OSError:
            last.broken = True

    def _answer(self, wire: Wire, request: _Request) -> Asked:
        with self._lock:
            number = self._times[request.conversation]
            self._times[request.conversation] += 1
            names = (request.question, request.conversation, request.key)
            one = Asked(*names, RIGHT, time.monotonic())
            one.fault = self._drawn(request, number)
            if request.about_images:
                self.asked.append(one)
            else:
                self.probes += 1
        if one.fault.kept and self.plan.pause:
            time.sleep(self.plan.pause)
        try:
            one.fault.act(wire, _replies_to(request, self.elsewhere))
            one.sent = time.monotonic()
        except OSError:
            one.broken, wire.over = True, True
        if one.delivered:
            self._answered[request.key] += 1
        return one

    def _drawn(self, request: _Request, number: int) -> Fault:
        plan = self.plan
        marker = request.question.partition("|")[0]
        if plan.always is not None:
            return plan.always if len(self.asked) >= plan.spared else RIGHT
        fault = plan.cursed.get(marker)
        if fault is None:
            draw = random.Random(f"{plan.seed} {request.conversation} {number}")
            own = (None, LIKELIHOOD if request.likelihood else CHAT)
            kinds = [kind for kind in plan.kinds if kind.of in own]
            if not kinds or draw.random() >= plan.share:
                return RIGHT
            [fault] = draw.choices(kinds, [kind.weight for kind in kinds])
        early = self._answered[request.key] < _ANSWERED_FIRST
        return SURE_FAILURES[0] if fault.ends_a_run and early else fault


def _read(stream: Any) -> _Request | None:
    """The next request of a connection; None at its end, or for what is no request."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline(_MOST_HEADERS)
        head += line
        if not line or len(head) > _MOST_HEADERS:
            return None
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in rest if line)
    }
    length = int(headers.get("content-length", 0))
    if length > _MOST_BODY:
        return None
    body = stream.read(length)
    try:
        document = json.loads(body or b"{}")
    except ValueError:
        return None
    parts = first.split(" ")
    path = parts[1] if len(parts) > 1 else ""
    return _Request(path, headers, document if isinstance(document, dict) else {})


def _named(request: _Request) -> _Request:
    """The request with the names of its question and of its whole conversation."""
    texts, pictures, said = list[str](), list[str](), list[str]()
    for message in request.body.get("messages", []):
        content = message.get("content")
        is_list = isinstance(content, list)
        for part in content if is_list else [{"type": "text", "text": content}]:
            if part.get("type") == "image_url":
                data = base64.b64decode(part["image_url"]["url"].partition(",")[2])
                pictures.append(picture_name(data))
                said.append(pictures[-1])
            else:
                texts.append(str(part.get("text")))
                said.append(texts[-1])
    asking = lambda text: _MARKER.search(text) or _ASKED_NAMES.search(text)
    first = next(filter(asking, texts), texts[0] if texts else "")
    marker, names = _MARKER.search(first), _ASKED_NAMES.search(first)
    request.likelihood = bool(request.body.get("logprobs"))
    request.count = len(names[1].split(",")) if names and not request.likelihood else 0
    request.about_images = bool(pictures)
    name = marker[1] if marker else ""
    request.question = question_name(name, pictures, request.count)
    whole = "\0".join([str(request.likelihood), *said]).encode()
    request.conversation = hashlib.sha256(whole).hexdigest()[:16]
    return request


def _begin(function: Any, *arguments: Any) -> None:
    threading.Thread(target=function, args=arguments, daemon=True).start()


def _replies_to(request: _Request, elsewhere: str = "") -> Replies:
    if request.likelihood:
        right: Any = right_probability(request.question)
        wrong: Any = round((right + 0.37) % 1.0, 3) or 0.5
    else:
        right = right_scores(request.question, request.count)
        wrong = [round((score * 10 + 37) % 100) / 10 for score in right]
    form = request.body.get("response_format", {}).get("json_schema", {})
    return Replies(right, wrong, form.get("schema") or {}, request.key, elsewhere)
