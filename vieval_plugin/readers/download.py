"""Downloads of many files over HTTP that never leave a broken file.

A file that is there is not fetched again, so an interrupted run is resumed by running it again. A
body appears under its name only when it is whole and its content has been checked; what cannot be
had is told, and the caller decides.
"""

from __future__ import annotations

import asyncio
import ipaddress
import random
import socket
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import responses as PHRASES
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tqdm import tqdm

from vieval_plugin.media.files import remove_unfinished, write_whole
from vieval_plugin.text.errors import VievalError, install_advice
from vieval_plugin.text.network import proxy_for, tls_context
from vieval_plugin.text.untrusted import PORTS, address_of, retry_after

if TYPE_CHECKING:
    import aiohttp

MAX_BODY = 64 * 2**20  # bytes
FIRST_WAIT, LONGEST_WAIT, LONGEST_RETRY_AFTER = 0.5, 30.0, 300.0  # seconds
SILENT_JOBS = 8
REDIRECTS = 5
DEADLINE = 20  # times the timeout, for a file as a whole


@dataclass(frozen=True)
class Download:
    """A file to fetch."""

    #: Its address.
    url: str
    #: Where it is written.
    path: Path
    #: Check of the body, in another thread; ValueError with the reason where it is not what was
    #: asked for.
    check: Callable[[bytes], None]
    #: Cheap check that spares a file that is already at `path`; files arrive only when all of them
    #: is there.
    accept: Callable[[Path], bool] = lambda path: path.stat().st_size > 0

    def is_there(self) -> bool:
        """Return whether the file need not be fetched."""
        return self.path.is_file() and self.accept(self.path)


@dataclass(frozen=True)
class Failed:
    """A file that could not be downloaded."""

    #: Its address.
    url: str
    #: Where it would have been written.
    path: Path
    #: The reason in one line.
    reason: str
    #: True where the host answered at all.
    host_answered: bool = True

    @property
    def host(self) -> str:
        """The host and port of the address."""
        return _host(self.url)


class _Failure(Exception):
    """Reason that a download failed.

    `again`: another attempt may help, after the `wait` in seconds that the server asks for;
    `host_answered`: the host lives.
    """

    def __init__(
        self,
        reason: str,
        *,
        again: bool = False,
        host_answered: bool = True,
        wait: float | None = None,
    ) -> None:
        super().__init__(" ".join(reason.split()))
        self.again = again
        self.host_answered = host_answered
        self.wait = wait


@dataclass(frozen=True)
class _Run:
    #: Connections.
    session: aiohttp.ClientSession
    #: Attempts after the first.
    retries: int
    #: Seconds without a byte after which an attempt is given up.
    timeout: float
    #: Hosts to which a redirect may lead.
    hosts: frozenset[str]
    #: Hosts of proxies, where other names must lead to public addresses; None where they need not.
    proxy_hosts: set[str] | None = None
    #: Jobs in a row that got no answer, by host.
    silent: Counter[str] = field(default_factory=Counter)


async def fetch_all(
    jobs: Sequence[Download],
    *,
    concurrency: int = 8,
    retries: int = 4,
    timeout: float = 60,
    label: str = "",
    hosts: Collection[str] = (),
    public: bool = False,
    per_host: int = 0,
) -> list[Failed]:
    """Download missing files and return failures in the order of `jobs`.

    Connection errors, timeouts, cut bodies, 429 and 5xx are tried again up to `retries` times,
    after a wait that doubles each time, or the one the server asks for (at most 300 s); any other
    answer is final, and so is a body over 64 MiB. `concurrency` is the number of requests in
    flight, `timeout` the seconds without a byte after which an attempt is given up, twenty times
    that what one may take in all. Once eight jobs in a row got no answer at all from a host, its
    other files are not tried. A redirect is followed to the hosts of the jobs and of the addresses
    in `hosts`, and to no others; with `public`, a host's name must lead to a public address;
    `per_host` bounds the requests in flight to one host, 0 for no bound of its own. With a `label`
    a bar shows how far it is. Raises VievalError without aiohttp and where a file cannot be
    written, ValueError where two jobs share a path.
    """
    if len({job.path for job in jobs}) != len(jobs):
        raise ValueError("each download must have its own path")
    remove_unfinished(job.path for job in jobs)
    todo = [job for job in jobs if not job.is_there()]
    if not todo:
        return []
    try:
        import aiohttp
    except ImportError:
        raise VievalError(
            f"downloading requires aiohttp; {install_advice('http')}"
        ) from None

    limits = aiohttp.ClientTimeout(
        total=DEADLINE * timeout,
        sock_connect=timeout,
        sock_read=timeout,
    )
    urls = [*(job.url for job in jobs), *hosts]
    allowed = frozenset(map(_host, urls)) - {""}
    # A compressed body has a Content-Length of its own, which says nothing of the file's.
    headers = {"User-Agent": "vieval", "Accept-Encoding": "identity"}
    proxy_hosts = set[str]()
    if public:
        connector = public_connector(per_host, proxy_hosts)
    else:
        connector = aiohttp.TCPConnector(
            limit_per_host=per_host, ssl=tls_context() or True
        )
    async with aiohttp.ClientSession(
        timeout=limits,
        headers=headers,
        connector=connector,
    ) as session:
        with tqdm(
            total=len(todo),
            desc=label,
            unit="file",
            disable=None if label else True,
        ) as bar:
            run = _Run(
                session,
                retries,
                timeout,
                allowed,
                proxy_hosts if public else None,
            )
            failed = await _fetch_side_by_side(
                run,
                todo,
                concurrency,
                bar,
            )
    return [failed[job.path] for job in todo if job.path in failed]


