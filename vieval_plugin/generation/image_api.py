"""Images from a server that speaks the OpenAI protocol: `images/generations`, and `images/edits`
where images are given.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from vieval_plugin.backends.concurrency import gather_or_cancel
from vieval_plugin.backends.http.faults import Refused
from vieval_plugin.backends.http.image_encoding import File, FormBody
from vieval_plugin.backends.http.server import Server, ServerOptions, Usage
from vieval_plugin.generation.requests import (
    ImageRequest,
    answer_json,
    file_for,
    transparent_where_white,
)
from vieval_plugin.images import examine, read_bytes
from vieval_plugin.judges.protocol import CONDITION_ROLES, Image, Status
from vieval_plugin.media.files import write_whole
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.yaml_json import JsonObject

GENERATIONS = "images/generations"
EDITS = "images/edits"
_NAMES_NONE = "the response contains neither b64_json nor url"


@dataclass(frozen=True)
class ImageApi:
    """A server's image model."""

    model: str
    #: Options for calling it.
    server: ServerOptions
    #: Folder for its images.
    folder: Path
    #: Further fields of a request.
    extra: Mapping[str, Any] = field(default_factory=dict)


def make(
    api: ImageApi,
    requests: Sequence[ImageRequest],
    usage: Usage,
    seed: int = 0,
    bar: bool = True,
) -> list[str]:
    """Answers in the form of a host, in order; an image that is in the folder already is not asked
    for again.

    Args:
        api: who makes them.
        requests: what.
        usage: counts calls and failures.
        seed: of the waits between tries.
        bar: whether to show progress.

    Raises:
        VievalError: no request can be answered: a wrong key, or a server that is down for good.
    """
    return asyncio.run(_make(api, requests, usage, seed, bar))


async def _make(
    api: ImageApi,
    requests: Sequence[ImageRequest],
    usage: Usage,
    seed: int,
    bar: bool,
) -> list[str]:
    progress_bar = tqdm(
        total=len(requests),
        desc="Generating",
        unit="prompt",
        disable=not bar,
    )
    async with Server(api.server, usage, seed, chats=False) as server:

        async def answer_with_progress(request: ImageRequest) -> str:
            try:
                return await _answer(api, server, request, usage)
            finally:
                progress_bar.update()

        with progress_bar:
            return await gather_or_cancel(
                answer_with_progress(request) for request in requests
            )


async def _answer(
    api: ImageApi, server: Server, request: ImageRequest, usage: Usage
) -> str:
    how = {"api": api.model, "extra": _extra(api, request)}
    files = [
        file_for(api.folder, request.conditions, request.prompt, number, how)
        for number in request.numbers
    ]
    if all(path.is_file() for path in files):
        usage.cached += 1
        return answer_json(files)
    started = time.monotonic()
    failed = list[Refused]()
    try:
        path, body = _request(api, request)
        answer = await server.post(
            path,
            body,
            partial(_unusable, images=len(files)),
        )
        for file, item in zip(files, answer["data"], strict=False):
            if file.is_file():  # of an answer whose other images failed
                continue
            try:
                write_whole(file, await _image(server, item), "data")
            except Refused as refused:
                failed.append(refused)
    except Refused as refused:
        failed.append(refused)
    finished = [file for file in files if file.is_file()]
    if not failed:
        return answer_json(finished, seconds=time.monotonic() - started)
    usage.failures.update(refused.kind for refused in failed)
    return answer_json(finished, failed[0].reason, status=failed[0].status)


def _request(api: ImageApi, generation: ImageRequest) -> tuple[str, JsonObject]:
    fields = {
        "model": api.model,
        "prompt": generation.prompt,
        "n": generation.images,
        **_extra(api, generation),
    }
    images = generation.conditions.images
    roles = [role for role in CONDITION_ROLES if role in images and role != "mask"]
    if not roles:
        return GENERATIONS, fields
    files = [_file(role, read_bytes(images[role])) for role in roles]
    form = FormBody({**fields, "image[]" if len(files) > 1 else "image": files})
    if "mask" in images:
        form["mask"] = File("mask.png", transparent_where_white(images["mask"]))
    return EDITS, form


def _extra(api: ImageApi, request: ImageRequest) -> JsonObject:
    return {**api.extra, **({} if request.seed is None else {"seed": request.seed})}


def _file(role: str, data: bytes) -> File:
    if data.startswith(b"\xff\xd8"):
        return File(f"{role}.jpg", data, "image/jpeg")
    return File(f"{role}.png", data)


def _unusable(answer: Mapping[str, Any], images: int) -> str | None:
    data = answer.get("data")
    if not isinstance(data, list) or not data:
        return "the response contains no images"
    return None if any(map(_names_image, data[:images])) else _NAMES_NONE


def _names_image(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    return isinstance(item.get("b64_json") or item.get("url"), str)


async def _image(server: Server, item: Any) -> bytes:
    if not _names_image(item):
        raise Refused(Status.API_ERROR, "malformed answer", _NAMES_NONE)
    if isinstance(item.get("b64_json"), str):
        try:
            data = base64.b64decode(item["b64_json"], validate=True)
        except (binascii.Error, ValueError):
            raise Refused(
                Status.API_ERROR,
                "malformed answer",
                "b64_json is not valid base64",
            ) from None
    else:
        data = await server.fetch(item["url"])
    try:
        examine(Image(data))
    except VievalError as error:
        reason = f"the server sent an unreadable image: {error}"
        raise Refused(Status.API_ERROR, "unreadable image", reason) from None
    return data
