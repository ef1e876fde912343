"""The page at `/`: the rewards of the server, and a form to try them on an image."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from aiohttp import web
from markupsafe import Markup

from vieval_plugin.rewards.reward import Reward
from vieval_plugin.text.html_page import policy, style_sheet, template

_HOME = Path(__file__).parent


def add(app: web.Application, rewards: Iterable[Reward]) -> None:
    """Add the page, which loads nothing from elsewhere and asks this server alone."""
    script, style = (_HOME / "page.js").read_text(encoding="utf-8"), style_sheet(_HOME / "page.css")
    known = list(rewards)
    body = template(_HOME / "page.html.jinja").render(
        rewards=[{"name": reward.name, "terms": terms_in_words(reward)} for reward in known],
        toys=toys_among(known),
        script=Markup(script),
        style=Markup(style),
    )
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": f"{policy(style, script)}; connect-src 'self'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }

    async def page(request: web.Request) -> web.Response:
        return web.Response(body=body.encode(errors="replace"), headers=headers)

    app.router.add_get("/", page)


def terms_in_words(reward: Reward) -> str:
    """The judges of a reward, with their aspects and weights."""
    return " + ".join(
        f"{'' if term.weight == 1 else f'{term.weight:g} * '}{term.judge.spec.name}{f' {term.aspect}' if term.aspect else ''}"
        for term in reward.terms
    )


def toys_among(rewards: Iterable[Reward]) -> list[str]:
    """The titles of judges that were trained on their own drawings only, so that nobody trains on what they say."""
    specs = [term.judge.spec for reward in rewards for term in reward.terms]
    return sorted({spec.title for spec in specs if spec.training_benchmarks})
