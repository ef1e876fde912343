"""The protocol of UniRL's reward service: requests with a history of turns, each for the rewards
that it names.

Its client takes the first number of a reward by default, fails a sample that has an error, and then
stops the training with it. It waits 300 s, tries 429 and 5xx again, and raises any other 4xx at
once. An edit has two turns, the source and the output, with the instruction in both. Requests may
carry names of their own, which are sent back as they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from aiohttp import web

from vieval_plugin.judges.protocol import Sample
from vieval_plugin.rewards.samples import sample_of
from vieval_plugin.serve.protocols.protocol import (
    VALUE,
    Body,
    Protocol,
    Reading,
    RequestEntry,
    Values,
    entry_of,
    json_answer,
    json_object,
    list_of,
)
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.yaml_json import JsonObject

_VERSION = "1"
_REWARDS = "required_rewards"
_IDENTITY = (
    "request_id",
    "sample_id",
    "group_id",
    "source_rank",
    "policy_version",
    "idempotency_key",
)


def read(body: Body, reading: Reading) -> list[RequestEntry]:
    """The entries of a body, one a request in it."""
    document = json_object(body.content)
    if document.get("protocol_version", _VERSION) != _VERSION:
        raise VievalError(f"`protocol_version` must be {_VERSION!r}")
    requests = list_of(document, "requests", dict, "objects")
    reading.require_number(len(requests))
    return [_entry(number, request, reading) for number, request in enumerate(requests)]


def _entry(number: int, request: JsonObject, reading: Reading) -> RequestEntry:
    is_named = "request_id" in request
    fields = {"identity": {name: request.get(name) for name in _IDENTITY if is_named}}
    try:
        names = list_of(request, _REWARDS, str, "reward names")
        if not names:
            raise VievalError(f"`{_REWARDS}` must not be empty")
    except VievalError as error:
        return RequestEntry(None, str(error), rewards=(), fields=fields)
    return entry_of(
        partial(_sample, number, request, reading),
        rewards=tuple(dict.fromkeys(names)),
        fields=fields,
    )


def _sample(number: int, request: JsonObject, reading: Reading) -> Sample:
    turns = list_of(request, "history", dict, "turns")
    if not turns:
        raise VievalError("`history` must not be empty")
    if any(turn.get("video_b64") for turn in turns):
        raise VievalError("videos are not supported; send images")
    prompt = turns[-1].get("text") or ""
    if not isinstance(prompt, str):
        raise VievalError("`text` of a turn must be a string")
    images = [
        reading.base64_image(turn["image_b64"])
        for turn in turns
        if turn.get("image_b64")
    ]
    if not images:
        raise VievalError("at least one turn must have an image")
    return sample_of(
        number,
        prompt,
        images[-1],
        images[:-1],
        reading.conditions,
    )


def write(entries: Sequence[RequestEntry], values: Values) -> web.Response:
    """The answer: for each request its rewards, and the reason for each that has none."""
    results = []
    errors = []
    for entry, by_name in zip(entries, values, strict=True):
        result = {}
        reasons = {}
        for name, value in by_name.items():
            if value.value is None:
                reasons[name] = redacted(f"{value.status}: {value.reason}")
            else:
                result[name] = {VALUE: value.value}
        for name in entry.rewards or ():
            if name not in by_name:
                reasons[name] = "unknown reward"
        results.append(result)
        errors.append(reasons if entry.rewards else {_REWARDS: entry.fault})
    document = {"protocol_version": _VERSION, "results": results, "errors": errors}
    identities = [entry.fields["identity"] for entry in entries]
    return json_answer(
        document
        | ({"identities": identities} if identities and all(identities) else {})
    )


PROTOCOL = Protocol(
    "unirl",
    "/unirl/score",
    280.0,
    read,
    write,
    reason_key="detail",
    all_rewards=True,
)
