"""The application of aiohttp: routes of all protocols and rewards, and what is the same for each request."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from vieval_plugin.backends.concurrency import DaemonPool
from vieval_plugin.errors import VievalError
from vieval_plugin.rewards.reward import Reward
from vieval_plugin.serve import health_routes, page
from vieval_plugin.serve.connections import noted
from vieval_plugin.serve.metrics import CONTENT_TYPE
from vieval_plugin.serve.options import ServeOptions
from vieval_plugin.serve.protocols import flow_factory, judge_v1, unirl
from vieval_plugin.serve.protocols.protocol import HttpAnswer, Protocol, Reading, RequestEntry, Values
from vieval_plugin.serve.requests import Bodies, RequestRefused
from vieval_plugin.serve.security import Guard
from vieval_plugin.serve.service import Service, gauges
from vieval_plugin.text.escaping import console
from vieval_plugin.text.redaction import redacted

PROTOCOLS = (judge_v1.PROTOCOL, flow_factory.GROUPWISE, flow_factory.POINTWISE, unirl.PROTOCOL)
_log = logging.getLogger("vieval.serve")
_READERS = 2


@dataclass
class Front:
    """All that requests have to do with: the service, who may call, and the requests that are open."""

    service: Service
    guard: Guard
    options: ServeOptions
    bodies: Bodies
    stopping: bool = False
    requests: int = 0
    connections: Callable[[], int] = lambda: 0
    pool: ThreadPoolExecutor = field(default_factory=lambda: DaemonPool(_READERS, "bodies"))


def application(front: Front) -> web.Application:
    """The application, with a route of each protocol for each reward below its name, and at the root for a single one."""
    app = web.Application(middlewares=[_outermost(front)])
    rewards = tuple(front.service.rewards.values())
    for protocol in PROTOCOLS:
        places = [("", rewards)] if protocol.all_rewards else [(f"/{reward.name}", (reward,)) for reward in rewards]
        if len(rewards) == 1 and not protocol.all_rewards:
            places.append(("", rewards))
        for prefix, own in places:
            handler, expecting = _judging(front, protocol, own), _expecting(protocol)
            app.router.add_post(f"{prefix}{protocol.path}", handler, expect_handler=expecting)

    async def metrics(request: web.Request) -> web.Response:
        levels = gauges(front.service, front.connections(), front.requests)
        return web.Response(
            text=front.service.metrics.text(front.service.progress.usage, levels),
            headers={"Content-Type": CONTENT_TYPE},
        )

    app.router.add_get("/metrics", metrics)
    health_routes.add(app, front.service)
    page.add(app, rewards)
    return app


def _judging(front: Front, protocol: Protocol, rewards: tuple[Reward, ...]) -> Handler:
    """The handler of a protocol's requests for some rewards."""
    reading = Reading(front.options.conditions, front.options.bounds.samples, front.options.bounds.pixels)
    deadline = front.options.bounds.deadline or protocol.deadline

    async def handle(request: web.Request) -> web.StreamResponse:
        begun = time.monotonic()
        if front.stopping:
            raise RequestRefused(503, "the server is stopping; come back when it is up again", retry_after=5)
        if front.requests > front.options.bounds.waiting:
            raise RequestRefused(429, "as many requests wait as may; come back", retry_after=2)
        with front.bodies.reserved() as reserve:
            body = await front.bodies.read(request, reserve)
            loop = asyncio.get_running_loop()
            try:
                entries = await loop.run_in_executor(front.pool, protocol.read, body, reading)
            except VievalError as error:
                raise RequestRefused(400, str(error)) from None
            del body
            values = await front.service.values(entries, rewards, deadline - (time.monotonic() - begun))
            _tell(front.options, protocol, entries, values, time.monotonic() - begun)
            return _response(await loop.run_in_executor(front.pool, protocol.write, entries, values))

    return handle


