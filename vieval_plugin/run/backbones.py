"""Backbones of a run: models behind servers, each opened on its first question."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.batches import Batches, BatchOptions
from vieval_plugin.backends.http.openai import OpenAIBackend, Sampling
from vieval_plugin.backends.http.server import Usage, server_options
from vieval_plugin.config import Backbone, Config
from vieval_plugin.judges.protocol import Reply
from vieval_plugin.run.router import Question
from vieval_plugin.text.errors import (
    BASE_URL_ENV_VAR,
    MODEL_ENV_VAR,
    OPENAI_BASE_URL_ENV_VAR,
    VievalError,
    docs_url,
)
from vieval_plugin.text.redaction import redacted

JUDGE = "judge"


class Backbones:
    """Answers each question with its backbone; use as `async with`."""

    def __init__(
        self,
        by_name: Mapping[str, Backbone],
        store: Store | None,
        usage: Usage,
        seed: int = 0,
        batch: BatchOptions | None = None,
    ) -> None:
        self._by_name = by_name
        self._store = store
        self._usage = usage
        self._seed = seed
        self._batch = batch
        self._stack = AsyncExitStack()
        self._opened: dict[str, OpenAIBackend] = {}
        self._opening = asyncio.Lock()
        self._unsettled: VievalError | None = None

    async def __aenter__(self) -> Backbones:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def answer(self, ask: Question, repeat: int = 0) -> Reply:
        """The reply of the ask's backbone, or of `judge` if that is not configured."""
        return await (await self._open(ask)).answer(ask, repeat)

    async def look_up(self, ask: Question) -> tuple[str, Reply | None] | None:
        """The key of a question and its cached reply, as `OpenAIBackend.look_up`; does
        not ask the model.
        """
        return await (await self._open(ask)).look_up(ask)

    async def settle(self) -> None:
        """Answer all questions that wait for a batch."""
        for backend in self._opened.values():
            if backend.batches:
                await backend.batches.settle()

    async def _open(self, ask: Question) -> OpenAIBackend:
        name = ask.backbone if ask.backbone in self._by_name else JUDGE
        if name not in self._by_name:
            raise VievalError(
                f"the judge asks a model, but backbone {ask.backbone!r} is not "
                "configured; pass --model and --base-url (vieval score) or "
                "model= and base_url= (Judge), or set it under backbones in the "
                "options"
            )
        if name not in self._opened:
            async with self._opening:
                # others that wait would find the file of batches locked, a second each
                if self._unsettled:
                    raise self._unsettled
                if name not in self._opened:
                    backend = await self._stack.enter_async_context(self._backend(name))
                    if backend.batches and self._batch and self._batch.sends:
                        await self._settle(backend.batches)
                    self._opened[name] = backend
        return self._opened[name]

    async def _settle(self, batches: Batches) -> None:
        """Take what an earlier run left; an error ends the run."""
        try:
            await batches.settle()
        except VievalError as error:
            self._unsettled = error
            raise

    def _backend(self, name: str) -> OpenAIBackend:
        return backend_of(
            name,
            self._by_name[name],
            self._usage,
            self._store,
            self._seed,
            self._batch and replace(self._batch, folder=self._batch.folder / name),
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
            backbone.temperature,
            backbone.max_tokens,
            dict(backbone.extra),
        ),
        store=store,
        max_pixels=backbone.max_pixels,
        seed=seed,
        price=backbone.price_of,
        batch=batch,
        sight_check=backbone.sight_check,
    )


def named_backbone(
    fields: Mapping[str, Any],
    current: Config,
    tell: Callable[[str], None],
    in_files: bool = False,
) -> Backbone | None:
    """The backbone set by arguments and the environment, or that of the options updated
    by arguments; None if none is set.

    Args:
        fields: those of a backbone that are given.
        current: the options in force.
        tell: called with a line on the server, where the environment of other clients names it.
        in_files: batches are files, so that no server is needed.

    Raises:
        VievalError: a model without an address, or a field that it cannot have.
    """
    settings = dict(fields)
    model = settings.pop("model", None)
    base_url = settings.pop("base_url", None)
    if JUDGE not in current.backbones:
        model = model or os.environ.get(MODEL_ENV_VAR)
        base_url = base_url or _addresses_of_environment(model, tell)
    if model and in_files:
        base_url = base_url or ["http://batches.invalid/v1"]
    if bool(model) != bool(base_url):
        flag = "--base-url"
        missing = "--model"
        variable = MODEL_ENV_VAR
        if model:
            flag, missing, variable = missing, flag, BASE_URL_ENV_VAR
        raise VievalError(
            f"{flag} is set but {missing} is missing; pass {missing}, set "
            f"{variable}, or omit both and set backbones.{JUDGE} in the "
            "options"
        )
    if model:
        settings |= {"model": model, "base_url": base_url}
    elif not settings or JUDGE not in current.backbones:
        return None
    else:
        settings = {
            **current.backbones[JUDGE].model_dump(exclude_unset=True),
            **settings,
        }
    try:
        return Backbone.model_validate(settings)
    except ValidationError as error:
        first = error.errors()[0]
        flag = str(first["loc"][0]).replace("_", "-")
        raise VievalError(f"--{flag}: {first['msg']}") from None


def _addresses_of_environment(
    model: str | None, tell: Callable[[str], None]
) -> list[str]:
    """The server address from the environment; `OPENAI_BASE_URL` applies only with a
    model.
    """
    if address := os.environ.get(BASE_URL_ENV_VAR):
        return [address]
    address = os.environ.get(OPENAI_BASE_URL_ENV_VAR)
    if not (model and address):
        return []
    tell(f"using the server {redacted(address)} (from {OPENAI_BASE_URL_ENV_VAR})")
    return [address]


def require_model(
    name: str,
    current: Config,
    backbone: Backbone | None,
) -> None:
    """Raise VievalError for a judge that asks a model if none is configured."""
    if not (backbone or current.backbones):
        raise VievalError(
            f"{name} asks a model, but none is configured; pass --model and "
            f"--base-url, set {MODEL_ENV_VAR} and {BASE_URL_ENV_VAR}, or set "
            f"backbones.{JUDGE} in the options; see "
            f"{docs_url('guides/scoring.md#choose-a-backbone')}"
        )
