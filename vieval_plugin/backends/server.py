"""Calls to OpenAI-compatible servers: load spread, retries with backoff, and a stop when a server is down for good."""

from __future__ import annotations

import asyncio
import email.utils
import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Status

if TYPE_CHECKING:
    import aiohttp

_MOST_BYTES = 32 << 20
_LONGEST_WAIT = 300.0
_FILTERED = ("content_filter", "content_policy", "content management policy", "responsible_ai", "safety system")


@dataclass(frozen=True)
class ServerOptions:
    """Where and how to call.

    `urls` are base addresses that end in /v1; `key` is sent as a bearer token and shown nowhere. `concurrent` bounds
    requests in flight, `timeout` the seconds without a byte, `retries` how often a call is tried again while the server
    answers others; when nothing at all was answered for `patience` seconds, the run stops.
    """

    urls: tuple[str, ...]
    key: str = field(default="", repr=False)
    concurrent: int = 32
    timeout: float = 600.0
    retries: int = 5
    patience: float = 120.0


@dataclass
class Usage:
    """What a run cost so far."""

    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    retries: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)


class Refused(Exception):
    """The server refused this one request for good: retrying cannot help."""

    def __init__(self, status: Status, kind: str, reason: str, code: int = 0) -> None:
        super().__init__(reason)
        self.status, self.kind, self.reason, self.code = status, kind, reason, code


