"""Reports of workers on the shards that they were given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from vieval_plugin.run.shards.plan import Shard


@dataclass(frozen=True)
class Written:
    """A shard whose file is there; `statuses` counts its verdicts, and is empty where another worker wrote it."""

    shard: Shard
    statuses: Mapping[str, int] = field(default_factory=dict)
    calls: int = 0


@dataclass(frozen=True)
class NotWritten:
    """A shard without a file, and why.

    `is_open_elsewhere` where another driver's worker has it open; `exceeds_budget` where it takes more calls than all
    that the run may make, so that the same command cannot write it.
    """

    shard: Shard
    reason: str
    is_open_elsewhere: bool = False
    exceeds_budget: bool = False


ShardReport: TypeAlias = Written | NotWritten
