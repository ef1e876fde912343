"""Chats and likelihoods through an OpenAI-compatible server: vLLM, SGLang or a hosted API."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from vieval_plugin.backends.cache.leases import Leases
from vieval_plugin.backends.cache.store import Store, key_of, question
from vieval_plugin.backends.concurrency import SharedTasks
from vieval_plugin.backends.http.batches import PRICE, Batches, BatchOptions
from vieval_plugin.backends.http.image_encoding import Encoded, ImageEncoder, noted
from vieval_plugin.backends.http.responses import (
    Refused,
    cached_tokens_of,
    finish_reason,
    first_token,
    parsed_json,
    reply_of,
    text_of,
    tokens_of,
    unusable,
)
from vieval_plugin.backends.http.server import CHAT, Server, ServerOptions, Usage
from vieval_plugin.backends.reply_checks import Answer, checked, final, probabilities
from vieval_plugin.backends.token_probabilities import TokenIds, narrowed_bounds, prefix_probabilities
from vieval_plugin.judges.protocol import Chat, Failure, Image, Likelihood, Message, Reply, Status
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.redaction import redacted

_MOST_OWN = 1 << 20  # questions of a run whose answers in the store are known to be its own
_TOP_LOGPROBS = 20  # what OpenAI and vLLM list at most, unless told otherwise
_PROBE = {
    "type": "object",
    "properties": {"probe": {"const": "vieval"}},
    "required": ["probe"],
    "additionalProperties": False,
}
# vLLM's own (others take no notice, or refuse it): six turns of the same 2 to 64 tokens
_REPETITION = {"min_pattern_size": 2, "max_pattern_size": 64, "min_count": 6}
_LOGPROBS = {"logprobs": True, "top_logprobs": _TOP_LOGPROBS}
_SCHEMA_REFUSED = ("HTTP 400", "HTTP 422")

Send: TypeAlias = Callable[..., Awaitable[dict[str, Any]]]  # of `Server.post`


@dataclass(frozen=True)
class Sampling:
    """Sampling options of a model."""

    #: Temperature of chats.
    temperature: float = 0.0
    #: Most tokens of an answer, None for what the judge asks for.
    max_tokens: int | None = None
    #: Further fields of a request, which go into it as they are.
    extra: Mapping[str, Any] = field(default_factory=dict)

    def limit(self, ask: Chat | Likelihood) -> int:
        """The most tokens of an answer; one where probabilities are asked for."""
        return self.max_tokens or ask.max_tokens if isinstance(ask, Chat) else 1


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
        price: Callable[[float, float, float], float] = lambda *tokens: 0.0,
        batch: BatchOptions | None = None,
    ) -> None:
        self.model, self.sampling, self.usage, self._price = model, sampling, usage, price
        self._server = Server(server, usage, seed)
        self._store = store
        self._batch, self.batches = batch, Batches(self._server, batch, model) if batch else None
        # what is asked by batches is stored once all is answered, and counted then
        is_stored = store and not (batch and batch.sends)
        self._leases = Leases(store, server.longest_question) if store and is_stored else None
        self._images = ImageEncoder(max_pixels)
        self._in_flight, self._capabilities = SharedTasks(), SharedTasks(keeps=True)
        self._own_keys: set[int] = set()  # hashes of this run's questions, whose answers in the store are its own
        self._refused: set[str] = set()  # forms of chats that the server does not take
        self._limit = "max_tokens"
        self._ids = TokenIds(model, self._server.post)

    async def __aenter__(self) -> OpenAIBackend:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        # a run that was ended must leave nothing behind that asks and stores on
        for tasks in (self._in_flight, self._capabilities, self._ids.tasks):
            await tasks.close()
        if self.batches:
            self.batches.close()
        await self._server.__aexit__()
        if self._leases:
            await self._leases.close()

    async def answer(self, ask: Chat | Likelihood, repeat: int = 0) -> Reply:
        """The reply to a `Chat` or `Likelihood`; a failed call is a `Failure`, a server down for good a VievalError.

        `repeat` numbers the times the same question is meant to be answered anew.
        """
        try:
            images = await self._encoded(ask)
        except VievalError as error:
            return self._failed(Failure(Status.TOOL_ERROR, str(error)), "unreadable image")
        reply = await self._stored_or_asked(ask, images, repeat)
        return noted(reply, (note for encoded in images.values() for note in encoded.notes))

    async def look_up(self, ask: Chat | Likelihood) -> tuple[str, Answer | None] | None:
        """The key of a question and the reply that the store holds, if any; None where an image cannot be read.

        Nothing is asked.
        """
        try:
            key = self._key(ask, await self._encoded(ask), 0)
        except VievalError:
            return None
        return key, self._store.get(key) if self._store else None

    async def _encoded(self, ask: Chat | Likelihood) -> dict[Image, Encoded]:
        images = [part for message in ask.messages for part in message.parts if isinstance(part, Image)]
        return {image: await self._images.encode(image) for image in images}

    async def _stored_or_asked(self, ask: Chat | Likelihood, images: Mapping[Image, Encoded], repeat: int) -> Reply:
        key = self._key(ask, images, repeat)
        if key in self._in_flight:
            self.usage.repeated += 1
        elif self._store and (stored := self._store.get(key)) is not None:
            return self._cached(key, stored)
        return await self._in_flight.result(key, self._ask, ask, images, repeat, key)

    def _cached(self, key: str, stored: Answer) -> Answer:
        """A stored reply, counted: to a question of an earlier run, or of this one."""
        if hash(key) in self._own_keys:
            self.usage.repeated += 1
        else:
            self.usage.cached += 1
        return stored

    async def _ask(self, ask: Chat | Likelihood, images: Mapping[Image, Encoded], repeat: int, key: str) -> Reply:
        """The reply to a question that is not in the store; one that another process is asking is waited for."""
        if self._store is None or self._leases is None:
            return await self._reply(ask, images, repeat)
        is_stored = False
        try:
            if is_stored := (stored := await self._leases.reply_or_turn(key)) is not None:
                return self._cached(key, stored)
            reply = await self._reply(ask, images, repeat)
            if final(reply):
                reply, is_stored = self._store.add(key, self.model, reply), True
                if len(self._own_keys) < _MOST_OWN:
                    self._own_keys.add(hash(key))
            return reply
        finally:
            self._leases.finish(key, is_stored)

    async def _reply(self, ask: Chat | Likelihood, images: Mapping[Image, Encoded], repeat: int) -> Reply:
        """A reply without keys and with possible numbers only."""
        kind, send = "refusal", partial(self.batches.post, repeat=repeat) if self.batches else self._server.post
        reply: Reply
        try:
            if self._batch and self._batch.sends:
                await self._capabilities.result(type(ask).__name__, self._try_out, ask, self._batch.has_service)
            if isinstance(ask, Chat):
                reply = reply_of(self._count_tokens(await self._chat(ask, images, send)))
            else:
                reply, kind = await self._likelihood(ask, images, send), "no probabilities"
        except Refused as refused:
            reply, kind = Failure(refused.status, refused.reason), refused.kind
        reply = checked(reply)
        return self._failed(reply, kind) if isinstance(reply, Failure) else reply

    def _failed(self, failure: Failure, kind: str) -> Failure:
        self.usage.failures[kind] += 1
        return failure

    async def _chat(self, ask: Chat, images: Mapping[Image, Encoded], send: Send) -> dict[str, Any]:
        """Post a chat in the fullest form that the server takes; a form that it refuses is not tried again."""
        body = self._body(ask.messages, self.sampling.limit(ask), images)
        forms, refused_form = await self._forms(ask), ""
        for name, fields in forms.items():
            try:
                answer = await self._post(body | fields, send)
                break
            except Refused as refused:
                if not name or refused.kind not in _SCHEMA_REFUSED:
                    raise
                refused_form = name
        if refused_form:
            self._refused.add(refused_form)
        return answer

    async def _forms(self, ask: Chat) -> dict[str, dict[str, Any]]:
        """Fields that bound an answer, the fullest form first and none last, by what a server may refuse of them.

        Those of a schema with the lengths of texts, then without them; where no schema bounds the answer, vLLM's end to
        one that goes round in circles, if asked.
        """
        forms: dict[str, dict[str, Any]] = {}
        loose = without_lengths(ask.schema or {})
        if ask.schema is not None and (name := json.dumps(loose)) not in self._refused and await self.takes_schemas():
            if loose != ask.schema:
                forms["lengths"] = {"response_format": response_format(ask.schema)}
            forms[name] = {"response_format": response_format(loose)}
        elif ask.stop_repeating:
            forms["repetition"] = {"repetition_detection": _REPETITION}
        return {name: fields for name, fields in forms.items() if name not in self._refused} | {"": {}}

    async def _likelihood(self, ask: Likelihood, images: Mapping[Image, Encoded], send: Send) -> Reply:
        if ask.definition == "sequence_mean":
            reason = f"a server cannot tell {ask.definition}; use the transformers backend (vieval_transformers)"
            return Failure(Status.API_ERROR, reason)
        body = self._body(ask.messages, self.sampling.limit(ask), images) | _LOGPROBS
        answer = self._count_tokens(await self._post(body, send))
        try:
            likeliest = first_token(answer)
        except ValueError as error:
            return Failure(Status.API_ERROR, f"the server sent {error}")
        if not likeliest:
            return Failure(Status.API_ERROR, "the server sent no log-probabilities")
        if ask.definition == "beginning":
            return await prefix_probabilities(answer, likeliest, ask.continuations, self._ids, body, send)
        bounds = probabilities(likeliest, ask.continuations)
        if isinstance(bounds, Failure):
            return bounds
        return await narrowed_bounds(bounds, ask.continuations, self._ids, body, send)

    async def _try_out(self, ask: Chat | Likelihood, has_service: bool) -> None:
        """Post a short question in the form of another, as what the service refuses of it, it would of a whole file.

        VievalError where log-probabilities would not come.
        """
        greeting = (Message("user", ("Say hello.",)),)
        with suppress(Refused, ValueError):
            if isinstance(ask, Chat):
                if has_service:
                    await self._chat(replace(ask, messages=greeting, max_tokens=64), {}, self._server.post)
                return
            if has_service and first_token(
                await self._post(self._body(greeting, 1, {}) | _LOGPROBS, self._server.post)
            ):
                return
        if not isinstance(ask, Chat):
            raise VievalError(
                f"{self.model} gives no log-probabilities, which this judge asks for; leave its batches out"
            )

    def _count_tokens(self, answer: dict[str, Any]) -> dict[str, Any]:
        input_tokens, output_tokens = (count or 0 for count in tokens_of(answer))
        cached_tokens = cached_tokens_of(answer)
        self.usage.input_tokens += input_tokens
        self.usage.output_tokens += output_tokens
        self.usage.cached_tokens += cached_tokens
        price = self._price(input_tokens, cached_tokens, output_tokens)
        self.usage.price += price * (PRICE if self.batches else 1.0)
        self.usage.saved_by_batches += price * (1.0 - PRICE) if self.batches else 0.0
        return answer

    async def _post(self, body: dict[str, Any], send: Send) -> dict[str, Any]:
        """Post a chat; models that want the token limit by its newer name get it from then on."""
        limit = {self._limit: body["max_tokens"]}
        other_fields = {k: v for k, v in body.items() if k != "max_tokens"}
        try:
            return await send(CHAT, other_fields | limit, unusable)
        except Refused as refused:
            if refused.code != 400 or "max_completion_tokens" not in refused.reason or "max_tokens" not in limit:
                raise
            self._limit = "max_completion_tokens"
            return await self._post(body, send)

    def _body(self, messages: Sequence[Message], tokens: int, images: Mapping[Image, Encoded]) -> dict[str, Any]:
        return {
            "model": self.model,
            "messages": [message_document(m, images.__getitem__) for m in messages],
            "max_tokens": tokens,
            "temperature": self.sampling.temperature,
            **self.sampling.extra,
        }

    def _key(self, ask: Chat | Likelihood, images: Mapping[Image, Encoded], repeat: int) -> str:
        """The key of a question in the store: everything its answer depends on, images by digest."""
        sampling = {k: v for k, v in asdict(self.sampling).items() if k != "max_tokens"}
        fixed = {"model": self.model, "sampling": sampling, "max_tokens": self.sampling.limit(ask), "repeat": repeat}
        return key_of({**fixed, **question(ask, lambda image: images[image].digest)})

    async def takes_schemas(self) -> bool:
        """Return whether the server enforces JSON schemas: probed once, then remembered in the store."""
        return await self._capabilities.result("schemas", self._probe_schemas)

    async def _probe_schemas(self) -> bool:
        name = f"schemas {self.model} {' '.join(map(redacted, self._server.options.urls))}"
        if self._store and (remembered := self._store.remembered(name)):
            return remembered == "enforced"
        if self._batch and not self._batch.has_service:  # vLLM's own enforces them
            return True
        body = self._body([Message("user", ("Say hello.",))], 64, {}) | {"response_format": response_format(_PROBE)}
        try:
            answer = await self._post(body, self._server.post)
        except Refused as refused:
            if refused.kind not in _SCHEMA_REFUSED:  # a fault says nothing about schemas: find out again next time
                return False
            enforced, is_probe_conclusive = False, True
        else:
            text = text_of(answer)
            enforced = parsed_json(text) == {"probe": "vieval"}
            # nor does an answer that was cut
            is_probe_conclusive = enforced or (finish_reason(answer) == "stop" and bool(text.strip()))
        if self._store and is_probe_conclusive:
            self._store.remember(name, "enforced" if enforced else "not enforced")
        return enforced


def message_document(message: Message, url_of: Callable[[Image], Any]) -> dict[str, Any]:
    """A message as servers and engines take it: its texts as one, and where it has images its parts in order."""
    if not any(isinstance(part, Image) for part in message.parts):
        return {"role": message.role, "content": "\n\n".join(map(str, message.parts))}
    content = [
        {"type": "image_url", "image_url": {"url": url_of(part)}}
        if isinstance(part, Image)
        else {"type": "text", "text": part}
        for part in message.parts
    ]
    return {"role": message.role, "content": content}


def without_lengths(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema less the bounds on the lengths of texts, which not every API takes."""
    return {name: _loose(value) for name, value in schema.items() if name not in ("minLength", "maxLength")}


def _loose(value: Any) -> Any:
    if isinstance(value, Mapping):
        return without_lengths(value)
    return [_loose(member) for member in value] if isinstance(value, (list, tuple)) else value


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema as a field of a request."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
