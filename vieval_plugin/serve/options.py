"""Options and bounds of the reward server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from vieval_plugin.rewards.samples import PLAIN, Conditions

OnFailure: TypeAlias = Literal["error", "neutral"]
MIB = 2**20


@dataclass(frozen=True)
class Bounds:
    """Bounds on what strangers may send, and how long they may take.

    `body` are the bytes of a request, `bodies` those of all requests together, `samples` and `pixels` what a request and
    an image may have, `waiting` the requests that wait at once and `connections` the open ones; `header_seconds` and
    `body_seconds` bound how slowly a request may come, `idle_seconds` how long a connection may say nothing between
    two. `deadline` is when an answer is given whatever is missing, None for each protocol's own.
    """

    body: int = 256 * MIB
    bodies: int = 1024 * MIB
    samples: int = 1024
    pixels: int = 33_000_000
    waiting: int = 256
    connections: int = 10_000
    header_seconds: float = 15.0
    body_seconds: float = 60.0
    idle_seconds: float = 120.0
    drain_seconds: float = 20.0
    deadline: float | None = None


@dataclass(frozen=True)
class ServeOptions:
    """Options of a server: where it listens, who may call, and what it does with failures.

    `token` empty asks for none; `hosts` are further names that it is called by. `attempts` is how often a question is
    asked until it is answered, `repeats` how many verdicts a reward is the mean of. With `on_failure` "neutral" a failed
    member of a group gets the mean of the others, as long as no more than the share `max_imputed` of the group failed.
    `log_prompts` lets texts into the log, and `store_replies` bounds the store.
    """

    host: str = "127.0.0.1"
    port: int = 8200
    token: str = field(default="", repr=False)
    hosts: tuple[str, ...] = ()
    conditions: Conditions = PLAIN
    attempts: int = 3
    repeats: int = 1
    on_failure: OnFailure = "error"
    max_imputed: float = 0.1
    log_prompts: bool = False
    store_replies: int = 500_000
    bounds: Bounds = Bounds()
