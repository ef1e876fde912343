"""The backbones of a run: the models behind servers that the options name, each opened when it
is first asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace

from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.batches import BatchOptions
from vieval_plugin.backends.http.openai import OpenAIBackend, Sampling
from vieval_plugin.backends.http.server import Usage, server_options
from vieval_plugin.config import Backbone
from vieval_plugin.judges.protocol import Reply
from vieval_plugin.run.router import Question
from vieval_plugin.text.errors import VievalError

JUDGE = "judge"


class Backbones:
    """Answers questions by the backbone that each names; use as `async with`."""

    def __init__(
        self,
        by_name: Mapping[str, Backbone],
        store: Store | None,
        usage: Usage,
        seed: int = 0,
        batch: BatchOptions | None = None,
    ) -> None:
        self._by_name, self._store, self._usage, self._seed, self._batch = (
            by_name,
            store,
            usage,
            seed,
            batch,
        )
        self._stack = AsyncExitStack()
        self._opened: dict[str, OpenAIBackend] = {}
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Backbones:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def answer(self, ask: Question, repeat: int = 0) -> Reply:
        """The reply of the backbone that the ask names, or of `judge` where no such one is
        configured.
        """
        return await (await self._open(ask)).answer(ask, repeat)

    async def look_up(self, ask: Question) -> tuple[str, Reply | None] | None:
        """The key of a question and the reply that is stored, as `OpenAIBackend.look_up`;
        nothing is asked.
        """
        return await (await self._open(ask)).look_up(ask)

    async def settle(self) -> None:
        """Have all questions answered that wait for a batch."""
        for backend in self._opened.values():
            if backend.batches:
                await backend.batches.settle()

    async def _open(self, ask: Question) -> OpenAIBackend:
        name = ask.backbone if ask.backbone in self._by_name else JUDGE
        if name not in self._by_name:
            raise VievalError(
                f"the judge asks a model and no backbone {ask.backbone!r} is configured; name "
                "one with --model and --base-url "
                "(vieval score), model= and base_url= (Judge), or under backbones in the options"
            )
        if name not in self._opened:
            async with self._opening:
                if name not in self._opened:
                    backend = await self._stack.enter_async_context(self._backend(name))
                    if backend.batches and self._batch and self._batch.sends:
                        await backend.batches.settle()  # what an earlier run left
                    self._opened[name] = backend
        return self._opened[name]

    def _backend(self, name: str) -> OpenAIBackend:
        batch = (
            replace(self._batch, folder=self._batch.folder / name)
            if self._batch
            else None
        )
        return backend_of(
            name, self._by_name[name], self._usage, self._store, self._seed, batch
        )


def backend_of(
    name: str,
    backbone: Backbone,
    usage: Usage,
    store: Store | None = None,
    seed: int = 0,
    batch: BatchOptions | None = None,
) -> OpenAIBackend:
    """The backend of a backbone, which a run or a check opens."""
    return OpenAIBackend(
        backbone.model,
        server_options(name, backbone),
        usage=usage,
        sampling=Sampling(
            backbone.temperature, backbone.max_tokens, dict(backbone.extra)
        ),
        store=store,
        max_pixels=backbone.max_pixels,
        seed=seed,
        price=backbone.price_of,
        batch=batch,
        sight_check=backbone.sight_check,
    )
