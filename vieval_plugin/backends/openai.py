"""Chats and likelihoods through an OpenAI-compatible server: vLLM, SGLang or a hosted API."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any

from vieval_plugin.backends.encoding import ImageEncoder
from vieval_plugin.backends.server import Refused, Server, ServerOptions, Usage
from vieval_plugin.backends.store import Store, key_of
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import (
    Ask,
    Chat,
    Failure,
    Image,
    Likelihood,
    Message,
    Probabilities,
    Reply,
    Status,
    Text,
)

_PROBE = {
    "type": "object",
    "properties": {"probe": {"const": "vieval"}},
    "required": ["probe"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Sampling:
    """How a model samples; `extra` goes into the request as it is."""

    temperature: float = 0.0
    max_tokens: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


class OpenAIBackend:
    """Answers chats and likelihoods; use as `async with`. One question asked twice at once is sent once."""

    def __init__(
        self,
        model: str,
        server: ServerOptions,
        *,
        usage: Usage,
        sampling: Sampling = Sampling(),
        store: Store | None = None,
        max_pixels: int | None = None,
        seed: int = 0,
    ) -> None:
        self.model, self.sampling, self.usage = model, sampling, usage
        self._server = Server(server, usage, seed)
        self._store, self._max_pixels = store, max_pixels
        self._images = ImageEncoder(max_pixels)
        self._asked: dict[str, asyncio.Future[Reply]] = {}
        self._schemas: asyncio.Task[bool] | None = None
        self._limit = "max_tokens"

    async def __aenter__(self) -> OpenAIBackend:
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._schemas is not None:
            self._schemas.cancel()
        await self._server.__aexit__(kind, error, trace)

    async def answer(self, ask: Ask, repeat: int = 0) -> Reply:
        """The reply to a `Chat` or `Likelihood`; a failed call is a `Failure`, a server down for good a VievalError.

        `repeat` numbers the times the same question is meant to be answered anew.
        """
        if not isinstance(ask, (Chat, Likelihood)):
            raise TypeError(f"a server answers Chat and Likelihood, not {type(ask).__name__}")
        try:
            key = key_of({**await self._identity(ask), "repeat": repeat})
        except VievalError as error:
            return self._failed(Failure(Status.TOOL_ERROR, str(error)), "unreadable image")
        if (stored := self._stored(key)) is not None:
            return stored
        if key not in self._asked:
            self._asked[key] = asyncio.ensure_future(self._ask(ask, key))
            self._asked[key].add_done_callback(lambda _: self._asked.pop(key, None))
        return await asyncio.shield(self._asked[key])

    def _stored(self, key: str) -> Reply | None:
        reply = self._store.get(key) if self._store else None
        if reply is None:
            return None
        self.usage.cached += 1
        return _from_stored(reply)

    async def _ask(self, ask: Chat | Likelihood, key: str) -> Reply:
        try:
            reply = await (self._chat(ask) if isinstance(ask, Chat) else self._likelihood(ask))
        except Refused as refused:
            return self._failed(Failure(refused.status, refused.reason), refused.kind)
        if self._store and not isinstance(reply, Failure):
            self._store.put(key, self.model, _to_stored(reply))
        return reply

    def _failed(self, failure: Failure, kind: str) -> Failure:
        self.usage.failures[kind] += 1
        return failure

    async def _chat(self, ask: Chat) -> Reply:
        body = await self._body(ask.messages, self.sampling.max_tokens or ask.max_tokens)
        if ask.schema is not None and await self.takes_schemas():
            body["response_format"] = _format(ask.schema)
        for _ in range(self._server.options.retries + 1):
            answer = await self._post(body)
            message, problem = _message_of(answer)
            if message is not None:
                return self._text(answer, message)
            self.usage.retries["malformed answer"] += 1
        return self._failed(Failure(Status.API_ERROR, problem), "malformed answer")

    def _text(self, answer: dict[str, Any], message: dict[str, Any]) -> Reply:
        usage = answer.get("usage") or {}
        given, made = usage.get("prompt_tokens"), usage.get("completion_tokens")
        self.usage.input_tokens += given or 0
        self.usage.output_tokens += made or 0
        if message.get("refusal") and not message.get("content"):
            return self._failed(Failure(Status.REFUSAL, str(message["refusal"])), "refusal")
        return Text(str(message.get("content") or ""), given, made)

    async def _likelihood(self, ask: Likelihood) -> Reply:
        body = await self._body(ask.messages, 1) | {"logprobs": True, "top_logprobs": 20}
        answer = await self._post(body)
        listed = _first_token(answer)
        if not listed:
            return self._failed(Failure(Status.API_ERROR, "the server sent no log-probabilities"), "no logprobs")
        return probabilities(listed, ask.continuations)

    async def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Post a chat; models that want the token limit by its newer name get it from then on."""
        limit = {self._limit: body["max_tokens"]}
        rest = {k: v for k, v in body.items() if k != "max_tokens"}
        try:
            return await self._server.post("chat/completions", rest | limit)
        except Refused as refused:
            if refused.code != 400 or "max_completion_tokens" not in refused.reason or "max_tokens" not in limit:
                raise
            self._limit = "max_completion_tokens"
            return await self._post(body)

    async def _body(self, messages: Sequence[Message], max_tokens: int) -> dict[str, Any]:
        return {
            "model": self.model,
            "messages": [{"role": m.role, "content": await self._content(m)} for m in messages],
            "max_tokens": max_tokens,
            "temperature": self.sampling.temperature,
            **self.sampling.extra,
        }

    async def _content(self, message: Message) -> str | list[dict[str, Any]]:
        if not any(isinstance(part, Image) for part in message.parts):
            return "\n\n".join(str(part) for part in message.parts)
        return [
            {"type": "image_url", "image_url": {"url": (await self._images.encode(part)).url}}
            if isinstance(part, Image)
            else {"type": "text", "text": part}
            for part in message.parts
        ]

    async def _identity(self, ask: Chat | Likelihood) -> dict[str, Any]:
        """Everything an answer depends on, images by digest."""
        messages = []
        for message in ask.messages:
            parts = [
                {"image": (await self._images.encode(p)).digest} if isinstance(p, Image) else p for p in message.parts
            ]
            messages.append([message.role, parts])
        asked = (
            {"max_tokens": self.sampling.max_tokens or ask.max_tokens, "schema": ask.schema}
            if isinstance(ask, Chat)
            else {}
        )
        wanted = {"continuations": ask.continuations} if isinstance(ask, Likelihood) else {}
        sampling = {k: v for k, v in asdict(self.sampling).items() if k != "max_tokens"}
        return {"model": self.model, "sampling": sampling, "messages": messages, **asked, **wanted}

    async def takes_schemas(self) -> bool:
        """Whether the server enforces JSON schemas: probed once, then remembered in the store."""
        if self._schemas is None:
            self._schemas = asyncio.ensure_future(self._probe_schemas())
        return await asyncio.shield(self._schemas)

    async def _probe_schemas(self) -> bool:
        name = f"schemas {self.model} {' '.join(self._server.options.urls)}"
        if self._store and (known := self._store.remembered(name)):
            return known == "enforced"
        messages = [{"role": "user", "content": "Say hello."}]
        body = {
            "model": self.model,
            "messages": messages,
            "max_tokens": 64,
            "temperature": 0,
            "response_format": _format(_PROBE),
        }
        try:
            message, _ = _message_of(await self._post(body))
            enforced = message is not None and json.loads(message.get("content") or "") == {"probe": "vieval"}
        except (Refused, ValueError):
            enforced = False
        if self._store:
            self._store.remember(name, "enforced" if enforced else "not enforced")
        return enforced


