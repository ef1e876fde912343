"""Scorers behind a server: vLLM's pooling, classify and score endpoints, called as all servers are.

`pooling` gives the hidden state of the last token, which a head here reads, or a vector from
which one number is taken; `classify` the numbers of a head that the server has; `score` the number
of a query and a document.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from vieval_plugin.backends.cache.store import key_of
from vieval_plugin.backends.concurrency import gather_or_cancel
from vieval_plugin.backends.http.faults import Refused
from vieval_plugin.backends.http.image_encoding import Encoded, encode
from vieval_plugin.backends.http.server import Server, Usage, server_options
from vieval_plugin.backends.metrics.batcher import PreparedMeasure
from vieval_plugin.backends.metrics.encoders import Activation, load_head
from vieval_plugin.backends.metrics.network_metrics import ServedMetric
from vieval_plugin.backends.reply_checks import checked
from vieval_plugin.backends.weights import library
from vieval_plugin.config import Backbone
from vieval_plugin.judges.protocol import Failure, Measure, Measurement, Reply
from vieval_plugin.prompts import packs
from vieval_plugin.prompts.schema import StrictModel
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.yaml_json import JsonObject

NAME = "served"


class ServedScorer(StrictModel):
    """The section `network` of a description; `server` has the options of a backbone."""

    server: Backbone
    endpoint: Literal["pooling", "classify", "score"]
    system: str = ""
    head: str = ""
    prefix: str = ""
    activation: Activation = "relu"
    size: int = Field(0, ge=0)
    output: int = Field(0, ge=0)
    probability: bool = False

    @model_validator(mode="after")
    def _head_of_a_vector(self) -> ServedScorer:
        if self.head and (self.endpoint != "pooling" or not self.size):
            raise ValueError(
                "`head` requires `endpoint: pooling` and the `size` of its vectors"
            )
        return self


class ServedInstrument:
    """A served scorer as an instrument; its connections live in the one thread that computes."""

    def __init__(self, model: str, usage: Usage) -> None:
        """Open the scorer of a description; VievalError where it has an unknown key, or names a
        head that does not fit.
        """
        described = packs.load(model)
        settings = packs.network_settings(described, ServedScorer)
        self._settings = settings
        self._usage = usage
        self._described = described
        self.by = f"{described.name} on {settings.server.model}"
        self.batch = 4 * settings.server.num_concurrent
        self._head = None
        digest = ""
        if settings.head:
            file = Path(described.resolved(settings.head))
            self._head = load_head(
                file,
                settings.prefix,
                settings.activation,
                settings.size,
            )
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
        fields = {
            "endpoint",
            "system",
            "prefix",
            "activation",
            "output",
            "probability",
        }
        self._identity = {
            "metric": NAME,
            "model": settings.server.model,
            "head": digest,
            **settings.model_dump(include=fields),
            "extra": dict(settings.server.extra),
        }
        options = server_options(described.name, settings.server)
        # these endpoints stand beside /v1 and not under it
        urls = tuple(url.rstrip("/").removesuffix("/v1") for url in options.urls)
        self._options = replace(
            options,
            urls=urls,
            path=settings.endpoint,
            hello=self._body([], "Say hello."),
        )
        self._loop = asyncio.new_event_loop()
        self._server: Server | None = None

    def look(self, ask: Measure) -> PreparedMeasure:
        """The request of an ask, its images decoded once to see that they can be."""
        images = [
            encode(
                ask.images[f"image_{n}"],
                self._settings.server.max_pixels,
            )
            for n in range(len(ask.images))
        ]
        key = key_of(
            {
                **self._identity,
                "images": [image.digest for image in images],
                "text": ask.texts["text"],
            }
        )
        return PreparedMeasure(
            key,
            self._body(images, ask.texts["text"]),
            notes=tuple(
                dict.fromkeys(note for image in images for note in image.notes)
            ),
        )

    def compute(self, contents: Sequence[JsonObject]) -> list[Reply]:
        return self._loop.run_until_complete(self._all(contents))

    def close(self) -> None:
        """Close the connections, in the thread that computes."""
        if self._server is not None:
            self._loop.run_until_complete(self._server.__aexit__())
        self._loop.close()

    async def _all(self, contents: Sequence[JsonObject]) -> list[Reply]:
        if self._server is None:
            self._server = await Server(self._options, self._usage).__aenter__()
        server = self._server
        return await gather_or_cancel(self._reply(server, body) for body in contents)

    async def _reply(self, server: Server, body: JsonObject) -> Reply:
        reply: Reply
        try:
            reply = Measurement(
                self._value(
                    await server.post(
                        self._settings.endpoint,
                        body,
                        self._problem,
                    )
                )
            )
        except Refused as refused:
            self._usage.failures[refused.kind] += 1
            reply = Failure(refused.status, refused.reason)
        return checked(reply)

    def _problem(self, answer: JsonObject) -> str | None:
        try:
            self._value(answer)
        except (LookupError, TypeError, ValueError) as error:
            return (
                f"invalid response from the endpoint {self._settings.endpoint} "
                f"({type(error).__name__})"
            )
        return None

    def _value(self, answer: JsonObject) -> float:
        """The number of an answer; LookupError, TypeError or ValueError where it has none."""
        [entry] = answer["data"]
        if self._settings.endpoint == "score":
            return float(entry["score"])
        field = "data" if self._settings.endpoint == "pooling" else "probs"
        numbers = list(map(float, entry[field]))
        if self._head is None:
            return numbers[self._settings.output]
        if len(numbers) != self._settings.size:
            raise VievalError(
                f"{self._described.path}: network.size must be {len(numbers)}, the length "
                f"of the server's vectors, got {self._settings.size}"
            )
        with library("torch").inference_mode():
            return float(
                self._head(library("torch").tensor([numbers]))[0, self._settings.output]
            )

    def _body(self, images: Sequence[Encoded], text: str) -> JsonObject:
        """The request of an endpoint: images before the text, and numbers as the network has
        them unless told otherwise.
        """
        pictures: list[JsonObject] = [
            {"type": "image_url", "image_url": {"url": image}} for image in images
        ]
        settings = self._settings
        common = {
            **settings.server.extra,
            "model": settings.server.model,
            "use_activation": settings.probability,
        }
        if settings.endpoint == "score":
            return {
                **common,
                "queries": text,
                "documents": {"content": pictures} if pictures else text,
            }
        turns: list[JsonObject] = []
        if settings.system:
            turns.append({"role": "system", "content": settings.system})
        content = [*pictures, {"type": "text", "text": text}]
        turns.append({"role": "user", "content": content})
        task = {"task": "embed"} if settings.endpoint == "pooling" else {}
        return {
            **task,
            **common,
            "messages": turns,
            "add_generation_prompt": True,
        }


METRIC = ServedMetric(NAME, ServedInstrument)
