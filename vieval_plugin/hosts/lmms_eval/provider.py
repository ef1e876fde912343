"""The host's own judge calls through our client: `API_TYPE=vieval`, with `backbones.judge` of the options as the judge.

The host calls from several threads, one question at a time each. All of them share one loop, and so one server, one store and
one bound of requests in flight.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import binascii
import io
import threading
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

import PIL.Image
from lmms_eval.llm_judge.base import ServerInterface
from lmms_eval.llm_judge.protocol import Request, Response, ServerConfig

from vieval_plugin import config
from vieval_plugin.backends.openai import OpenAIBackend, Sampling
from vieval_plugin.backends.server import Usage, server_options
from vieval_plugin.backends.store import Store
from vieval_plugin.errors import VievalError
from vieval_plugin.hosts.ending import tell_usage
from vieval_plugin.judges.protocol import Chat, Image, Message, Reply, Text
from vieval_plugin.run.backbones import JUDGE

_ROLES = ("system", "user", "assistant")


class VievalProvider(ServerInterface):  # type: ignore[misc]
    """A judge client of the host that retries, keeps replies, and never invents one: a failed call is an exception."""

    def is_available(self) -> bool:
        return JUDGE in config.current().backbones

    def evaluate(self, request: Request) -> Response:
        """The reply to a question of the host.

        Raises:
            VievalError: the call failed, with the reason; or no backbone is named.
        """
        options: ServerConfig = request.config or self.config
        chat = Chat(
            _messages(self.prepare_messages(request), request.images or ()), ("judge",), None, options.max_tokens
        )
        further = {"top_p": options.top_p} if options.top_p is not None else {}
        if options.response_format == "json":
            further["response_format"] = {"type": "json_object"}
        client = _client()
        reply = client.ask(chat, float(options.temperature or 0.0), further)
        if not isinstance(reply, Text):
            reason = getattr(reply, "reason", "no text")
            raise VievalError(
                f"the judge {client.model} gave no answer ({getattr(reply, 'status', 'failed')}): {reason}"
            )
        usage = {"prompt_tokens": reply.input_tokens or 0, "completion_tokens": reply.output_tokens or 0}
        return Response(content=reply.text.strip(), model_used=client.model, usage=usage)


class _Client:
    """One loop in a thread of its own, with a backend for each way of sampling."""

    def __init__(self, options: config.Config) -> None:
        if JUDGE not in options.backbones:
            raise VievalError(
                "API_TYPE=vieval asks backbones.judge, and the options name none: put judge: {model: ..., base_url: ...} "
                f"under backbones into the file that {config.FILE_VARIABLE} names"
            )
        self._backbone, self._seed = options.backbones[JUDGE], options.statistics.seed
        self.model, self.usage = self._backbone.model, Usage()
        path = options.store_path()
        self._store = Store(path, options.store.refresh, options.store.max_age) if path else None
        self._stack, self._opened = AsyncExitStack(), dict[str, asyncio.Task[OpenAIBackend]]()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="vieval-judge", daemon=True)
        self._thread.start()

    def ask(self, chat: Chat, temperature: float, further: Mapping[str, Any]) -> Reply:
        """The reply to a question, from any thread."""
        return asyncio.run_coroutine_threadsafe(self._ask(chat, temperature, further), self._loop).result()

    async def _ask(self, chat: Chat, temperature: float, further: Mapping[str, Any]) -> Reply:
        key = f"{temperature} {sorted(further.items())}"
        if key not in self._opened:
            self._opened[key] = asyncio.ensure_future(self._open(temperature, further))
        return await (await self._opened[key]).answer(chat)

    async def _open(self, temperature: float, further: Mapping[str, Any]) -> OpenAIBackend:
        sampling = Sampling(temperature, self._backbone.max_tokens, {**further, **self._backbone.extra})
        backend = OpenAIBackend(
            self.model,
            server_options(JUDGE, self._backbone),
            usage=self.usage,
            sampling=sampling,
            store=self._store,
            max_pixels=self._backbone.max_pixels,
            seed=self._seed,
        )
        return await self._stack.enter_async_context(backend)

    def close(self) -> None:
        """Let go of connections and the store, and say what it cost."""
        asyncio.run_coroutine_threadsafe(self._stack.aclose(), self._loop).result(timeout=10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        if self._store is not None:
            self._store.close()
        tell_usage(self.usage, "answered from the store")


_making = threading.Lock()


def _client() -> _Client:
    with _making:
        return _made()


@cache
def _made() -> _Client:
    client = _Client(config.current())
    atexit.register(client.close)
    return client


def _messages(given: Sequence[Mapping[str, Any]], images: Sequence[Any]) -> tuple[Message, ...]:
    """The host's messages as ours; further images go to the end of the last turn of the user."""
    messages = [Message(_role(one), tuple(_parts(one.get("content")))) for one in given]
    if images:
        last = max((n for n, one in enumerate(messages) if one.role == "user"), default=None)
        if last is None:
            raise VievalError("a judge request of the host has images and no turn of the user")
        shown = tuple(_image(image) for image in images)
        messages[last] = Message("user", (*messages[last].parts, *shown))
    return tuple(messages)


def _role(message: Mapping[str, Any]) -> Literal["system", "user", "assistant"]:
    role = message.get("role")
    if role not in _ROLES:
        raise VievalError(f"a judge request of the host has a turn of {role!r}")
    return cast(Literal["system", "user", "assistant"], role)


def _parts(content: Any) -> list[str | Image]:
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        raise VievalError("a judge request of the host has a turn without content")
    return [_part(part) for part in content]


def _part(part: Any) -> str | Image:
    if isinstance(part, Mapping) and part.get("type") == "text":
        return str(part.get("text", ""))
    if isinstance(part, Mapping) and part.get("type") == "image_url":
        address = part["image_url"]["url"] if isinstance(part["image_url"], Mapping) else part["image_url"]
        head, _, data = str(address).partition(",")
        if head.startswith("data:image/") and head.endswith(";base64"):
            return _decoded(data)
    raise VievalError("a judge request of the host has a part that is neither a text nor an image in it")


def _image(image: Any) -> Image:
    """An image as the host hands them over: a path, base64 bytes, or a picture."""
    if isinstance(image, str):
        return Image(Path(image))
    if isinstance(image, bytes):
        return _decoded(image)
    if isinstance(image, PIL.Image.Image):
        file = io.BytesIO()
        image.save(file, "PNG")
        return Image(file.getvalue())
    raise VievalError(f"a judge request of the host has an image that is a {type(image).__name__}")


def _decoded(data: str | bytes) -> Image:
    try:
        return Image(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        raise VievalError("a judge request of the host has an image that is no base64") from None
