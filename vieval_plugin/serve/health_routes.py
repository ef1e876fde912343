"""Routes that say how the server is: `/live` for the process, `/health` for the judges."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from vieval_plugin.rewards.reward import Reward
from vieval_plugin.serve.service import Service

_WITHIN = 4.0
"""Seconds until `/health` answers, as Flow-Factory waits 5."""


def add(app: web.Application, service: Service) -> None:
    """Add `/live` and `/health`, the latter also below the name of each reward."""

    async def live(request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    app.router.add_get("/live", live)
    _add_health(app, service, "", tuple(service.rewards.values()))
    for reward in service.rewards.values():
        _add_health(app, service, f"/{reward.name}", (reward,))


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


VALUE = "value"
"""The one number of a reward, where a protocol names it."""
