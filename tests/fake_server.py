"""A fake OpenAI-compatible server: replies that follow from the request alone, and faults on demand.

A test enters `FakeServer(latency=0.05)`, which is a thread; a benchmark starts
`python tests/fake_server.py --port 0 --latency 0.2 --capacity 32`.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import functools
import hashlib
import io
import json
import math
import operator
import re
import socket
import struct
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from statistics import NormalDist
from types import MappingProxyType
from typing import Any, Literal

import PIL.Image

try:
    from aiohttp import web
except ImportError:
    if "pytest" not in sys.modules:
        raise
    import pytest

    reason = 'the fake server needs aiohttp: pip install ".[http]"'
    pytest.skip(reason, allow_module_level=True)

HOST = "127.0.0.1"
MAX_BODY = 64 * 2**20
MOST_LOGPROBS = 20
REFUSAL = "I'm sorry, but I can't assist with that."
Kind = Literal["429", "500", "503", "hang", "reset", "death", "cut_body", "invalid_json",
               "empty_choices", "null_content", "refusal", "overlong", "overlong_vllm",
               "content_filter"]  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request; `seconds` is the length of a death."""

    kind: Kind
    retry_after: float | None = None
    seconds: float = 0.5


_PASSING: tuple[Kind, ...] = (
    "429", "500", "503", "hang", "reset", "cut_body", "invalid_json", "empty_choices", "null_content",
)  # fmt: skip
_IN_THE_ANSWER = (*_PASSING[-4:], "refusal")
_LASTING: tuple[Kind, ...] = ("refusal", "overlong", "overlong_vllm", "content_filter")
TRANSIENT = (*map(Fault, _PASSING), Fault("429", retry_after=1))
PERMANENT = tuple(map(Fault, _LASTING))

