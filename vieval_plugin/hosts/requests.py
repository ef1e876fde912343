"""Requests to a model of the host, as its instances carry them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Sample


@dataclass(frozen=True)
class GenerateRequest:
    """Request for images under conditions, all of which are files."""

    conditions: Sample
    """Sample without an output."""
    prompt: str
    """Words of the request."""
    images: int
    """Number of images."""
    number: int
    """Number of the prompt in its task."""
    generation: Mapping[str, Any] = field(default_factory=dict)
    """The host's generation arguments."""
    finished: Callable[[Any, Sequence[tuple[GenerateRequest, str]]], None] | None = None
    """Called with the host's model and each request's answers, one for each time it was asked, while the model is there."""


@dataclass(frozen=True)
class JudgeRequest:
    """Request to judge a sample or contest."""

    judged: Judged
    """Sample or contest."""
    judge: str
    """Name of the judge."""
    setting: str
    """Setting of the judge."""
    generation: Mapping[str, Any] = field(default_factory=dict)
    """The host's generation arguments, the user's included."""
    backbone: str = ""
    """The host's model as tables call it."""
    model_hash: str = ""
    """Hash that tells the model from others; empty where the host was given an object."""
