"""Reads what `vieval export --trainer trl` wrote: conversations, their images, and which turns are to be learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.errors import VievalError
from vieval_plugin.records import lines_of
from vieval_plugin.text.untrusted import isfile
from vieval_plugin.text.yaml_json import read_json


@dataclass(frozen=True)
class LearntTurn:
    """A turn to learn and what comes before it, as TRL has messages; `images` are those of both, in order.

    `sample` is the id of what was judged, as far as its uid: benchmark, part, image model where there is one, uid.
    """

    id: str
    sample: str
    prompt: tuple[dict[str, Any], ...]
    completion: tuple[dict[str, Any], ...]
    images: tuple[str, ...]


def read(files: Sequence[Path]) -> list[LearntTurn]:
    """The turns to learn of exported conversations, in order.

    Raises:
        VievalError: in one line, a file that cannot be read or was exported for another trainer, a row that is no
            conversation, an image that is not there, and conversations about data that may not train a model.
    """
    found: list[LearntTurn] = []
    for file in files:
        try:
            lines = lines_of(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise VievalError(
                f"{file}: cannot be read ({error.strerror}); `vieval export` writes such a file"
            ) from None
        for number, line in enumerate(lines, start=1):
            try:
                found += _turns(read_json(line))
            except VievalError as error:
                raise VievalError(f"{file}: row {number}: {error}") from None
            except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
                said = " ".join(str(error).split())[:100]
                raise VievalError(
                    f"{file}: row {number} is no conversation for TRL ({said}); write it with vieval export --trainer trl"
                ) from None
    if not found:
        raise VievalError(f"{', '.join(map(str, files))}: no turns to learn")
    return found


def _turns(row: dict[str, Any]) -> list[LearntTurn]:
    _require_trainable(row["id"])
    messages, images = row["messages"], row["images"]
    for image in images:
        if not isfile(image):
            raise VievalError(f"the image {image} is not there; export the run again")
    return [_turn(row["id"], messages, images, place) for place in row["trained"]]


def _turn(identity: str, messages: list[dict[str, Any]], images: list[str], place: int) -> LearntTurn:
    if messages[place]["role"] != "assistant":
        raise ValueError(f"message {place} is not the model's")
    shown = sum(part["type"] == "image" for message in messages[: place + 1] for part in message["content"])
    if shown > len(images):
        raise ValueError(f"{shown} images are shown and {len(images)} named")
    name, about = f"{identity}#{place}", identity.split("/")
    uid = "/".join(about[:4])
    return LearntTurn(name, uid, tuple(messages[:place]), (messages[place],), tuple(images[:shown]))


def _require_trainable(identity: str) -> None:
    benchmark = benchmark_registry.benchmarks().get(identity.split("/")[0])
    if benchmark is not None and not benchmark.trainable:
        raise VievalError(
            f"{identity} is about {benchmark.name}, whose data may not train a model (licence: {benchmark.licence}); "
            "leave it out"
        )