# kind: HTTP status, `type`, `code` and message of the error body
_ERRORS: Mapping[str, tuple[int, str, str | int | None, str]] = MappingProxyType({
    "429": (429, "requests", "rate_limit_exceeded",
            "Rate limit reached for requests. Please try again later."),
    "500": (500, "server_error", None, "The server had an error while processing your request."),
    "503": (503, "service_unavailable", None,
            "The engine is currently overloaded, please try again later."),
    "unauthorized": (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    "overlong": (400, "invalid_request_error", "context_length_exceeded",
                 "This model's maximum context length is 8192 tokens. However, your messages "
                 "resulted in 9001 tokens. Please reduce the length of the messages."),
    "overlong_vllm": (400, "BadRequestError", 400,
                      "This model's maximum context length is 8192 tokens. However, you requested "
                      "1024 output tokens and your prompt contains at least 7169 input tokens, for "
                      "a total of at least 8193 tokens."),
    "content_filter": (400, "invalid_request_error", "content_filter",
                       "The response was filtered due to the prompt triggering the content "
                       "management policy."),
})  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """How the server behaves; each field with a plain default is a command-line option too."""

    model: str = "fake"
    api_key: str = ""  # none asked for
    latency: float = 0.0  # seconds of work a reply takes ...
    jitter: float = 0.0  # ... give or take, drawn from seed, prompt and attempt
    spread: float = 0.0  # sigma of a lognormal latency with the median `latency`
    capacity: int = 1_000_000  # requests worked on at once; the others wait
    schema_support: Literal["enforced", "rejected", "ignored"] = "enforced"
    cached_share: float = 0.0  # share of a question's tokens reported as cached
    sees: bool = True  # passes the sight check, which is neither counted nor faulty
    hide_yes: bool = False  # leave every spelling of Yes out of the logprobs
    seed: int = 0
    fault_share: float = 0.0  # share of attempts that meet a fault of `fault_mix` ...
    faulty_attempts: int = 2  # ... among the first so many at a prompt
    permanent_share: float = 0.0  # prompts that always meet one of `permanent_mix`
    fault_mix: Sequence[Fault] = TRANSIENT
    permanent_mix: Sequence[Fault] = PERMANENT
    #: By the request's number, from 1, and its body.
    faults: Callable[[int, dict[str, Any]], Fault | None] | None = None
    reply: Callable[[dict[str, Any]], str] | None = None  # not made from hashes


@dataclass(frozen=True)
class Prompt:
    """The content of a request's messages; equal content has equal digests for any client."""

    digest: bytes
    text: str
    images: int


def _parts(content: str | list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    return content if isinstance(content, list) else [{"text": content or ""}]


def read_request(raw: bytes, whole: bool = True) -> tuple[dict[str, Any], Prompt]:
    """A request and its prompt; unless `whole`, placeholders stand for images."""
    # images are cut out first: json.loads takes 0.9 ms for 215 KB, a search for an end 3 us
    view = memoryview(raw)
    kept, images = list[bytes](), list[memoryview]()
    at = seek = 0
    while (quote := raw.find(b'"data:image/', seek)) >= 0:
        seek = quote + 1
        if raw[quote - 1] != ord("\\"):  # an escaped quote opens no string
            end = raw.index(b'"', seek)
            kept += raw[at:seek], b"data:image/#%d" % len(images)
            images.append(view[seek:end])
            at = seek = end
    request = json.loads(b"".join([*kept, raw[at:]]))
    digest, texts, count = hashlib.blake2b(digest_size=16), list[str](), 0
    for message in request["messages"]:
        for part in _parts(message.get("content")):
            if "image_url" not in part:
                text = part["text"]
                texts.append(text)
                digest.update(b"text %d " % len(text) + text.encode("utf-8", "replace"))
                continue
            count += 1
            url: str = part["image_url"]["url"]
            image: bytes | memoryview = url.encode("utf-8", "replace")
            if url.startswith("data:image/#"):
                image = images[int(url.removeprefix("data:image/#"))]
                if whole:
                    part["image_url"]["url"] = str(image, "ascii")
            # a cryptographic hash of all of it would take longer than everything else here together
            head = b"image %d %d " % (len(image), zlib.crc32(image))
            digest.update(head + image[:2048] + image[-2048:])
    return request, Prompt(digest.digest(), "\n".join(texts), count)


def colour_asked_for(raw: bytes) -> str:
    """The colour of the picture of a sight check; empty for another request."""
    if b"Which colour fills this picture" not in raw:
        return ""
    from vieval_plugin.backends.http.sight import COLOURS

    url = re.search(rb"data:image/png;base64,([^\"]+)", raw)
    if url is None:
        return ""
    picture = PIL.Image.open(io.BytesIO(base64.b64decode(url[1])))
    pixel = picture.convert("RGB").getpixel((0, 0))
    return next((name for name, colour in COLOURS.items() if colour == pixel), "")


def hash_scores(digest: bytes, count: int) -> list[int]:
    """Sub-scores from 0 to 10."""
    return [digest[i % len(digest)] % 11 for i in range(count)]


def score_count(text: str) -> int:
    """How many scores the last `"score": [a, b]` or `score = [a, b]` asks for; 1 without any."""
    lists = re.findall(r'score"?\s*[:=]\s*\[([^][]*)\]', text)
    named_lists = [names for names in lists if names.strip(" .")]
    return len(named_lists[-1].split(",")) if named_lists else 1


class Rejected(Exception):
    """What a real server answers with 400."""


# keywords that real servers cannot enforce, and refuse
_UNSUPPORTED = frozenset({
    "allOf", "contains", "exclusiveMaximum", "exclusiveMinimum", "format", "if", "minProperties", "multipleOf", "not",
    "pattern", "prefixItems", "uniqueItems",
})  # fmt: skip


def instance(
    schema: Mapping[str, Any],
    digest: bytes,
    root: Mapping[str, Any] | None = None,
    key: str = "",
) -> Any:
    """A smallest valid instance of a JSON schema, with a `score` drawn from the digest."""
    root = schema if root is None else root
    if found := _UNSUPPORTED & schema.keys():
        raise Rejected(f"Invalid response_format: {min(found)!r} is not supported.")
    if not schema.keys() & {"type", "$ref", "anyOf", "oneOf"}:
        raise Rejected("Invalid schema for response_format: it must have a 'type' key.")
    if "$ref" in schema:
        steps = schema["$ref"].removeprefix("#/").split("/")
        part = functools.reduce(operator.getitem, steps, root)
        return instance(part, digest, root, key)
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return instance(choices[0], digest, root, key)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    kind = schema.get("type", "object" if "properties" in schema else "null")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        wanted = {*schema.get("required", ()), "score"}
        return {
            name: instance(part, digest, root, name)
            for name, part in schema.get("properties", {}).items()
            if name in wanted
        }
    if kind == "array":
        # each item sees the digest from another byte on, so that scores differ
        count = schema.get("minItems", int(key == "score"))
        items = schema.get("items", {})
        turned = (digest[i % 16 :] + digest[: i % 16] for i in range(count))
        return [instance(items, each, root, key) for each in turned]
    if kind in ("number", "integer"):
        low = schema.get("minimum", min(0, math.floor(schema.get("maximum", 0))))
        low = math.ceil(low) if kind == "integer" else low
        if key != "score":
            return low
        return low + digest[0] % (math.floor(schema.get("maximum", low + 10) - low) + 1)
    if kind == "string":
        text = f"fake {digest.hex()[:8]}".ljust(schema.get("minLength", 0))
        return text[: schema.get("maxLength")]
    return False if kind == "boolean" else None


def first_token(digest: bytes, hide_yes: bool = False) -> dict[str, float]:
    """Probabilities of the reply's first token, highest first: 0.9 for spellings of Yes and No."""
    yes = 0.02 + 0.96 * int.from_bytes(digest[:8], "big") / 2**64
    chances = {f"other{i}": 0.05 / 2**i for i in range(1, 40)}
    for word, share in (("Yes", yes), ("No", 1 - yes)):
        if not (hide_yes and word == "Yes"):
            spellings = (word, word.lower(), f" {word}", word.upper())
            for spelling, part in zip(spellings, (0.8, 0.1, 0.06, 0.04), strict=True):
                chances[spelling] = 0.9 * share * part
    return dict(sorted(chances.items(), key=lambda item: -item[1]))


def completion(
    settings: Settings, request: dict[str, Any], prompt: Prompt
) -> dict[str, Any]:
    """The whole answer to a request that meets no fault. A token is four characters."""
    wanted = request.get("response_format") or {}
    schema = None
    if wanted.get("type") == "json_schema":
        schema = wanted["json_schema"]["schema"]
    if schema is not None and settings.schema_support == "rejected":
        kind = "'response_format' of type 'json_schema'"
        raise Rejected(f"Invalid parameter: {kind} is not supported with this model.")
    top = request.get("top_logprobs") or 0
    if top > MOST_LOGPROBS:
        most = f"greater than max allowed: {MOST_LOGPROBS}"
        raise Rejected(f"top_logprobs of {top} is {most}")
    tokens = [
        {"token": token, "logprob": math.log(chance), "bytes": list(token.encode())}
        for token, chance in first_token(prompt.digest, settings.hide_yes).items()
        if request.get("logprobs")
    ]
    if settings.reply:
        text = settings.reply(request)
    elif schema is not None and settings.schema_support == "enforced":
        text = json.dumps(instance(schema, prompt.digest))
    elif schema is not None:
        text = f"I would rate this {hash_scores(prompt.digest, 1)[0]} out of 10."
    elif tokens:
        text = str(tokens[0]["token"])
    else:
        scores = hash_scores(prompt.digest, score_count(prompt.text))
        reasoning = f"fake {prompt.digest.hex()[:8]}"
        text = json.dumps({"score": scores, "reasoning": reasoning})
    most = request.get("max_completion_tokens") or request.get("max_tokens")
    limit = 4 * (most or len(text))
    read = math.ceil(len(prompt.text) / 4) + 256 * prompt.images
    written = math.ceil(len(text[:limit]) / 4)
    return {
        "id": f"chatcmpl-{prompt.digest.hex()}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.get("model", settings.model),
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": text[:limit], "refusal": None},
            "finish_reason": "length" if len(text) > limit else "stop",
            "logprobs": {"content": [{**tokens[0], "top_logprobs": tokens[:top]}], "refusal": None} if tokens else None,
        }],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "prompt_tokens_details": {"cached_tokens": int(settings.cached_share * read)},
        },
    }  # fmt: skip


