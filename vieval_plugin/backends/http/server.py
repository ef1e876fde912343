"""Calls to OpenAI-compatible servers: load spread, retries with backoff, and a stop when a
server is down for good.
"""

from __future__ import annotations

import asyncio
import random
import re
import ssl
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from vieval_plugin.backends.concurrency import SharedTasks
from vieval_plugin.backends.http.faults import (
    Again,
    Denied,
    Refused,
    fault_in,
    fault_of,
    key_hint,
)
from vieval_plugin.backends.http.image_encoding import encoded
from vieval_plugin.backends.http.pacing import AVOIDED, Address, Attempts, Pace
from vieval_plugin.backends.http.responses import answer_of, is_stream, whole_answer
from vieval_plugin.config import Backbone
from vieval_plugin.judges.protocol import Status
from vieval_plugin.text.errors import VievalError, docs_url, install_advice
from vieval_plugin.text.escaping import announce
from vieval_plugin.text.network import Proxy, proxy_for, tls_context
from vieval_plugin.text.redaction import redacted, register_secrets, user_of
from vieval_plugin.text.untrusted import address_of
from vieval_plugin.text.yaml_json import JsonObject

if TYPE_CHECKING:
    import aiohttp


def connector(ca_file: Path | None = None) -> Any:
    """A connector of aiohttp without a limit of its own, which trusts the authorities of a file
    beside the system's.

    aiohttp hands a connection out again although something came in on it meanwhile, and takes that
    for the answer to the next request. A reply that comes later still, when the next request is
    under way, cannot be told from its answer in HTTP/1.1.
    """
    import aiohttp

    class Connector(aiohttp.TCPConnector):
        async def connect(
            self,
            req: Any,
            traces: Any,
            timeout: Any,
        ) -> aiohttp.connector.Connection:
            while True:
                connection = await super().connect(req, traces, timeout)
                if connection.protocol is None or not connection.protocol.should_close:
                    return connection
                connection.close()

    return Connector(
        limit=0,
        ttl_dns_cache=300,
        ssl=tls_context(ca_file) or True,
    )


Check: TypeAlias = Callable[
    [JsonObject], str | None
]  # what makes an answer unusable, None if nothing does

CHAT = "chat/completions"
_MOST_BYTES = 32 << 20
_LONGEST_HEADER = 64 << 10
_LONGEST_CAUSE = 160  # characters of a cause that are shown
_CONNECT = 30.0
_SILENT_FAILURES = 3  # tries in a row that may fail before the user is told
_PROXY_LOGIN = 407
NO_FILE = "cannot download a file"


def connection_fault(error: Exception, server: str, by: str = "") -> Again | Denied:
    """The fault that an exception of aiohttp is; one of a certificate or a protocol is
    not temporary.

    `by` are words for a proxy.
    """
    import aiohttp

    reason = remedy = ""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        reason = f"its certificate is not valid ({_cause(error.certificate_error)})"
        remedy = "set SSL_CERT_FILE to your certificate authority's file"
    elif isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError)):
        reason = f"no TLS connection ({_cause(error)})"
        remedy = "check whether the address must begin with http:// or https://"
    elif (
        isinstance(error, aiohttp.ClientResponseError)
        # in the words of both parsers of aiohttp, by version
        and re.search("status line|Expected HTTP/", error.message)
    ):
        message = " ".join(redacted(error.message).split())
        reason = f"the server does not speak HTTP ({message[:_LONGEST_CAUSE]})"
        remedy = "check the address and its port"
    if reason:
        return Denied(0, reason, f"{server}: {reason}; {remedy}")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return Again(
            "connection", f"no connection{by} (its host name cannot be resolved)"
        )
    if isinstance(error, aiohttp.ClientResponseError):
        return Again("malformed answer", "the headers of the response are unreadable")
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return Again("connection", f"no connection{by} (the server closed it)")
    return Again("connection", f"no connection{by} ({_cause(error)})")


