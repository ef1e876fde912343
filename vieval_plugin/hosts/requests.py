"""Requests to a model of the host, as its instances carry them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Sample


@dataclass(frozen=True, eq=False)  # the host repeats the object: each is a key
class GenerateRequest:
    """Request for images under conditions, all of which are files."""

    #: Sample without an output.
    conditions: Sample
    #: Words of the request.
    prompt: str
    images: int
    #: Number of the prompt in its task.
    number: int
    #: The host's generation arguments.
    generation: Mapping[str, Any] = field(default_factory=dict)
    #: Called with the host's model and each request's answers, one for each time it was asked,
    #: while the model is there.
    finished: Callable[[Any, Sequence[tuple[GenerateRequest, str]]], None] | None = None


@dataclass(frozen=True, eq=False)
class JudgeRequest:
    """Request to judge a sample or contest."""

    #: Sample or contest.
    judged: Judged
    judge: str
    #: Setting of the judge.
    setting: str
    #: The host's generation arguments, the user's included.
    generation: Mapping[str, Any] = field(default_factory=dict)
    #: The host's model as tables call it.
    backbone: str = ""
    #: Hash that tells the model from others; empty where the host was given an object.
    model_hash: str = ""
