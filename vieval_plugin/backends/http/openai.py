"""Chats and likelihoods through an OpenAI-compatible server: vLLM, SGLang or a hosted API."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, TypeAlias

from vieval_plugin.backends.cache.leases import Leases
from vieval_plugin.backends.cache.store import Store, key_of, question
from vieval_plugin.backends.concurrency import SharedTasks, gather_or_cancel
from vieval_plugin.backends.http.batches import PRICE, Batches, BatchOptions
from vieval_plugin.backends.http.faults import Refused, parsed_json
from vieval_plugin.backends.http.image_encoding import (
    EncodedImages,
    ImageEncoder,
    asked_images,
    noted,
)
from vieval_plugin.backends.http.request_form import (
    HALF_CHARACTER,
    LIMITS,
    MORE_ROOM,
    NO_PROBABILITIES,
    NO_ROOM,
    Negotiation,
    named_fields,
)
from vieval_plugin.backends.http.responses import (
    cached_tokens_of,
    finish_reason,
    first_token,
    is_starved,
    reply_of,
    takes_lengths,
    text_of,
    tokens_of,
    unusable,
)
from vieval_plugin.backends.http.server import CHAT, Server, ServerOptions, Usage
from vieval_plugin.backends.http.sight import (
    QUESTION,
    Sight,
    SightCheck,
    look,
    picture_of,
)
from vieval_plugin.backends.reply_checks import (
    Answer,
    Question,
    checked,
    final,
    probabilities,
)
from vieval_plugin.backends.token_probabilities import (
    TokenIds,
    narrowed_bounds,
    prefix_probabilities,
)
from vieval_plugin.judges.protocol import (
    NOT_SENT,
    Chat,
    Failure,
    Image,
    Likelihood,
    Message,
    Reply,
    Status,
)
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import announce
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.yaml_json import JsonObject

_MOST_OWN = (
    1 << 20
)  # questions of a run whose answers in the store are known to be its own
_TOP_LOGPROBS = 20  # what OpenAI and vLLM list at most, unless told otherwise
_PROBE = {
    "type": "object",
    "properties": {"probe": {"type": "string", "enum": ["vieval"]}},
    "required": ["probe"],
    "additionalProperties": False,
}
# vLLM's own (others take no notice, or refuse it): six turns of the same 2 to 64 tokens
_REPETITION = {
    "min_pattern_size": 2,
    "max_pattern_size": 64,
    "min_count": 6,
}
_LOGPROBS = {"logprobs": True, "top_logprobs": _TOP_LOGPROBS}
_PROBE_TOKENS = 2048  # room to think before the few tokens of the answer
_NOT_ENFORCED = "not enforced"
_ENFORCED = "enforced"
_WITH_LENGTHS = "enforced with lengths"
# what an answer is of which the server says only that the token limit was reached
_STARVED = {"choices": [{"message": {"content": ""}, "finish_reason": "length"}]}
_CONTEXT = re.compile(r"context (?:length|size|window)\D{0,40}(\d+)")
#: Models that this process has announced as unverified: a plan has a run for each sample.
_unverified = set[str]()

Send: TypeAlias = Callable[..., Awaitable[JsonObject]]  # of `Server.post`


@dataclass(frozen=True)
class Sampling:
    """Sampling options of a model."""

    #: Temperature of chats, None for the model's own.
    temperature: float | None = 0.0
    #: Most tokens of an answer, None for what the judge asks for.
    max_tokens: int | None = None
    #: Further fields of a request, which replace all others; None removes one.
    extra: Mapping[str, Any] = field(default_factory=dict)

    def limit(self, ask: Question) -> int:
        """The most tokens of an answer; one where probabilities are asked for."""
        if not isinstance(ask, Chat):
            return 1
        return self.max_tokens or ask.max_tokens


class OpenAIBackend:
    """Answers chats and likelihoods; use as `async with`. One question asked twice at once is
    sent once.
    """

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
        sight_check: bool = False,
    ) -> None:
        self._sight_check = sight_check
        self.model = model
        self.sampling = sampling
        self._sampling_key = asdict(sampling)
        del self._sampling_key["max_tokens"]  # a key has the limit of its question
        self.usage = usage
        self._price = price
        self._server = Server(server, usage, seed)
        self._store = store
        self._batch = batch
        self.batches = Batches(self._server, batch, model) if batch else None
        # what is asked by batches is stored once all is answered, and counted then
        sends_batches = batch and batch.sends
        self._leases = (
            Leases(store, server.longest_question)
            if store and not sends_batches
            else None
        )
        self._images = ImageEncoder(max_pixels)
        self._in_flight = SharedTasks()
        self._capabilities = SharedTasks(keeps=True)
        # hashes of this run's questions, whose answers in the store are its own
        self._own_keys = set[int]()
        # forms of chats that the server does not take
        self._refused = set[str]()
        addresses = " ".join(map(redacted, server.urls))
        self._where = f"{model} {addresses}"
        self._negotiation = Negotiation(
            f"form {self._where}",
            store,
            self._where,
        )
        self._server.on_failed_try = self._negotiation.release
        self._sight_seed = _sight_seed(seed, self._where)
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

    async def answer(self, ask: Question, repeat: int = 0) -> Reply:
        """The reply to a `Chat` or `Likelihood`; a failed call is a `Failure`, a server down for
        good a VievalError.

        `repeat` numbers further answers to the same question.
        """
        try:
            images = await self._encoded(ask)
        except VievalError as error:
            return self._failed(
                Failure(Status.TOOL_ERROR, str(error)), "unreadable image"
            )
        reply = await self._stored_or_asked(ask, images, repeat)
        image_notes = chain.from_iterable(image.notes for image in images.values())
        return noted(reply, (*image_notes, *self._unsent()))

    def _unsent(self) -> list[str]:
        """Notes on sampling fields that the model refuses, without which a score may mean
        something else.
        """
        parameters = {"temperature": self.sampling.temperature, **self.sampling.extra}
        refused = self._negotiation.form.refused
        return [
            f"{NOT_SENT}{name}" for name in refused if parameters.get(name) is not None
        ]

    async def look_up(self, ask: Question) -> tuple[str, Answer | None] | None:
        """The key of a question and the reply that the store holds, if any; None where an image
        cannot be read.

        Nothing is asked.
        """
        try:
            key = self._key(
                ask,
                await self._encoded(ask),
                0,
            )
        except VievalError:
            return None
        return key, self._store.get(key) if self._store else None

    async def _encoded(self, ask: Question) -> EncodedImages:
        return {image: await self._images.encode(image) for image in asked_images(ask)}

    async def _stored_or_asked(
        self,
        ask: Question,
        images: EncodedImages,
        repeat: int,
    ) -> Reply:
        key = self._key(ask, images, repeat)
        self.usage.output_limit += self.sampling.limit(ask)
        if key in self._in_flight:
            self.usage.repeated += 1
        elif self._store and (stored := self._store.get(key)) is not None:
            return self._cached(key, stored)
        return await self._in_flight.result(
            key,
            self._ask,
            ask,
            images,
            repeat,
            key,
        )

    def _cached(self, key: str, stored: Answer) -> Answer:
        """A stored reply, counted: to a question of an earlier run, or of this one."""
        if hash(key) in self._own_keys:
            self.usage.repeated += 1
        else:
            self.usage.cached += 1
        return stored

    async def _ask(
        self,
        ask: Question,
        images: EncodedImages,
        repeat: int,
        key: str,
    ) -> Reply:
        """The reply to a question that is not in the store; one that another process is asking
        is waited for.
        """
        if self._store is None or self._leases is None:
            return await self._reply(ask, images, repeat)
        is_stored = False
        try:
            stored = await self._leases.reply_or_turn(key)
            if stored is not None:
                is_stored = True
                return self._cached(key, stored)
            reply = await self._reply(ask, images, repeat)
            if final(reply):
                reply = self._store.add(
                    key,
                    self.model,
                    reply,
                )
                is_stored = True
                if len(self._own_keys) < _MOST_OWN:
                    self._own_keys.add(hash(key))
            return reply
        finally:
            self._leases.finish(key, is_stored)

    async def _reply(self, ask: Question, images: EncodedImages, repeat: int) -> Reply:
        """Ask the server; the reply is redacted, and its numbers are validated."""
        kind = "refusal"
        send = self._server.post
        if self.batches:
            send = partial(
                self.batches.post, asked={**asdict(self.sampling), "repeat": repeat}
            )
        reply: Reply
        try:
            if self._batch and self._batch.sends:
                await self._capabilities.result(
                    type(ask).__name__,
                    self._try_out,
                    ask,
                    self._batch.has_service,
                )
            await self._probe(ask, images)
            if reason := self.usage.stop_reason():
                return self._failed(Failure(Status.API_ERROR, reason), reason)
            if isinstance(ask, Chat):
                reply = reply_of(await self._chat_with_room(ask, images, send))
            else:
                reply = await self._likelihood(ask, images, send)
                kind = "no probabilities"
        except Refused as refused:
            reply = Failure(refused.status, refused.reason)
            kind = refused.kind
        reply = checked(reply)
        return self._failed(reply, kind) if isinstance(reply, Failure) else reply

    async def _probe(self, ask: Question, images: EncodedImages) -> None:
        """Check at once all that an ask relies on, such as sight and schemas; VievalError where it shows
        images to a model that is blind.
        """
        if (
            not images
            or not self._sight_check
            or (self._batch and not self._batch.has_service)
        ):
            return
        if (
            isinstance(ask, Chat)
            and ask.schema is not None
            and "schemas" not in self._capabilities
        ):
            await gather_or_cancel([self._require_sight(), self.takes_schemas()])
        else:
            await self._require_sight()

    async def _require_sight(self) -> None:
        sight = await self._capabilities.result("sight", self._remembered_sight)
        if sight.sight == Sight.BLIND:
            raise VievalError(
                f"{self.model} does not see the images sent to it ({sight.evidence}); "
                "serve a vision model with its vision encoder, or set sight_check of "
                "the backbone to false"
            )

    async def _remembered_sight(self) -> SightCheck:
        """The check of an earlier run, or a new one, counted; a model that is blind may see
        tomorrow.
        """
        name = f"sight of {self._where}"
        remembered = self._store.remembered(name) if self._store else None
        sight = (
            SightCheck(Sight(remembered), "in an earlier run")
            if remembered
            else await self.check_sight()
        )
        if self._store and not remembered and sight.sight != Sight.BLIND:
            self._store.remember(name, sight.sight)
        if sight.sight == Sight.UNKNOWN and self._where not in _unverified:
            _unverified.add(self._where)
            announce(
                f"could not verify that {self.model} sees images: its reply does "
                f"not mention a colour ({sight.evidence})"
            )
        self.usage.sight[sight.sight] += 1
        return sight

    async def check_sight(self) -> SightCheck:
        """Ask for the colours of pictures; a model that answers only without a picture is blind.

        Raises:
            VievalError, Refused: it does not answer.
        """
        try:
            return await look(
                lambda picture: self._answer_to(QUESTION, picture), self._sight_seed
            )
        except (Refused, VievalError) as error:
            if isinstance(error, VievalError) and not isinstance(
                error.__cause__, Refused
            ):
                raise  # the server is away
            reason = str(error)
        await self._answer_to("Say hello.")
        return SightCheck(
            Sight.BLIND, f"it answers text prompts but fails on images: {reason}"
        )

    async def refusal_of_two_images(self) -> str:
        """The reason why the model refuses two images in one question; empty where it takes
        them.
        """
        try:
            await self._answer_to(
                "Are these two pictures the same?",
                picture_of("red"),
                picture_of("blue"),
            )
        except (Refused, VievalError) as error:
            return str(error)
        return ""

    async def _answer_to(self, question: str, *pictures: Image) -> str:
        ask = Chat(
            (Message("user", (*pictures, question)),),
            ("sight",),
        )
        images = await self._encoded(ask)
        answer = await self._probed(ask.messages, images)
        return text_of(self._count_tokens(answer))

    async def _probed(
        self,
        messages: Sequence[Message],
        images: EncodedImages,
        fields: Mapping[str, Any] = MappingProxyType({}),
    ) -> JsonObject:
        """Post a probe at once, with room to think before its few words; one that is cut all the
        same gets more.
        """
        room = max(_PROBE_TOKENS, self.sampling.max_tokens or 0)
        answer = await self._post_or_cut(
            self._body(
                messages,
                room,
                images,
                fields,
            )
        )
        if is_starved(answer):
            longer_body = self._body(
                messages,
                MORE_ROOM * room,
                images,
                fields,
            )
            answer = await self._post_or_cut(longer_body)
        return answer

    def _failed(self, failure: Failure, kind: str) -> Failure:
        self.usage.failures[kind] += 1
        return failure

    async def _chat_with_room(
        self,
        ask: Chat,
        images: EncodedImages,
        send: Send,
    ) -> JsonObject:
        """Post a chat; one that is cut before its first word gets a second try with more room."""
        limit = self.sampling.limit(ask)
        if ask.schema is not None:
            await self.takes_schemas()
        # the name of a question that a batch answers has its room in it, and must stay
        room = 1 if self.batches else self._negotiation.form.room
        answer = _STARVED
        has_room = room > 1
        limits = [MORE_ROOM * limit] if has_room else [limit, MORE_ROOM * limit]
        for tokens in limits:
            if tokens > limit:
                self.usage.output_limit += tokens - (limit if has_room else 0)
                if not has_room:
                    self.usage.retries.update([NO_ROOM])
            try:
                answer = await self._chat(
                    ask,
                    images,
                    send,
                    tokens,
                )
            except Refused as refused:
                context = _CONTEXT.search(refused.reason)
                if tokens == limit or not context:
                    raise
                input_tokens, _ = tokens_of(answer)
                free_tokens = int(context[1]) - input_tokens if input_tokens else limit
                longest = max(limit, min(free_tokens, tokens))
                return await self._chat(
                    ask,
                    images,
                    send,
                    longest,
                )
            if not is_starved(answer):
                break
        return answer

    async def _chat(
        self,
        ask: Chat,
        images: EncodedImages,
        send: Send,
        tokens: int,
    ) -> JsonObject:
        """Post a chat in the fullest form that the server takes; a form that it refuses is not
        tried again.
        """
        forms = await self._forms(ask)
        refused_form = ""
        for name, fields in forms.items():
            body = self._body(
                ask.messages,
                tokens,
                images,
                fields,
            )
            try:
                answer = self._count_tokens(await self._post(body, send))
                break
            except Refused as refused:
                if refused.kind == "cut":
                    return _STARVED
                if not name or not fields.keys() & set(named_fields(refused, body)):
                    raise
                refused_form = name
        if refused_form:
            self._refused.add(refused_form)
        return answer

    async def _forms(self, ask: Chat) -> dict[str, JsonObject]:
        """Fields that bound an answer, the fullest form first and none last, by what a server may
        refuse of them.

        Those of a schema; where no schema bounds the answer, vLLM's end to one that goes round in
        circles, if asked.
        """
        forms = {}
        loose = remove_lengths(ask.schema or {})
        if (
            ask.schema is not None
            and (name := json.dumps(loose)) not in self._refused
            and await self.takes_schemas()
        ):
            if await self._schema_support() == _WITH_LENGTHS:
                forms["lengths"] = {"response_format": response_format(ask.schema)}
            forms[name] = {"response_format": response_format(loose)}
        elif ask.stop_repeating:
            forms["repetition"] = {"repetition_detection": _REPETITION}
        for refused in forms.keys() & self._refused:
            del forms[refused]
        return forms | {"": {}}

    async def _likelihood(
        self,
        ask: Likelihood,
        images: EncodedImages,
        send: Send,
    ) -> Reply:
        if ask.definition == "sequence_mean":
            return Failure(
                Status.API_ERROR,
                f"a server cannot compute {ask.definition}; use the transformers backend "
                "(vieval_transformers)",
            )
        body = self._body(
            ask.messages,
            self.sampling.limit(ask),
            images,
            _LOGPROBS,
        )
        answer = self._count_tokens(await self._post(body, send))
        try:
            likeliest = first_token(answer)
        except ValueError as error:
            return Failure(Status.API_ERROR, f"the server sent {error}")
        if not likeliest:
            is_half = text_of(answer).endswith("\ufffd")
            reason = HALF_CHARACTER if is_half else NO_PROBABILITIES
            return Failure(Status.API_ERROR, reason)
        if ask.definition == "beginning":
            return await prefix_probabilities(
                answer,
                likeliest,
                ask.continuations,
                self._ids,
                body,
                send,
            )
        bounds = probabilities(likeliest, ask.continuations)
        if isinstance(bounds, Failure):
            return bounds
        return await narrowed_bounds(
            bounds,
            ask.continuations,
            self._ids,
            body,
            send,
        )

    async def _try_out(self, ask: Question, has_service: bool) -> None:
        """Post a short question in the form of another, as what the service refuses of it, it would
        of a whole file.

        VievalError where log-probabilities would not come.
        """
        greeting = (Message("user", ("Say hello.",)),)
        if isinstance(ask, Chat):
            if has_service:
                with suppress(Refused, ValueError):
                    await self._chat(
                        replace(ask, messages=greeting),
                        {},
                        self._server.post,
                        _PROBE_TOKENS,
                    )
            return
        if has_service:
            body = self._body(
                greeting,
                1,
                {},
                _LOGPROBS,
            )
            with suppress(Refused, ValueError):
                if first_token(await self._post(body, self._server.post)):
                    return
        raise VievalError(
            f"{self.model} returns no log-probabilities, which this judge requires; do not "
            "use batches for this judge"
        )

    def _count_tokens(self, answer: JsonObject) -> JsonObject:
        input_tokens, output_tokens = (count or 0 for count in tokens_of(answer))
        cached_tokens = cached_tokens_of(answer)
        self.usage.count_tokens(
            self.model,
            input_tokens,
            output_tokens,
        )
        self.usage.cached_tokens += cached_tokens
        price = self._price(input_tokens, cached_tokens, output_tokens)
        self.usage.price += price * (PRICE if self.batches else 1.0)
        self.usage.saved_by_batches += price * (1.0 - PRICE) if self.batches else 0.0
        return answer

    async def _post(
        self,
        body: JsonObject,
        send: Send,
        waits: bool = True,
    ) -> JsonObject:
        """Post a chat in the form that the model takes."""
        return await self._negotiation.post(
            body,
            lambda sent: send(CHAT, sent, unusable),
            waits,
        )

    async def _post_or_cut(self, body: JsonObject) -> JsonObject:
        """Post a probe without waiting for the negotiation; an answer that its limit cut is
        `_STARVED`.
        """
        try:
            answer = await self._post(
                body,
                self._server.post,
                waits=False,
            )
        except Refused as refused:
            if refused.kind != "cut":
                raise
            return _STARVED
        self.usage.probes += 1
        return answer

    def _body(
        self,
        messages: Sequence[Message],
        tokens: int,
        images: EncodedImages,
        fields: Mapping[str, Any] = MappingProxyType({}),
    ) -> JsonObject:
        """A request; what the user sets as `extra` replaces all else, and None removes a field."""
        extra = self.sampling.extra
        body: JsonObject = {"model": self.model}
        body["messages"] = [
            message_document(message, images.__getitem__) for message in messages
        ]
        if not any(limit in extra for limit in LIMITS):
            body["max_tokens"] = tokens
        body["temperature"] = self.sampling.temperature
        body |= {**fields, **extra}
        return {name: value for name, value in body.items() if value is not None}

    def _key(self, ask: Question, images: EncodedImages, repeat: int) -> str:
        """The key of a question in the store: everything its answer depends on, images by
        digest.
        """
        content = question(ask, lambda image: images[image].digest)
        content["model"] = self.model
        content["sampling"] = self._sampling_key
        content["max_tokens"] = self.sampling.limit(ask)
        content["repeat"] = repeat
        return key_of(content)

    async def takes_schemas(self) -> bool:
        """Return whether the server enforces JSON schemas: probed once, then remembered in the
        store.
        """
        return await self._schema_support() != _NOT_ENFORCED

    async def _schema_support(self) -> str:
        return await self._capabilities.result("schemas", self._probe_schemas)

    async def _probe_schemas(self) -> str:
        name = f"schemas of {self._where}"
        if self._store and (remembered := self._store.remembered(name)):
            return remembered
        if self._batch and not self._batch.has_service:  # vLLM's own enforces them
            return _WITH_LENGTHS
        fields = {"response_format": response_format(_PROBE)}
        try:
            answer = await self._probed(
                [Message("user", ("Say hello.",))],
                {},
                fields,
            )
        except Refused as refused:
            # a fault says nothing about schemas: find out again next time
            support = _NOT_ENFORCED
            is_probe_conclusive = "response_format" in named_fields(refused, fields)
        else:
            text = text_of(answer)
            enforced = parsed_json(text) == {"probe": "vieval"}
            support = (
                (_WITH_LENGTHS if takes_lengths(answer) else _ENFORCED)
                if enforced
                else _NOT_ENFORCED
            )
            # nor does an answer that was cut
            is_probe_conclusive = enforced or (
                finish_reason(answer) == "stop" and bool(text.strip())
            )
        if self._store and is_probe_conclusive:
            self._store.remember(name, support)
        return support


def _sight_seed(seed: int, where: str) -> str:
    return hashlib.sha256(f"{seed} {where}".encode()).hexdigest()[:8]


def message_document(message: Message, url_of: Callable[[Image], Any]) -> JsonObject:
    """A message as servers and engines take it: its texts as one, and where it has images its
    parts in order.
    """
    if not any(isinstance(part, Image) for part in message.parts):
        return {"role": message.role, "content": "\n\n".join(map(str, message.parts))}
    content = [
        {"type": "image_url", "image_url": {"url": url_of(part)}}
        if isinstance(part, Image)
        else {"type": "text", "text": part}
        for part in message.parts
    ]
    return {"role": message.role, "content": content}


def remove_lengths(schema: Mapping[str, Any]) -> JsonObject:
    """A schema less the bounds on the lengths of texts, which not every API takes."""
    return {
        name: _loose(value)
        for name, value in schema.items()
        if name not in ("minLength", "maxLength")
    }


def _loose(value: Any) -> Any:
    if isinstance(value, Mapping):
        return remove_lengths(value)
    if isinstance(value, (list, tuple)):
        return [_loose(member) for member in value]
    return value


def response_format(schema: Mapping[str, Any]) -> JsonObject:
    """A schema as a field of a request."""
    return {
        "type": "json_schema",
        "json_schema": {
            "name": "answer",
            "strict": True,
            "schema": schema,
        },
    }