def _cause(error: BaseException) -> str:
    """The words of an error of the system, else of the error itself, in one line."""
    system_error = getattr(error, "os_error", error)
    reason = (
        getattr(system_error, "reason", None)
        or getattr(system_error, "strerror", None)
        or str(system_error)
    )
    cause = " ".join(redacted(str(reason)).split())
    return cause[:_LONGEST_CAUSE] or "it was lost"


@dataclass(frozen=True)
class ServerOptions:
    """Addresses of servers, and how to call them."""

    #: Base addresses, which end in /v1.
    urls: tuple[str, ...]
    #: Key that is shown nowhere.
    key: str = field(default="", repr=False)
    #: Header of the key; `Authorization` has it as a bearer token.
    key_header: str = "Authorization"
    #: Further headers, with values that are shown nowhere.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: PEM file of certificate authorities, beside those of the system.
    ca_file: Path | None = None
    #: Most requests sent a minute; None for no limit.
    requests_per_minute: float | None = None
    #: Most requests in flight.
    concurrent: int = 32
    #: Seconds without a byte after which a try has failed.
    timeout: float = 600.0
    #: Times that a call is tried again while the server answers others.
    retries: int = 5
    #: Seconds without any answer after which the run stops.
    patience: float = 120.0
    #: Seconds of a try in all, twice `timeout` by default.
    deadline: float | None = None
    #: Path that every such server has.
    path: str = CHAT
    #: The shortest of requests to that path.
    hello: Mapping[str, Any] = field(
        default_factory=lambda: {
            "messages": [{"role": "user", "content": "Say hello."}],
            "max_tokens": 8,
        }
    )

    @property
    def longest_try(self) -> float:
        return self.deadline or 2 * self.timeout

    @property
    def longest_question(self) -> float:
        """Seconds that a question may take with all its tries, each of which may count as half
        of one.
        """
        longest = self.longest_try
        if self.requests_per_minute:
            longest += 60 * self.concurrent / self.requests_per_minute
        return 2 * (self.retries + 1) * longest + self.patience

    @property
    def sent_headers(self) -> dict[str, str]:
        """The headers of every request, with the key.

        Raises:
            VievalError: one of them cannot be sent.
        """
        key = self.key.strip()
        headers = dict(self.headers)
        if key:
            is_bearer = self.key_header.lower() == "authorization"
            headers[self.key_header] = f"Bearer {key}" if is_bearer else key
        for name, value in headers.items():
            if not value.isprintable():
                variable = (
                    "the server's key"
                    if value.endswith(key) and key
                    else f"the header {name}"
                )
                raise VievalError(
                    f"{variable} must not contain line breaks or control characters; remove "
                    "them"
                )
        return headers


@dataclass
class Usage:
    """Calls and tokens of a run so far."""

    #: Calls that were answered.
    calls: int = 0
    #: Answered calls that ask what the server can do.
    probes: int = 0
    #: Questions that earlier runs had answered.
    cached: int = 0
    #: Questions that were the same as another of this run, which was asked once.
    repeated: int = 0
    #: Measurements that were made.
    measured: int = 0
    #: Seconds of all calls together, which go on side by side.
    seconds: float = 0.0
    #: Tokens of questions.
    input_tokens: int = 0
    #: Tokens of answers.
    output_tokens: int = 0
    #: Most tokens that answers to all questions may have, by their limits.
    output_limit: int = 0
    #: Tokens of questions that the server had read before, and may charge less for.
    cached_tokens: int = 0
    #: Price of all calls by the user's prices, as far as there are such.
    price: float = 0.0
    #: Price saved by batches.
    saved_by_batches: float = 0.0
    #: Further tries by what went wrong.
    retries: Counter[str] = field(default_factory=Counter)
    #: Failures by kind.
    failures: Counter[str] = field(default_factory=Counter)
    #: Models that were shown images, by whether it was checked that they see.
    sight: Counter[str] = field(default_factory=Counter)

    def count_tokens(self, model: str, input_tokens: int, output_tokens: int) -> None:
        """Count the tokens of a call that `model` answered."""
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens

    def stop_reason(self) -> str:
        """The reason why no further call may be made; empty while calls may."""
        return ""

    def json_values(self) -> JsonObject:
        """The counts as JSON values, by name; `dataclasses.asdict` would count the entries of
        the counters.
        """
        return {
            name: dict(value) if isinstance(value, Counter) else value
            for name, value in vars(self).items()
        }

    def __add__(self, usage: Usage) -> Usage:
        return Usage(
            **{name: value + getattr(usage, name) for name, value in vars(self).items()}
        )