def _protocol_at(path: str) -> Protocol:
    """The protocol whose form an answer on a path has, also where nothing is there; ours where none is meant."""
    return next((protocol for protocol in PROTOCOLS if path.endswith(protocol.path)), judge_v1.PROTOCOL)


def _expecting(protocol: Protocol) -> Callable[[web.Request], Awaitable[web.StreamResponse | None]]:
    """The handler of `Expect` headers, which aiohttp would answer in a form that a protocol's clients cannot read."""

    async def handle(request: web.Request) -> web.StreamResponse | None:
        expected = request.headers["Expect"]
        if expected.lower() != "100-continue":
            return _response(protocol.refuse(f"Expect: {expected[:100]} is not met; send 100-continue or none", 417))
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # which is that of the answer alone
        return None

    return handle


def _outermost(front: Front) -> Middleware:
    """The middleware around everything: who may call, and one line for whatever goes wrong, in the protocol's own form."""

    @web.middleware
    async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
        begun, protocol = time.monotonic(), _protocol_at(request.path)
        front.requests += 1
        noted(request, begun=True)
        response: web.StreamResponse | None = None
        try:
            response = await _heeded(front, request, handler)
        except RequestRefused as refused:
            response = _response(protocol.refuse(refused.reason, refused.status))
            _add_headers(response, refused)
        except web.HTTPException as error:
            response = _response(protocol.refuse(_no_route(front, protocol, request, error), error.status))
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception as error:
            _log.exception("a request broke")
            response = _response(protocol.refuse(f"the server broke on this request: {type(error).__name__}", 500))
        finally:
            noted(request, begun=False)
            front.requests -= 1
            counted = protocol.name if request.method == "POST" else "get"
            front.service.metrics.requests[counted, str(response.status) if response else "gone"] += 1
            if request.method == "POST":
                front.service.metrics.seconds.observe(time.monotonic() - begun)
        return response

    return around


def _no_route(front: Front, protocol: Protocol, request: web.Request, error: web.HTTPException) -> str:
    """One line on an address at which nothing is, with those at which there is something."""
    prefixes = [""] if protocol.all_rewards else [f"/{name}" for name in front.service.rewards]
    known = ", ".join(f"POST {prefix}{protocol.path}" for prefix in prefixes)
    return f"{error.reason}: {request.method} {request.path[:100]}; there is {known}"


async def _heeded(front: Front, request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.path != "/live" and (refusal := front.guard.refusal(request.headers, request.raw_path)):
        raise RequestRefused(refusal.status, refusal.reason)
    return await handler(request)


def _add_headers(response: web.StreamResponse, refused: RequestRefused) -> None:
    if refused.retry_after is not None:
        response.headers["Retry-After"] = str(refused.retry_after)
    if refused.status == 401:
        response.headers["WWW-Authenticate"] = 'Basic realm="vieval"'
    if refused.status in (408, 413, 415):  # the rest of the body is not read
        response.force_close()


def _response(answer: HttpAnswer) -> web.Response:
    return web.Response(
        body=answer.body,
        status=answer.status,
        headers={"Content-Type": answer.content_type, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"},
    )


def _tell(
    options: ServeOptions, protocol: Protocol, entries: Sequence[RequestEntry], values: Values, seconds: float
) -> None:
    """Log a request: how many samples, how many without a reward and in which way, and only if asked for their texts."""
    failed = [value for by_name in values for value in by_name.values() if value.value is None or value.imputed]
    if not failed and not options.log_prompts:
        return
    statuses = ", ".join(sorted({str(value.status) for value in failed}))
    line = f"{protocol.name}: {len(entries)} samples in {seconds:.1f} s, {len(failed)} without a reward ({statuses})"
    if options.log_prompts:
        texts = [dict(getattr(entry.judged, "texts", {})) for entry in entries[:3]]
        line = f"{line}; {[value.reason for value in failed[:3]]}; {texts}"
    _log.info("%s", console(redacted(line)))
