"""The pickle protocol of flow_grpo and VeRL-Omni: a dict of JPEG bytes and prompts, a dict of scores back.

flow_grpo reads `outputs`, its forks for edits send `ref_images` and read `scores`, as VeRL-Omni does. Both unpickle
every answer, whatever its status, so every one is a pickle. flow_grpo tries 429 and 503 again as long as they say when
to come back, a thousand times: only a server that is busy or stopping says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Sample
from vieval_plugin.rewards.reward import failures_in_words
from vieval_plugin.rewards.samples import sample_of
from vieval_plugin.serve.pickle_values import read_pickle, write_pickle
from vieval_plugin.serve.protocols.protocol import (
    Body,
    HttpAnswer,
    Protocol,
    Reading,
    RequestEntry,
    Values,
    entry_of,
)

_TYPE = "application/octet-stream"


def read(body: Body, reading: Reading) -> list[RequestEntry]:
    """The entries of a body, one an image."""
    document = read_pickle(body.content)
    if not isinstance(document, dict):
        raise VievalError("the body is no dict")
    images = _several(document, "images", bytes)
    prompts = _several(document, "prompts", str) if "prompts" in document else [""] * len(images)
    sources = _several(document, "ref_images", bytes) if "ref_images" in document else []
    if len(prompts) != len(images) or len(sources) not in (0, len(images)):
        raise VievalError(f"{len(images)} images, {len(prompts)} prompts and {len(sources)} ref_images")
    reading.require_number(len(images))
    return [
        entry_of(partial(_sample, number, prompt, image, sources[number : number + 1], reading))
        for number, (prompt, image) in enumerate(zip(prompts, images, strict=True))
    ]


def _several(document: Mapping[str, Any], name: str, kind: type) -> Sequence[Any]:
    members = document.get(name)
    if not isinstance(members, (list, tuple)) or not all(isinstance(member, kind) for member in members):
        raise VievalError(f"{name} is no list of {kind.__name__}")
    return members


def _sample(number: int, prompt: str, image: bytes, sources: Sequence[bytes], reading: Reading) -> Sample:
    given = [reading.image(source) for source in sources]
    return sample_of(number, prompt, reading.image(image), given, reading.conditions)


def write(entries: Sequence[RequestEntry], values: Values) -> HttpAnswer:
    """The answer: the rewards in order under both names, or the reason that some have none."""
    own = [value for by_name in values for value in by_name.values()]
    if words := failures_in_words(own):
        return refuse(words, 200)
    scores = [value.value for value in own]
    return HttpAnswer(write_pickle({"outputs": scores, "scores": scores}), content_type=_TYPE)


def refuse(reason: str, status: int) -> HttpAnswer:
    """The answer to a request that has no rewards."""
    return HttpAnswer(write_pickle({"error": reason}), status, _TYPE)


PROTOCOL = Protocol("pickle", "/pickle", 110.0, read, write, refuse)