def probabilities(listed: Mapping[str, float], continuations: Sequence[str]) -> Probabilities:
    """Bounds on the probability of each continuation, from the log-probabilities of the likeliest first tokens.

    One that is not listed is at most as likely as the least likely listed, and as what the listed leave over.
    """
    known = {token: math.exp(min(value, 0.0)) for token, value in listed.items()}
    rest = max(0.0, min(1.0 - math.fsum(known.values()), min(known.values())))
    low = tuple(known.get(c, 0.0) for c in continuations)
    high = tuple(known.get(c, rest) for c in continuations)
    return Probabilities(low, high)


def _format(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}


def _message_of(answer: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """The first choice's message, or None and what was wrong with the answer."""
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return None, "an answer without choices"
    message = choices[0].get("message")
    if not isinstance(message, dict):
        return None, "a choice without a message"
    if choices[0].get("finish_reason") == "content_filter" and not message.get("content"):
        return {**message, "refusal": "the server's content filter cut the answer"}, ""
    if message.get("content") is None and not message.get("refusal"):
        return None, "a message without content"
    return message, ""


def _first_token(answer: Mapping[str, Any]) -> dict[str, float]:
    """Log-probabilities of the likeliest first tokens by their text; of two that read alike the sum."""
    try:
        listed = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        pairs = [(str(entry["token"]), float(entry["logprob"])) for entry in listed]
    except (KeyError, IndexError, TypeError, ValueError):
        return {}
    found: dict[str, float] = {}
    for token, value in pairs:
        found[token] = math.log(math.exp(found[token]) + math.exp(value)) if token in found else value
    return found


def _to_stored(reply: Reply) -> dict[str, Any]:
    return {"kind": type(reply).__name__, **asdict(reply)}


def _from_stored(stored: dict[str, Any]) -> Reply:
    kind = stored.pop("kind")
    if kind == "Probabilities":
        return Probabilities(tuple(stored["low"]), tuple(stored["high"]))
    return Text(**stored)
