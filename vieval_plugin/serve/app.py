"""The application of aiohttp: routes of protocols, health, metrics and the page, and what is the
same for each request.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from markupsafe import Markup

from vieval_plugin.backends.concurrency import DaemonPool
from vieval_plugin.rewards.reward import Reward
from vieval_plugin.serve.connections import connection_of
from vieval_plugin.serve.metrics import CONTENT_TYPE
from vieval_plugin.serve.options import ServeOptions
from vieval_plugin.serve.protocols import flow_factory, judge_v1, unirl
from vieval_plugin.serve.protocols.protocol import (
    VALUE,
    Protocol,
    Reading,
    RequestRefused,
    Values,
)
from vieval_plugin.serve.requests import Bodies
from vieval_plugin.serve.security import Guard
from vieval_plugin.serve.service import Service
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import console
from vieval_plugin.text.html_page import policy, style_sheet, template
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.wording import plural

PROTOCOLS = (
    judge_v1.PROTOCOL,
    flow_factory.GROUPWISE,
    flow_factory.POINTWISE,
    unirl.PROTOCOL,
)
#: Seconds until `/health` answers, as Flow-Factory waits 5.
HEALTH_TIMEOUT = 4.0
_log = logging.getLogger("vieval.serve")
_READERS = 2
_HOME = Path(__file__).parent


@dataclass
class Front:
    """State that requests share."""

    #: Judgements.
    service: Service
    #: Who may call.
    guard: Guard
    #: Options of the server.
    options: ServeOptions
    #: Bodies of requests in memory.
    bodies: Bodies
    #: Set at the shutdown: requests that come from then on are refused.
    stopping: bool = False
    #: Requests that are open.
    requests: int = 0
    #: Number of open connections.
    connections: Callable[[], int] = lambda: 0
    #: Threads that read bodies and write answers.
    pool: ThreadPoolExecutor = field(
        default_factory=lambda: DaemonPool(_READERS, "bodies")
    )


def _add_reward_routes(
    app: web.Application,
    front: Front,
    prefix: str,
    rewards: tuple[Reward, ...],
) -> None:
    for protocol in PROTOCOLS:
        at_root = protocol.all_rewards or len(rewards) == 1
        if (prefix and not protocol.all_rewards) or (at_root and not prefix):
            app.router.add_post(
                f"{prefix}{protocol.path}",
                _judging(front, protocol, rewards),
                expect_handler=_answer_expect,
            )
    # clients ask for health beside the address that they post to: below each reward and its
    # group, and for UniRL
    for path in (f"{prefix}/health", f"{prefix}/group/health"):
        app.router.add_get(path, _health(front.service, rewards))


def application(front: Front) -> web.Application:
    """The application, with a route of each protocol for each reward below its name, and at the
    root for a single one.
    """
    app = web.Application(middlewares=[_around_requests(front)])
    rewards = tuple(front.service.rewards.values())
    _add_reward_routes(app, front, "", rewards)
    for reward in rewards:
        _add_reward_routes(
            app,
            front,
            f"/{reward.name}",
            (reward,),
        )
    app.router.add_get("/unirl/health", _health(front.service, rewards))

    async def live(request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def reward_names(request: web.Request) -> web.Response:
        return web.json_response(health_document(rewards, ""))

    counts = front.service.metrics
    jobs = front.service.loop
    counts.add_level("jobs_waiting", "Waiting judgements", lambda: jobs.waiting)
    counts.add_level("jobs_under_way", "Running judgements", lambda: jobs.under_way)
    counts.add_level("requests_open", "Open requests", lambda: front.requests)
    counts.add_level(
        "connections_open",
        "Open connections",
        lambda: front.connections(),
    )

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(body=counts.page(), headers={"Content-Type": CONTENT_TYPE})

    app.router.add_get("/live", live)
    app.router.add_get("/unirl/rewards", reward_names)
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/", page(rewards))
    return app


def page(rewards: Sequence[Reward]) -> Handler:
    """The page at `/` with a form to try the rewards, which loads nothing from elsewhere and
    asks this server alone.
    """
    script = (_HOME / "page.js").read_text(encoding="utf-8")
    style = style_sheet(_HOME / "page.css")
    body = template(_HOME / "page.html.jinja").render(
        rewards=rewards,
        script=Markup(script),
        style=Markup(style),
    )
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": (
            f"{policy(style, script)}; connect-src 'self'; frame-ancestors 'none'"
        ),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }

    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body.encode(errors="replace"), headers=headers)

    return handle


def health_document(rewards: Sequence[Reward], fault: str) -> dict[str, object]:
    """The answer of `/health`: the rewards and the numbers that each gives, or why there are
    none.
    """
    if fault:
        return {"status": "unavailable", "reason": fault, "rewards": {}}
    return {"status": "ok", "rewards": {reward.name: [VALUE] for reward in rewards}}


def _health(service: Service, rewards: Sequence[Reward]) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        fault = await service.fault(rewards, HEALTH_TIMEOUT)
        return web.json_response(
            health_document(rewards, fault),
            status=503 if fault else 200,
        )

    return handle


def _judging(front: Front, protocol: Protocol, rewards: tuple[Reward, ...]) -> Handler:
    """The handler of a protocol's requests for some rewards."""
    bounds = front.options.bounds
    reading = Reading(front.options.conditions, bounds.samples, bounds.pixels)

    async def handle(request: web.Request) -> web.StreamResponse:
        start = time.monotonic()
        if front.stopping:
            raise RequestRefused(
                503,
                "the server is shutting down; retry later",
                retry_after=5,
            )
        if front.requests > bounds.waiting:
            raise RequestRefused(
                429,
                "too many requests are waiting; retry later",
                retry_after=2,
            )
        with front.bodies.reserved() as reserve:
            body = await front.bodies.read(request, reserve)
            loop = asyncio.get_running_loop()
            try:
                entries = await loop.run_in_executor(
                    front.pool,
                    protocol.read,
                    body,
                    reading,
                )
            except VievalError as error:
                raise RequestRefused(400, str(error)) from None
            del body
            values = await front.service.values(
                entries,
                rewards,
                protocol.deadline - (time.monotonic() - start),
            )
            _log_request(protocol, values, time.monotonic() - start)
            return await loop.run_in_executor(
                front.pool,
                protocol.write,
                entries,
                values,
            )

    return handle


