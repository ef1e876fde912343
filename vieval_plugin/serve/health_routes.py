"""Routes that say how the server is: `/live` for the process, `/health` for the judges.

Clients ask for health beside the address that they post to, and so it is there: below each reward, and for UniRL.
"""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from vieval_plugin.rewards.reward import Reward
from vieval_plugin.serve.protocols.protocol import VALUE
from vieval_plugin.serve.service import Service

_WITHIN = 4.0
"""Seconds until `/health` answers, as Flow-Factory waits 5."""


def add(app: web.Application, service: Service) -> None:
    """Add `/live`, `/health` also below each reward and its group, and what UniRL asks before it begins."""

    async def live(request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def rewards(request: web.Request) -> web.Response:
        return web.json_response(health_document(every, ""))

    every = tuple(service.rewards.values())
    app.router.add_get("/live", live)
    app.router.add_get("/unirl/rewards", rewards)
    for prefix in ("", "/group", "/unirl"):
        _add_health(app, service, prefix, every)
    for reward in every:
        _add_health(app, service, f"/{reward.name}", (reward,))
        _add_health(app, service, f"/{reward.name}/group", (reward,))


def _add_health(app: web.Application, service: Service, prefix: str, rewards: Sequence[Reward]) -> None:
    async def health(request: web.Request) -> web.Response:
        fault = await service.fault(rewards, _WITHIN)
        return web.json_response(health_document(rewards, fault), status=503 if fault else 200)

    app.router.add_get(f"{prefix}/health", health)


def health_document(rewards: Sequence[Reward], fault: str) -> dict[str, object]:
    """The answer of `/health`: the rewards and the numbers that each gives, or why there are none."""
    if fault:
        return {"status": "unavailable", "reason": fault, "rewards": {}}
    return {"status": "ok", "rewards": {reward.name: [VALUE] for reward in rewards}}