class _Again(Exception):
    """This try went wrong in a way that another may not."""

    def __init__(self, kind: str, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.wait = kind, reason, wait


@dataclass
class _Endpoint:
    url: str
    in_flight: int = 0
    resting_until: float = 0.0


class Server:
    """A connection to one or several servers of the same model; use as `async with`."""

    def __init__(self, options: ServerOptions, usage: Usage, seed: int = 0) -> None:
        self.options, self.usage = options, usage
        self._endpoints = [_Endpoint(url.rstrip("/")) for url in options.urls]
        self._jitter = random.Random(seed)
        self._session: aiohttp.ClientSession | None = None
        self._slots = asyncio.Semaphore(options.concurrent)
        self._last_answer = time.monotonic()

    async def __aenter__(self) -> Server:
        try:
            import aiohttp
        except ImportError:
            raise VievalError('calling a server needs aiohttp; run: pip install "vieval[http]"') from None
        headers = {"Authorization": f"Bearer {self.options.key}"} if self.options.key else {}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=self.options.timeout)
        connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=300)
        self._session = aiohttp.ClientSession(headers=headers, timeout=timeout, connector=connector)
        self._last_answer = time.monotonic()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The JSON object a server answers with.

        Raises `Refused` when this request cannot be answered, VievalError when no request can: a wrong key or model,
        or a server that has answered nothing for `patience` seconds.
        """
        data = json.dumps(body, ensure_ascii=False).encode()
        started, tries = time.monotonic(), 0
        while True:
            async with self._slots:
                endpoint = min(self._endpoints, key=lambda e: (e.resting_until > time.monotonic(), e.in_flight))
                if (rest := endpoint.resting_until - time.monotonic()) > 0:
                    await asyncio.sleep(rest)
                endpoint.in_flight += 1
                try:
                    answer = await self._try(endpoint, path, data)
                    self._last_answer = time.monotonic()
                    self.usage.calls += 1
                    return answer
                except _Again as again:
                    problem = again
                finally:
                    endpoint.in_flight -= 1
            tries += 1
            self.usage.retries[problem.kind] += 1
            wait = self._wait(endpoint, problem, tries)
            if self._last_answer > started and tries > self.options.retries and problem.kind != "rate limit":
                raise Refused(Status.API_ERROR, problem.kind, f"{problem.reason}, {tries} times")
            silent = time.monotonic() - max(self._last_answer, started if problem.kind == "rate limit" else 0.0)
            if silent + wait > self.options.patience:
                raise VievalError(
                    f"{endpoint.url} has answered nothing for {silent:.0f} s (last: {problem.reason}); "
                    "see to the server and run the same command again: what was answered is kept"
                )
            await asyncio.sleep(wait)

    def _wait(self, endpoint: _Endpoint, problem: _Again, tries: int) -> float:
        """Seconds to wait: what the server asked for, else exponential with jitter; a limited server rests for all."""
        backoff = min(0.5 * 2 ** min(tries - 1, 6), 20.0) * (0.5 + self._jitter.random())
        if problem.wait is None:
            return backoff
        endpoint.resting_until = max(endpoint.resting_until, time.monotonic() + problem.wait)
        return problem.wait + 0.1 * self._jitter.random()

    async def _try(self, endpoint: _Endpoint, path: str, data: bytes) -> dict[str, Any]:
        import aiohttp

        assert self._session is not None
        url = f"{endpoint.url}/{path}"
        try:
            headers = {"Content-Type": "application/json"}
            async with self._session.post(url, data=data, headers=headers) as response:
                body = await response.content.read(_MOST_BYTES)
                while chunk := await response.content.read(_MOST_BYTES):
                    body += chunk
                    if len(body) > _MOST_BYTES:
                        raise Refused(Status.API_ERROR, "malformed answer", "an answer of more than 32 MiB")
                code, retry_after = response.status, response.headers.get("Retry-After")
        except asyncio.TimeoutError:
            raise _Again("timeout", f"no byte within {self.options.timeout:g} s") from None
        except aiohttp.ClientPayloadError:
            raise _Again("cut answer", "the answer broke off") from None
        except (aiohttp.ClientError, OSError) as error:
            raise _Again("connection", f"no connection ({type(error).__name__})") from None
        if code == 200:
            return _object(body)
        raise _problem(code, body, retry_after, endpoint.url)


def _object(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise _Again("malformed answer", "an answer that is not a JSON object")
    return answer


def _problem(code: int, body: bytes, retry_after: str | None, url: str) -> Exception:
    """What an answer that is not 200 means for the request, or for the run."""
    said = _message(body)
    if code in (401, 403):
        return VievalError(f"{url} refuses the key (HTTP {code}); set the environment variable that holds it")
    if code == 404:
        return VievalError(f"{url} knows no such model or address (HTTP 404: {said}); `vieval doctor` lists its models")
    if code == 429:
        wait = _seconds(retry_after)
        return _Again("rate limit", "too many requests (HTTP 429)", 1.0 if wait is None else wait)
    if code >= 500 or code == 408:
        return _Again("server error", f"HTTP {code}", _seconds(retry_after))
    lowered = said.lower()
    if any(sign in lowered for sign in _FILTERED):
        return Refused(Status.REFUSAL, "content filter", f"the server's content filter declined: {said}", code)
    if "context length" in lowered or "maximum context" in lowered or "too long" in lowered or code == 413:
        return Refused(Status.API_ERROR, "too long", f"too long for the server: {said}", code)
    return Refused(Status.API_ERROR, f"HTTP {code}", f"HTTP {code}: {said}", code)


def _message(body: bytes) -> str:
    """The error's own words and code, in one line of at most 300 characters."""
    try:
        document = json.loads(body)
        error = document.get("error", document) if isinstance(document, dict) else document
        parts = (
            [str(error[k]) for k in ("message", "code", "type") if error.get(k)]
            if isinstance(error, dict)
            else [str(error)]
        )
        text = " ".join(parts)
    except ValueError:
        text = body[:400].decode(errors="replace")
    return " ".join(text.split())[:300]


def _seconds(retry_after: str | None) -> float | None:
    """Retry-After, given as seconds or as a date, within reason."""
    if not retry_after:
        return None
    try:
        wait = float(retry_after)
    except ValueError:
        try:
            wait = email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (TypeError, ValueError):
            return None
    return min(max(wait, 0.0), _LONGEST_WAIT)
