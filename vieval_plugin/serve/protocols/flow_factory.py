"""The protocol of Flow-Factory's remote reward models: lists of prompts and of images in base64, a
list of rewards back.

Its client tries an HTTP error three times and then says that it could not connect, but stops at
once, with the reason, at `{"error": ...}` with status 200, so refusals are sent that way. It waits 60 s for
pointwise rewards and 120 s for those of a group, which are asked for at `/group/compute`
(`server_url` ending in `/group`): nothing in the body tells them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from aiohttp import web

from vieval_plugin.judges.protocol import Sample
from vieval_plugin.rewards.reward import failure_message
from vieval_plugin.rewards.samples import require_equally_many, sample_of
from vieval_plugin.serve.protocols.protocol import (
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


def read(body: Body, reading: Reading, group: str = "") -> list[RequestEntry]:
    """The entries of a body, one an image; all of one group where it is one."""
    document = json_object(body.content)
    if document.get("video") or document.get("condition_videos"):
        raise VievalError("videos are not supported; send images")
    prompts = list_of(document, "prompt", str, "strings")
    images = list_of(document, "image", str, "base64 strings")
    conditions: list[list[Any]] = [[]] * len(images)
    if document.get("condition_images"):
        conditions = list_of(document, "condition_images", list, "lists of images")
    require_equally_many(prompts, images, conditions)
    reading.require_number(len(images))
    rows = zip(prompts, images, conditions, strict=True)
    return [
        entry_of(partial(_sample, number, row, reading), group=group)
        for number, row in enumerate(rows)
    ]


def _sample(number: int, row: tuple[str, str, list[Any]], reading: Reading) -> Sample:
    prompt, image, conditions = row
    return sample_of(
        number,
        prompt,
        reading.base64_image(image),
        [reading.base64_image(condition) for condition in conditions],
        reading.conditions,
    )


def write(entries: Sequence[RequestEntry], values: Values) -> web.Response:
    """The answer: the rewards in order, or the reason that some have none."""
    rewards = [value for by_name in values for value in by_name.values()]
    message = failure_message(rewards)
    if message:
        return json_answer({"error": message})
    document = {"rewards": [reward.value for reward in rewards]}
    imputed = [number for number, reward in enumerate(rewards) if reward.imputed]
    return json_answer(document | ({"imputed": imputed} if imputed else {}))


# seconds below those that the client waits
POINTWISE = Protocol("flow_factory", "/compute", 55.0, read, write, refuses_as_ok=True)
GROUPWISE = Protocol(
    "flow_factory_group",
    "/group/compute",
    110.0,
    partial(read, group="all"),
    write,
    refuses_as_ok=True,
)