def _protocol_at(path: str) -> Protocol:
    """The protocol whose form an answer on a path has, also where nothing is there; ours where
    none is meant.
    """
    protocols = (protocol for protocol in PROTOCOLS if path.endswith(protocol.path))
    return next(protocols, judge_v1.PROTOCOL)


async def _answer_expect(request: web.Request) -> web.StreamResponse | None:
    """Answer an `Expect` header, which aiohttp would do in a form that a protocol's clients
    cannot read.
    """
    expectation = request.headers["Expect"]
    if expectation.lower() != "100-continue":
        return _protocol_at(request.path).refuse(
            f"Expect: {expectation[:100]} is not supported; send 100-continue or omit it",
            417,
        )
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    request.writer.output_size = 0  # which is that of the answer alone
    return None


def _addresses(protocol: Protocol, rewards: Iterable[str]) -> str:
    """The addresses of a protocol, a reward each unless it has one for all."""
    prefixes = [""] if protocol.all_rewards else [f"/{name}" for name in rewards]
    return ", ".join(f"POST {prefix}{protocol.path}" for prefix in prefixes)


def _around_requests(front: Front) -> Middleware:
    """The middleware around everything: who may call, and one line for whatever goes wrong, in
    the protocol's own form.
    """

    @web.middleware
    async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
        start = time.monotonic()
        protocol = _protocol_at(request.path)
        connection = connection_of(request)
        front.requests += 1
        connection.begin_request()
        response: web.StreamResponse | None = None
        try:
            if request.path != "/live" and (
                refusal := front.guard.refusal(request.headers, request.raw_path)
            ):
                raise refusal
            response = await handler(request)
        except RequestRefused as refused:
            response = _refusal(protocol, refused)
        except web.HTTPException as error:
            addresses = _addresses(protocol, front.service.rewards)
            reason = f"{error.reason}: {request.method} {request.path[:100]}; use {addresses}"
            response = protocol.refuse(reason, error.status)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception as error:
            _log.exception("internal error")
            response = protocol.refuse(
                f"internal server error: {type(error).__name__}",
                500,
            )
        finally:
            connection.end_request()
            front.requests -= 1
            metrics = front.service.metrics
            code = str(response.status) if response else "gone"
            name = "get"
            if request.method == "POST":
                name = protocol.name
                metrics.note_duration(time.monotonic() - start)
            metrics.requests.labels(name, code).inc()
        return response

    return around


def _refusal(protocol: Protocol, refused: RequestRefused) -> web.Response:
    response = protocol.refuse(refused.reason, refused.status)
    if refused.retry_after is not None:
        response.headers["Retry-After"] = str(refused.retry_after)
    if refused.status == 401:
        response.headers["WWW-Authenticate"] = 'Basic realm="vieval"'
    if refused.status in (408, 413, 415):  # the rest of the body is not read
        response.force_close()
    return response


def _log_request(protocol: Protocol, values: Values, seconds: float) -> None:
    """Log a request: how many samples, how many without a reward and in which way, and never
    their texts.
    """
    failed = [
        value
        for by_name in values
        for value in by_name.values()
        if value.value is None or value.imputed
    ]
    if failed:
        statuses = ", ".join(sorted({str(value.status) for value in failed}))
        line = (
            f"{protocol.name}: {plural(len(values), 'sample')} in {seconds:.1f} s, {len(failed)} "
            f"without a reward ({statuses})"
        )
        _log.info("%s", console(redacted(line)))
