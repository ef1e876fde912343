"""Options and bounds of the reward server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from vieval_plugin.rewards.samples import PLAIN, Conditions

OnFailure: TypeAlias = Literal["error", "neutral"]
MIB = 2**20


@dataclass(frozen=True)
class Bounds:
    """Limits on the size and duration of requests."""

    #: Bytes of a request.
    body: int = 256 * MIB
    #: Bytes of all requests together.
    bodies: int = 1024 * MIB
    #: Samples of a request.
    samples: int = 1024
    #: Pixels of an image.
    pixels: int = 33_000_000
    #: Requests that wait at once.
    waiting: int = 256
    #: Open connections.
    connections: int = 10_000
    #: Seconds that the header of a request may take.
    header_seconds: float = 15.0
    #: Seconds that the body of a request may take.
    body_seconds: float = 60.0
    #: Seconds that a connection may say nothing between two requests.
    idle_seconds: float = 120.0
    #: Seconds that open requests have at the shutdown.
    drain_seconds: float = 20.0


@dataclass(frozen=True)
class ServeOptions:
    """Options of a server: where it listens, what it reads, and what it does with failures."""

    #: Address that it listens on.
    host: str = "127.0.0.1"
    #: Port that it listens on, 0 for any.
    port: int = 8200
    #: Meaning of images beside the output.
    conditions: Conditions = PLAIN
    #: Times that a question is asked until it is answered.
    attempts: int = 3
    #: Verdicts that a reward is the mean of.
    repeats: int = 1
    #: With `neutral` a failed member of a group gets the mean of the others.
    on_failure: OnFailure = "error"
    #: Largest share of a group that gets its mean.
    max_imputed: float = 0.1
    #: Most replies in the store.
    store_replies: int = 500_000
    #: Bounds on what strangers may send.
    bounds: Bounds = Bounds()