def _fraction(*key: object) -> float:
    """A number in [0, 1) that follows from the key, in any order of requests and in any process."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def _error(kind: str, retry_after: float | None = None) -> web.Response:
    """The answer of an error kind, or a 400 with any other message."""
    other = (400, "invalid_request_error", None, kind)
    status, type_, code, message = _ERRORS.get(kind, other)
    error = {"message": message, "type": type_, "param": None, "code": code}
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    return web.json_response({"error": error}, status=status, headers=headers)


@dataclass
class _Tally:
    """What /stats reports; one small entry a distinct prompt is all that grows."""

    in_flight: int = 0  # received and not yet answered, waiting ones included
    max_in_flight: int = 0
    working: int = 0  # of these, in a slot within `capacity`
    max_working: int = 0
    number: int = 0
    #: "none" for no answer at all.
    statuses: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    attempts: Counter[bytes] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)

    def report(self) -> dict[str, Any]:
        tallies = vars(self).items()
        counted = {k: dict(n) if isinstance(n, Counter) else n for k, n in tallies}
        counted["distinct_prompts"] = len(counted.pop("attempts"))
        return {**counted, "requests": self.statuses.total()}


class FakeServer:
    """The server in a thread, from entering to leaving the `with` block; loopback only."""

    def __init__(self, port: int = 0, **settings: Any) -> None:
        self.settings = Settings(**settings)
        self.port = port
        self._tally = _Tally()
        self._slots = asyncio.Semaphore(self.settings.capacity)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def stats(self) -> dict[str, Any]:
        return self._tally.report()

    def reset_stats(self) -> None:
        """Start counting again, attempts too, so that the same requests meet the same faults."""
        now = self._tally
        now.max_in_flight, now.max_working, now.number = now.in_flight, now.working, 0
        for name in ("statuses", "faults", "attempts", "tokens"):
            setattr(now, name, Counter())

    def die(self, seconds: float) -> None:
        """Drop all connections, and listen again on the same port after so many seconds."""
        self._loop.call_soon_threadsafe(self._begin_death, seconds)

    def __enter__(self) -> FakeServer:
        listening = socket.create_server((HOST, self.port), backlog=1024)
        self.port, self._started = listening.getsockname()[1], threading.Event()
        serve = lambda: asyncio.run(self._serve(listening))
        self._thread = threading.Thread(target=serve, daemon=True)
        self._thread.start()
        if not self._started.wait(60):
            raise RuntimeError("the fake server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    async def _serve(self, listening: socket.socket) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._death: asyncio.Task[None] | None = None
        app = web.Application(client_max_size=MAX_BODY)
        app.add_routes([
            web.post("/v1/chat/completions", self._counted),
            web.get("/v1/models", self._models),
            web.get("/health", self._health),
            web.get("/stats", self._stats),
            web.post("/stats/reset", self._stats),
            *self.further_routes(),
        ])  # fmt: skip
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5
        )
        await self._runner.setup()
        await self._listen(listening)
        self._started.set()
        await self._stop.wait()
        if self._death:
            self._death.cancel()
        self._drop_connections()  # hanging requests would hold the shutdown up
        await self._runner.cleanup()

    def further_routes(self) -> list[web.RouteDef]:
        """What a server answers beyond calls."""
        return []

    async def _listen(self, listening: socket.socket) -> None:
        self._site = web.SockSite(self._runner, listening, backlog=1024)
        await self._site.start()

    def _drop_connections(self) -> None:
        server = self._runner.server
        for connection in server.connections if server else ():
            if connection.transport:
                connection.transport.abort()

    def _begin_death(self, seconds: float) -> None:
        if not self._death or self._death.done():
            self._death = asyncio.create_task(self._die(seconds))

    async def _die(self, seconds: float) -> None:
        await self._site.stop()
        self._drop_connections()
        # holds the port, so that no client's own end is given it meanwhile
        with socket.socket() as keeper:
            keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                keeper.bind((HOST, self.port))
            await asyncio.sleep(seconds)
        await self._listen(socket.create_server((HOST, self.port), backlog=1024))

    async def _stats(self, http: web.Request) -> web.Response:
        if http.method == "POST":
            self.reset_stats()
        return web.json_response(self.stats())

    async def _health(self, http: web.Request) -> web.Response:
        return self._closed(http) or web.json_response({})

    async def _models(self, http: web.Request) -> web.Response:
        model = {"id": self.settings.model, "object": "model", "owned_by": "nobody"}
        listed = {"object": "list", "data": [model]}
        return self._closed(http) or web.json_response(listed)

    def _closed(self, http: web.Request) -> web.Response | None:
        key, given = self.settings.api_key, http.headers.get("Authorization")
        if key and http.path.startswith("/v1/") and given != f"Bearer {key}":
            return _error("unauthorized")
        return None

    async def _counted(self, http: web.Request) -> web.StreamResponse:
        if self.settings.sees and (colour := colour_asked_for(await http.read())):
            message = {"role": "assistant", "content": colour}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return web.json_response({"choices": [choice]})
        tally, status = self._tally, "none"
        tally.in_flight += 1
        tally.max_in_flight = max(tally.max_in_flight, tally.in_flight)
        try:
            response = await self._answer(http)
            status = str(response.status)
            return response
        except Exception as error:
            status = str(getattr(error, "status", 500))
            raise
        finally:
            tally.in_flight -= 1
            tally.statuses[status] += 1

    async def _answer(self, http: web.Request) -> web.StreamResponse:
        settings, tally, raw = self.settings, self._tally, await http.read()
        if closed := self._closed(http):
            return closed
        try:
            whole = bool(settings.faults or settings.reply)
            request, prompt = read_request(raw, whole)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            return _error(f"Invalid request: {error!r}")
        del raw
        if request.get("stream"):
            return _error("This fake does not stream.")
        tally.number += 1
        tally.attempts[prompt.digest] += 1
        number, attempt = tally.number, tally.attempts[prompt.digest]
        fault = settings.faults and settings.faults(number, request)
        fault = fault or self._drawn(prompt.digest, attempt)
        if fault and fault.kind not in _IN_THE_ANSWER:
            return await self._refuse(http, fault)
        try:
            reply = completion(settings, request, prompt)
        except Rejected as error:
            return _error(str(error))
        for name in ("prompt", "completion"):
            tally.tokens[name] += reply["usage"][f"{name}_tokens"]
        await self._slots.acquire()
        tally.working += 1
        tally.max_working = max(tally.max_working, tally.working)
        try:
            await asyncio.sleep(self._seconds(prompt.digest, attempt))
        finally:
            tally.working -= 1
            self._slots.release()
        if fault:
            return await self._spoil(http, fault, reply)
        return web.json_response(reply)

    def _seconds(self, digest: bytes, attempt: int) -> float:
        """How long a reply takes."""
        settings, seconds = self.settings, self.settings.latency
        if settings.spread:
            share = _fraction(settings.seed, "spread", digest, attempt)
            seconds *= math.exp(settings.spread * NormalDist().inv_cdf(share))
        if settings.jitter:
            swing = 2 * _fraction(settings.seed, "jitter", digest, attempt) - 1
            seconds += settings.jitter * swing
        return max(0, seconds)

    def _drawn(self, digest: bytes, attempt: int) -> Fault | None:
        settings = self.settings
        mix: Sequence[Fault] = ()
        key = (settings.seed, digest, attempt)
        if _fraction(settings.seed, digest) < settings.permanent_share:
            mix, key = settings.permanent_mix, (settings.seed, digest, 0)
        elif attempt <= settings.faulty_attempts:
            mix = settings.fault_mix if _fraction(*key) < settings.fault_share else ()
        return mix[int(_fraction("which", *key) * len(mix))] if mix else None

    async def _refuse(self, http: web.Request, fault: Fault) -> web.Response:
        """Faults that take the place of any work."""
        self._tally.faults[fault.kind] += 1
        if fault.kind in _ERRORS:
            return _error(fault.kind, fault.retry_after)
        if fault.kind == "death":
            self._begin_death(fault.seconds)
        if fault.kind == "reset" and http.transport:
            # closing without lingering is what sends RST in place of an orderly end
            connection = http.transport.get_extra_info("socket")
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            http.transport.abort()
        # until the connection is gone, which cancels this handler
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    async def _spoil(
        self, http: web.Request, fault: Fault, reply: dict[str, Any]
    ) -> web.StreamResponse:
        """Faults of the answer itself."""
        self._tally.faults[fault.kind] += 1
        if fault.kind == "empty_choices":
            return web.json_response({**reply, "choices": []})
        if fault.kind in ("null_content", "refusal"):
            refusal = REFUSAL if fault.kind == "refusal" else None
            reply["choices"][0]["message"] |= {"content": None, "refusal": refusal}
            return web.json_response(reply)
        half = json.dumps(reply)[:-40].encode()
        if fault.kind == "invalid_json":
            return web.Response(body=half, content_type="application/json")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.content_length = len(half) + 40
        response.force_close()
        await response.prepare(http)
        await response.write(half)
        return response


def named(server: FakeServer) -> list[str]:
    """The arguments of a command that asks a server."""
    return ["--model", "fake", "--base-url", server.base_url]


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, default=0, help="0 for any free one")
    for option in fields(Settings):
        name, default = f"--{option.name.replace('_', '-')}", option.default
        if isinstance(default, bool):
            boolean = argparse.BooleanOptionalAction
            parser.add_argument(name, action=boolean, default=default)
        elif isinstance(default, (int, float, str)):
            parser.add_argument(name, type=type(default), default=default)
    server = FakeServer(**vars(parser.parse_args()))
    with server, contextlib.suppress(KeyboardInterrupt):
        print(f"listening on {server.base_url}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