class Server:
    """A connection to one or several servers of the same model; use as `async with`. `chats` is
    false for image models.
    """

    def __init__(
        self,
        options: ServerOptions,
        usage: Usage,
        seed: int = 0,
        chats: bool = True,
    ) -> None:
        self._chats = chats
        self.options = options
        self.usage = usage
        self._key = options.key.strip()
        register_secrets(self._key, options.urls)
        self._addresses = [Address(url.rstrip("/")) for url in options.urls]
        self._outage_announced = False
        self._jitter = random.Random(seed)
        self._session: aiohttp.ClientSession | None = None
        self._slots = asyncio.Semaphore(options.concurrent)
        self._pace = Pace(options.requests_per_minute)
        self._proxies: dict[str, Proxy | None] = {}
        self._probe = SharedTasks()
        self._last_answer = time.monotonic()
        #: Called when a try failed that is made again.
        self.on_failed_try: Callable[[], None] = lambda: None
        self._unanswered = 0  # tries that failed after the last answer
        self._silent_since: float | None = (
            None  # when the first request began that failed after the last answer
        )

    async def __aenter__(self) -> Server:
        try:
            import aiohttp
        except ImportError:
            raise VievalError(
                f"calling a server requires aiohttp; {install_advice('http')}"
            ) from None
        headers = self.options.sent_headers
        urls = [address.url for address in self._addresses]
        url_with_user = next(filter(user_of, urls), None)
        if url_with_user and "Authorization" in headers:
            raise VievalError(
                f"{redacted(url_with_user)}: an address with a user and password cannot be "
                "combined with a key; remove one of the two (the key comes from "
                "OPENAI_API_KEY unless api_key_env sets another variable)"
            )
        timeout = aiohttp.ClientTimeout(
            total=self.options.longest_try,
            sock_connect=_CONNECT,
            sock_read=self.options.timeout,
        )
        self._session = aiohttp.ClientSession(
            headers=headers,
            timeout=timeout,
            connector=connector(self.options.ca_file),
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def post(
        self,
        path: str,
        body: JsonObject,
        check: Check = lambda answer: None,
    ) -> JsonObject:
        """The JSON object a server answers with; one that `check` finds unusable is asked for
        again.

        Raises `Refused` when this request cannot be answered, VievalError when no request can: a
        wrong key or model, or a server that has not answered for `patience` seconds.
        """
        request = Attempts(self.options.retries)
        address = None
        while True:
            async with self._slots:
                if wait := self._pace.wait(time.monotonic()):
                    await asyncio.sleep(wait)
                address = await self._choose(address)
                started = time.monotonic()
                try:
                    return await self._try(
                        request,
                        address,
                        path,
                        body,
                        check,
                    )
                except Again as again:
                    problem = again
            self.on_failed_try()
            silent = self._failed(address, problem, started)
            self._announce_outage(address, problem)
            # what was sent before a rest began says nothing of what comes after it
            late = silent > self.options.patience + address.rest_left(time.monotonic())
            rests = self._rests(request, address, problem)
            request.failed(problem.limited, with_most=rests)
            if request.spent or late:
                await self._give_up_or_go_on(
                    request,
                    address,
                    problem,
                    started,
                    silent if late else None,
                    body,
                )
            self.usage.retries[problem.kind] += 1
            patience_left = self.options.patience - silent
            wait = self._wait(
                request,
                problem,
                rests,
                patience_left,
            )
            await asyncio.sleep(wait)

    async def post_once(self, path: str, body: JsonObject, check: Check) -> JsonObject:
        """Post once, for a request that must not be sent twice; `Again` if it may have been
        received.
        """
        return await self._try(
            Attempts(0),
            self._addresses[0],
            path,
            body,
            check,
        )

    async def _give_up_or_go_on(
        self,
        request: Attempts,
        address: Address,
        problem: Again,
        started: float,
        late: float | None,
        body: JsonObject,
    ) -> None:
        """Raise `Refused` for a request that has had its tries, VievalError for a server that has
        had its time.

        `started` is when the last try was; `late` for how many seconds nothing was answered, None
        if patience allows it.
        """
        refused = Refused(
            Status.API_ERROR,
            problem.kind,
            problem.after(request.sends),
        )
        if request.spent and self._last_answer > started:
            raise refused
        # nothing else was answered meanwhile: is it this request, or the server?
        if await self._alive(body.get("model")):
            if request.server_is_well():
                raise refused
        elif late is not None:
            page = docs_url("reference/results.md#servers")
            raise VievalError(
                f"{redacted(address.url)} has not answered for {late:.0f} s (last error: "
                f"{problem.reason}); check the server and run again (earlier answers are "
                f"kept); see {page}"
            )
        elif request.server_is_away(time.monotonic(), self._last_answer):
            raise refused

    def _announce_outage(self, address: Address, problem: Again) -> None:
        """Say once that a server cannot be reached or fails every request, long before it is
        given up.
        """
        is_down = problem.kind == "connection" or (
            problem.kind == "server error" and self._unanswered >= _SILENT_FAILURES
        )
        if is_down and not self._outage_announced:
            self._outage_announced = True
            announce(
                f"{redacted(address.url)}: {problem.reason}; trying for "
                f"{self.options.patience:g} s"
            )

    async def _choose(self, last: Address | None) -> Address:
        """The least busy address, rather not the one that failed `last`; waits if all asked to
        be left alone.
        """
        while True:
            now = time.monotonic()
            address = min(self._addresses, key=partial(_preference, last, now))
            if address.resting_until <= now:
                return address
            jitter = 0.1 * self._jitter.random()
            await asyncio.sleep(address.rest_left(now) + jitter)

    def _failed(self, address: Address, problem: Again, started: float) -> float:
        """Note a failed try; the seconds for which nothing has been answered."""
        now = time.monotonic()
        if not problem.limited:
            address.suspect_until = now + AVOIDED
        self._unanswered += 1
        if self._silent_since is None:
            self._silent_since = max(started, self._last_answer)
        return now - self._silent_since

    def _rests(self, request: Attempts, address: Address, problem: Again) -> bool:
        """Return whether the address asks most requests to wait, so that it rests for all now."""
        asks_to_wait = problem.limited or problem.wait is not None
        if not asks_to_wait or not address.asks_most_to_wait(request):
            return False
        address.start_rest_period(
            problem.wait or 0.0,
            time.monotonic(),
            self._jitter,
            problem.limited,
        )
        return True

    def _wait(
        self,
        request: Attempts,
        problem: Again,
        rests: bool,
        patience: float,
    ) -> float:
        """Seconds to wait before the next try; a rest of the address is waited out by whoever
        chooses it.

        The wait ends with the patience that remains, so that a server is tried once more before it
        is given up.
        """
        if rests:
            return 0.1 * self._jitter.random()
        if problem.wait is not None:
            return request.retry_after_wait(problem.wait, self._jitter)
        backoff = request.backoff(self._jitter)
        return backoff if problem.limited else min(backoff, max(patience, 0.05))

    async def _alive(self, model: Any) -> bool:
        """Return whether a server answers the shortest of questions; whoever asks meanwhile is
        told the same.
        """
        return await self._probe.result(
            "hello",
            self._answers_hello,
            model,
        )

    async def _answers_hello(self, model: Any) -> bool:
        """Asked at once and beside all others: requests that wait for a rest to end would hold
        it up for ever.
        """
        body = {**self.options.hello, "model": model}
        address = min(
            self._addresses,
            key=lambda candidate: (candidate.resting_until, candidate.in_flight),
        )
        try:
            await self._try(
                Attempts(0),
                address,
                self.options.path,
                body,
                lambda answer: None,
            )
        except Again:
            return False
        except Refused:
            pass
        return True

    async def _try(
        self,
        request: Attempts,
        address: Address,
        path: str,
        body: JsonObject,
        check: Check,
    ) -> JsonObject:
        """Send a request once; an answer, a refusal too, shows that the address is well."""
        address.in_flight += 1
        address.note_sent(request)
        started = time.monotonic()
        try:
            # only now, so that images are held as request bodies by the requests in flight and no
            # others
            data, headers = encoded(body)
            url = endpoint(address.url, path)
            content = await self._exchange(
                "POST",
                url,
                address.url,
                _MOST_BYTES,
                data=data,
                headers=headers,
            )
            answer = answer_of(content)
            if fault := fault_in(answer, address.url):
                raise fault
            if problem := check(answer):
                raise Again("malformed answer", problem)
        except Denied as denied:
            # other paths are what not every server has
            if (path == self.options.path) is self._chats and address.denies():
                hint = key_hint() if denied.is_about_key and not self._key else ""
                raise VievalError(denied.ending + hint) from denied
            self._heard()
            raise
        except Refused:
            self._heard()
            address.note_answer()
            raise
        finally:
            address.in_flight -= 1
            self.usage.seconds += time.monotonic() - started
        self._heard()
        address.note_answer()
        return answer

    def _heard(self) -> None:
        self._last_answer = time.monotonic()
        self._silent_since = None
        self._unanswered = 0
        self.usage.calls += 1

    async def _exchange(
        self, method: str, address: str, base: str, max_bytes: int, **request: Any
    ) -> bytes | bytearray:
        """The body of an answer; `base` is what messages call the server."""
        assert self._session is not None
        proxy = self._proxy(base)
        received = bytearray()
        if proxy:
            request |= proxy.request_arguments(request.get("headers", {}))
        try:
            async with self._session.request(
                method,
                address,
                allow_redirects=False,
                **request,
            ) as response:
                async for chunk in response.content.iter_any():
                    received += chunk
                    if len(received) > max_bytes:
                        break
                code = response.status
                headers = response.headers
        except (
            Exception
        ) as error:  # whatever a server can make the client raise is no end of the run
            raise self._fault(
                error,
                redacted(base),
                proxy,
            ) from None
        if len(received) > max_bytes:
            raise Refused(
                Status.API_ERROR,
                "malformed answer",
                f"the response is larger than {max_bytes >> 20} MiB",
            )
        if proxy and code == _PROXY_LOGIN:
            raise _refused_by(proxy, code)
        if code != 200:
            raise fault_of(code, received, headers, base)
        return whole_answer(received) if is_stream(received) else received

    def _fault(self, error: Exception, base: str, proxy: Proxy | None) -> Exception:
        """The meaning of a client's error for the question that was asked."""
        import aiohttp

        match error:
            case aiohttp.ClientHttpProxyError():
                return _refused_by(proxy, error.status)
            case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
                return VievalError(
                    f"base_url must be an address such as http://127.0.0.1:8000/v1, got {base}"
                )
            case aiohttp.ConnectionTimeoutError():
                reason = f"no connection{proxy_words(proxy)} within {_CONNECT:g} s"
                return Again("connection", reason)
            case aiohttp.SocketTimeoutError():
                return Again("timeout", f"no byte within {self.options.timeout:g} s")
            case TimeoutError():
                reason = f"no complete response within {self.options.longest_try:g} s"
                return Again("timeout", reason)
            case aiohttp.ClientPayloadError():
                return Again("cut answer", "the response ended early")
        return connection_fault(error, base, proxy_words(proxy))

    def _proxy(self, base: str) -> Proxy | None:
        if base not in self._proxies:
            self._proxies[base] = proxy_for(base)
        return self._proxies[base]

    async def fetch(
        self,
        address: str,
        max_bytes: int = _MOST_BYTES,
        allow_empty: bool = False,
    ) -> bytes:
        """A file that an answer names, asked for again like any answer, also where it is empty
        unless `allow_empty`.

        Raises `Refused` for a file on another host, and for one that cannot be had whole.
        """
        parsed = address_of(address)
        urls = {}
        for server_address in self._addresses:
            if parsed_url := address_of(server_address.url):
                urls[parsed_url.origin] = server_address.url
        base = urls.get(parsed.origin) if parsed else None
        if base is None:
            shortened = redacted(address)[:200]
            raise Refused(
                Status.API_ERROR,
                "another host",
                f"the server returned a file URL on another host: {shortened}",
            )
        request = Attempts(self.options.retries)
        while True:
            try:
                async with self._slots:
                    data = await self._exchange(
                        "GET",
                        address,
                        base,
                        max_bytes,
                    )
                if data or allow_empty:
                    return bytes(data)
                problem = Again("no file", "an empty response")
            except Again as again:
                problem = again
            except Refused as refused:
                raise Refused(
                    refused.status,
                    refused.kind,
                    f"{NO_FILE}: {refused.reason}",
                    refused.code,
                ) from None
            except VievalError:
                raise Refused(
                    Status.API_ERROR,
                    "no file",
                    f"{NO_FILE}: its address is not valid",
                ) from None
            request.failed(problem.limited, with_most=False)
            if request.spent:
                raise Refused(
                    Status.API_ERROR,
                    problem.kind,
                    f"{NO_FILE}: {problem.after(request.sends)}",
                )
            self.usage.retries[problem.kind] += 1
            await asyncio.sleep(
                self._wait(
                    request,
                    problem,
                    False,
                    self.options.patience,
                )
            )


def _preference(
    last: Address | None, now: float, address: Address
) -> tuple[float, bool, bool, int]:
    """A sort key of addresses, the one to choose first."""
    return (
        max(address.resting_until, now),
        address.doubtful(now),
        address is last,
        address.in_flight,
    )


def endpoint(base: str, path: str) -> str:
    """The address of a path on a server; a query of the server's address stays at the end.

    >>> endpoint("https://host/openai/deployments/judge?api-version=2024-10-21", "chat/completions")
    'https://host/openai/deployments/judge/chat/completions?api-version=2024-10-21'
    """
    address, mark, query = base.partition("?")
    if mark and "?" in path:
        mark = "&"
    return f"{address.rstrip('/')}/{path}{mark}{query}"


def proxy_words(proxy: Proxy | None) -> str:
    """The words of a message on the proxy of a call; empty without one."""
    return f" through {proxy} ({proxy.remedy})" if proxy else ""


def _refused_by(proxy: Proxy | None, code: int) -> Again | VievalError:
    """The exception where a proxy makes no connection: it may be busy, or it wants a user or
    another address.
    """
    assert proxy is not None
    if code >= 500:
        return Again("connection", f"no connection{proxy_words(proxy)} (HTTP {code})")
    if code == _PROXY_LOGIN:
        return VievalError(
            f"{proxy} requires a user and password (HTTP {code}); set them in "
            f"{proxy.variable} as http://USER:PASSWORD@..., or {proxy.remedy}"
        )
    return VievalError(
        f"{proxy} cannot connect to {proxy.host} (HTTP {code}); {proxy.remedy}"
    )


def server_options(name: str, backbone: Backbone) -> ServerOptions:
    """The options for calling a backbone's servers; VievalError if the variable that should hold
    its key is not set.
    """
    return ServerOptions(
        backbone.base_url,
        key=backbone.key(name),
        key_header=backbone.api_key_header,
        headers=backbone.sent_headers(name),
        ca_file=backbone.ca_file,
        concurrent=backbone.num_concurrent,
        requests_per_minute=backbone.requests_per_minute,
        timeout=backbone.timeout,
        retries=backbone.retries,
        patience=backbone.patience,
    )
