"""Requests to a model of the host, as its instances carry them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Sample


@dataclass(frozen=True)
class GenerateRequest:
    """Make as many images as `images` says under these conditions, all of which are files; `prompt` are the words for it.

    `number` is the prompt's in its task. `finished` is called with the host's model and with each request's answers,
    one for each time it was asked, while the model is still there.
    """

    conditions: Sample
    prompt: str
    images: int
    number: int
    generation: Mapping[str, Any] = field(default_factory=dict)
    finished: Callable[[Any, Sequence[tuple[GenerateRequest, str]]], None] | None = None


@dataclass(frozen=True)
class JudgeRequest:
    """Judge this sample or contest with this judge in this setting.

    `generation` holds the host's generation arguments, the user's included. `backbone` is the host's model as tables call
    it, `model_hash` tells it from others, and is empty where the host was given an object.
    """

    judged: Judged
    judge: str
    setting: str
    generation: Mapping[str, Any] = field(default_factory=dict)
    backbone: str = ""
    model_hash: str = ""
