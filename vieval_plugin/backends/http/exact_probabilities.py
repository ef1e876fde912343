"""Exact probabilities of named tokens where a server can tell them (vLLM), beyond the likeliest that it lists.

A request that allows one token only still reports that token's raw log-probability, and reads the prefix cache. vLLM's
`logprob_token_ids` would need one request for all tokens, but spoils the listed log-probabilities of other requests in
its batch (seen with vLLM 0.32), those of other users of the server among them.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from vieval_plugin.backends.http.responses import Refused
from vieval_plugin.backends.reply_checks import log_probability
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Probabilities

Post = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]

# the fourth decimal: an interval narrower than this is left as it is, closing it costs a request for every variant
CLOSE_ENOUGH = 1e-4


class TokenIds:
    """The token ids of answers, asked of the server once each; empty where it has no /tokenize."""

    def __init__(self, model: str, post: Post) -> None:
        self._model, self._post = model, post
        self._known: dict[str, asyncio.Task[list[int] | None]] = {}

    async def of(self, text: str) -> list[int] | None:
        """The ids of a text's tokens, or None where the server does not tell."""
        if text not in self._known:
            self._known[text] = asyncio.ensure_future(self._ask(text))
        return await asyncio.shield(self._known[text])

    async def _ask(self, text: str) -> list[int] | None:
        body = {"model": self._model, "prompt": text, "add_special_tokens": False}
        try:
            answer = await self._post("../tokenize", body)
        except (Refused, VievalError):
            return None
        tokens = answer.get("tokens")
        return tokens if isinstance(tokens, list) and all(type(token) is int for token in tokens) else None

    async def close(self) -> None:
        """Ask nothing more."""
        for task in self._known.values():
            task.cancel()
        await asyncio.gather(*self._known.values(), return_exceptions=True)


async def closed(
    bounds: Probabilities, continuations: tuple[str, ...], ids: TokenIds, body: Mapping[str, Any], post: Post
) -> Probabilities:
    """The same bounds with those closed that the server can close; `body` is the request that listed the likeliest.

    A continuation of several tokens is not a first token: its probability is 0. A value above the bound it should lie
    within shows a server that renormalises, and is not used; nor is one that is no log-probability.
    """
    if sum(bounds.high) - sum(bounds.low) <= CLOSE_ENOUGH:
        return bounds
    tokens = await asyncio.gather(*(ids.of(continuation) for continuation in continuations))
    if any(of_one is None for of_one in tokens):
        return bounds
    found = dict(enumerate(zip(bounds.low, bounds.high, strict=True)))
    # to some tokenizers "Yes" and " Yes" are one token, which a sum over both must count once
    by_token: dict[tuple[int, ...], list[int]] = {}
    for place, of_one in enumerate(tokens):
        by_token.setdefault(tuple(of_one or ()), []).append(place)
    for token, places in by_token.items():
        known = next((p for p in places if found[p][0] == found[p][1] and found[p][0] > 0), places[0])
        found |= dict.fromkeys((p for p in places if p != known), (0.0, 0.0))
        if found[known][0] != found[known][1]:
            found[known] = await _close(*found[known], token, body, post)
    return Probabilities(*zip(*(found[place] for place in range(len(continuations))), strict=True))


async def _close(
    low: float, high: float, token: tuple[int, ...], body: Mapping[str, Any], post: Post
) -> tuple[float, float]:
    if len(token) != 1:
        return 0.0, 0.0
    try:
        answer = await post("chat/completions", {**body, "allowed_token_ids": list(token), "top_logprobs": 0})
        value = math.exp(log_probability(answer["choices"][0]["logprobs"]["content"][0]["logprob"]))
    except (Refused, KeyError, IndexError, TypeError, ValueError):
        return low, high
    return (value, value) if value <= high * (1 + 1e-6) else (low, high)