async def _fetch_side_by_side(
    run: _Run,
    jobs: Sequence[Download],
    concurrency: int,
    bar: tqdm[NoReturn],
) -> dict[Path, Failed]:
    failed: dict[Path, Failed] = {}
    queue = iter(jobs)

    async def work() -> None:
        for job in queue:
            try:
                await _fetch(run, job)
            except _Failure as failure:
                failed[job.path] = Failed(
                    job.url,
                    job.path,
                    str(failure),
                    failure.host_answered,
                )
                bar.set_postfix(failed=len(failed))
            bar.update()

    worker_count = min(concurrency, len(jobs))
    workers = [asyncio.create_task(work()) for _ in range(worker_count)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return failed


async def _fetch(run: _Run, job: Download) -> None:
    host = _host(job.url)
    if run.silent[host] >= SILENT_JOBS:
        raise _Failure(f"skipped, because {host} does not respond", host_answered=False)
    try:
        body = await _persist(run, job.url)
        run.silent[host] = 0
    except _Failure as failure:
        run.silent[host] = 0 if failure.host_answered else run.silent[host] + 1
        raise
    try:
        # a check may decode an image: in a thread it does not hold up the other downloads
        await asyncio.to_thread(job.check, body)
    except ValueError as error:
        raise _Failure(str(error)) from None
    await asyncio.to_thread(write_whole, job.path, body, "folder")


async def _persist(run: _Run, url: str) -> bytes:
    """The body of a URL after as many attempts as it takes."""
    for attempt in range(run.retries):
        try:
            return await _attempt(run, url)
        except _Failure as failure:
            if not failure.again:
                raise
            wait = failure.wait
        planned_wait = min(FIRST_WAIT * 2**attempt, LONGEST_WAIT)
        shortest = planned_wait * random.uniform(0.75, 1.25)
        await asyncio.sleep(max(wait or 0.0, shortest))
    return await _attempt(run, url)


async def _attempt(run: _Run, url: str) -> bytes:
    import aiohttp

    try:
        for _ in range(REDIRECTS + 1):
            async with run.session.get(
                url,
                allow_redirects=False,
                **await _way(run, url),
            ) as response:
                if response.status == HTTPStatus.OK:
                    return await _body(response)
                if not (
                    HTTPStatus.MULTIPLE_CHOICES
                    <= response.status
                    < HTTPStatus.BAD_REQUEST
                ):
                    raise _refusal(response.status, response.headers.get("Retry-After"))
                url = _redirected(
                    run,
                    url,
                    response.status,
                    response.headers.get("Location", ""),
                )
        raise _Failure(f"more than {REDIRECTS} redirects")
    except aiohttp.InvalidURL as error:
        raise _Failure(f"invalid URL ({type(error).__name__})") from None
    except (aiohttp.ConnectionTimeoutError, aiohttp.SocketTimeoutError):
        raise _Failure(
            f"timed out: no data for {run.timeout:g} s",
            again=True,
            host_answered=False,
        ) from None
    except TimeoutError:
        raise _Failure(
            f"timed out: incomplete after {DEADLINE * run.timeout:g} s", again=True
        ) from None
    except aiohttp.ClientPayloadError:
        raise _Failure("incomplete: the connection closed early", again=True) from None
    except (aiohttp.ClientError, OSError) as error:
        raise _Failure(
            f"no connection: {str(error) or type(error).__name__}",
            again=True,
            host_answered=False,
        ) from None


async def _way(run: _Run, url: str) -> dict[str, Any]:
    """The proxy of a request, if any; a name that leads to private addresses here has none."""
    proxy = proxy_for(url)
    if proxy is None:
        return {}
    if run.proxy_hosts is not None:
        address = address_of(proxy.url)
        if address is not None:
            run.proxy_hosts.add(address.host)
        loop = asyncio.get_running_loop()
        with suppress(OSError):  # names that only the proxy knows
            addresses = await loop.getaddrinfo(proxy.host, None)
            if _ip_address(proxy.host) is None and not any(
                is_public(str(address_info[0])) for *_, address_info in addresses
            ):
                raise _private(proxy.host)
    return proxy.request_arguments({})


def _private(host: str) -> _Failure:
    return _Failure(
        f"{host} resolves to a private address; if this is intended, use the IP address"
    )


def _redirected(
    run: _Run,
    url: str,
    status: int,
    location: str,
) -> str:
    """Target of a redirect, if that is a host that was named; what it asks for there is in no
    message.
    """
    target = address_of(location, url)
    if (
        not location
        or target is None
        or target.scheme not in (("https",) if url.startswith("https:") else PORTS)
    ):
        raise _Failure(f"{status} redirect to an invalid URL")
    host = target.server
    if host not in run.hosts:
        host_text = host[:200] if host.isprintable() else "..."
        raise _Failure(
            f"{status} redirect to another host ({host_text}), which is not followed"
        )
    return target.url


def _host(url: str) -> str:
    """The host and port of an address, without user and password; empty where it has none."""
    address = address_of(url)
    return address.server if address else ""


def _refusal(status: int, header: str | None) -> _Failure:
    reason = f"{status} {PHRASES.get(status, 'unknown status').lower()}"
    if (
        status != HTTPStatus.TOO_MANY_REQUESTS
        and status < HTTPStatus.INTERNAL_SERVER_ERROR
    ):
        return _Failure(reason)
    wait = retry_after(header)
    if wait is not None and wait > LONGEST_RETRY_AFTER:
        return _Failure(f"{reason}; try again in {wait:.0f} s")
    return _Failure(reason, again=True, wait=wait)


async def _body(response: aiohttp.ClientResponse) -> bytes:
    expected = response.content_length
    too_large = _Failure(f"larger than {MAX_BODY // 2**20} MiB")
    if expected is not None and expected > MAX_BODY:
        raise too_large
    body = bytearray()
    async for chunk in response.content.iter_chunked(2**16):
        body += chunk
        if len(body) > MAX_BODY:
            raise too_large
    if expected not in (None, len(body)) and "Content-Encoding" not in response.headers:
        raise _Failure(f"incomplete: {len(body)} of {expected} bytes", again=True)
    return bytes(body)


def public_connector(
    per_host: int = 0, proxy_hosts: Collection[str] = ()
) -> aiohttp.TCPConnector:
    """Connections to the public addresses of a name, and to proxies; an address in place of a
    name is taken as it is.
    """
    import aiohttp

    class Public(aiohttp.ThreadedResolver):
        async def resolve(
            self,
            host: str,
            port: int = 0,
            family: socket.AddressFamily = socket.AF_UNSPEC,
        ) -> list[Any]:
            addresses = await super().resolve(host, port, family)
            public = [
                address
                for address in addresses
                if is_public(address["host"]) or host in proxy_hosts
            ]
            if not public:
                raise _private(host)
            return public

    return aiohttp.TCPConnector(
        resolver=Public(),
        limit_per_host=per_host,
        ssl=tls_context() or True,
    )


def is_private(host: str) -> bool:
    """Return whether a host is an IP address outside the public network.

    >>> is_private("127.0.0.1"), is_private("8.8.8.8"), is_private("localhost")
    (True, False, False)
    """
    return _ip_address(host) is not None and not is_public(host)


def is_public(address: str) -> bool:
    """Return whether an IP address is one of the public network.

    >>> is_public("192.168.0.1"), is_public("fe80::1%eth0"), is_public("8.8.8.8")
    (False, False, True)
    """
    ip = _ip_address(address)
    return (
        ip is not None
        and (getattr(ip, "ipv4_mapped", None) or ip).is_global
        and not ip.is_multicast
    )


def _ip_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
