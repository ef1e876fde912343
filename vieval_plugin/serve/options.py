"""Options and bounds of the reward server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from vieval_plugin.rewards.samples import PLAIN, Conditions

OnFailure: TypeAlias = Literal["error", "neutral"]
MIB = 2**20


@dataclass(frozen=True)
class Bounds:
    """Bounds on what strangers may send, and how long they may take."""

    body: int = 256 * MIB
    """Bytes of a request."""
    bodies: int = 1024 * MIB
    """Bytes of all requests together."""
    samples: int = 1024
    """Samples of a request."""
    pixels: int = 33_000_000
    """Pixels of an image."""
    waiting: int = 256
    """Requests that wait at once."""
    connections: int = 10_000
    """Open connections."""
    header_seconds: float = 15.0
    """Seconds that the header of a request may take."""
    body_seconds: float = 60.0
    """Seconds that the body of a request may take."""
    idle_seconds: float = 120.0
    """Seconds that a connection may say nothing between two requests."""
    drain_seconds: float = 20.0
    """Seconds that open requests have at the shutdown."""


@dataclass(frozen=True)
class ServeOptions:
    """Options of a server: where it listens, who may call, and what it does with failures."""

    host: str = "127.0.0.1"
    """Address that it listens on."""
    port: int = 8200
    """Port that it listens on, 0 for any."""
    token: str = field(default="", repr=False)
    """Token that callers have to send, empty for none."""
    hosts: tuple[str, ...] = ()
    """Further names that it is called by."""
    conditions: Conditions = PLAIN
    """Meaning of images beside the output."""
    attempts: int = 3
    """Times that a question is asked until it is answered."""
    repeats: int = 1
    """Verdicts that a reward is the mean of."""
    on_failure: OnFailure = "error"
    """With `neutral` a failed member of a group gets the mean of the others."""
    max_imputed: float = 0.1
    """Largest share of a group that gets its mean."""
    store_replies: int = 500_000
    """Most replies in the store."""
    bounds: Bounds = Bounds()
    """Bounds on what strangers may send."""
