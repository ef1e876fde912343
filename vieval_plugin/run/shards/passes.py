"""Passes over row groups, the queue that workers take them from, and what workers report."""

from __future__ import annotations

import re
import threading
from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeAlias

from vieval_plugin.judges.protocol import Status
from vieval_plugin.readers.webdataset import PLAIN
from vieval_plugin.run.shards.plan import Shard
from vieval_plugin.text.errors import VievalError

#: Variables of job arrays and of launchers that start the same command many times.
_PART_VARIABLES = (
    ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"),
    ("RANK", "WORLD_SIZE", ""),
)


@dataclass(frozen=True)
class Pass:
    """Shards of one row group, which are read together."""

    #: The shards, in order.
    shards: tuple[Shard, ...]
    #: They are judged even where another driver's worker has them open.
    is_last: bool = False


@dataclass(frozen=True)
class Written:
    """A shard whose file is there."""

    shard: Shard
    #: Its verdicts by status; empty where another worker wrote it.
    statuses: Mapping[Status, int] = field(default_factory=dict)
    #: Answers of a model that it took.
    calls: int = 0


@dataclass(frozen=True)
class NotWritten:
    """A shard without a file."""

    shard: Shard
    #: Why it has none.
    reason: str
    #: Another driver's worker has it open.
    is_open_elsewhere: bool = False
    #: It takes more calls than all that the run may make, so that the same command cannot write it.
    exceeds_budget: bool = False


ShardReport: TypeAlias = Written | NotWritten


def passes_over(shards: Iterable[Shard], written: Container[str]) -> Iterator[Pass]:
    """The passes over shards that are not written: one a row group, and of a tar, whose samples
    have a place, one a shard.
    """
    for _, group in groupby(
        (shard for shard in shards if shard.name not in written), key=_group_of
    ):
        yield Pass(tuple(group))


def _group_of(shard: Shard) -> tuple[str, int]:
    is_plain_tar = shard.path.lower().endswith(PLAIN)
    return shard.path, shard.first if is_plain_tar else shard.group


class PassQueue:
    """Passes that wait, and shards that were taken and have not ended; for several threads.

    A shard that another driver's worker has open comes again at the end, as it may have written it
    by then.
    """

    def __init__(self, passes: Iterable[Pass]) -> None:
        self._waiting = deque(passes)
        self._later: list[Shard] = []
        self._under_way: set[str] = set()
        self._is_closed = False
        self._change = threading.Condition()
        self.not_written: list[NotWritten] = []
        self.statuses: Counter[Status] = Counter()  # of verdicts that were written

    def take(self) -> Pass | None:
        """The next pass; None where none waits."""
        with self._change:
            if not self._waiting and self._later:
                later = passes_over(self._later, ())
                self._waiting.extend(Pass(work.shards, is_last=True) for work in later)
                self._later.clear()
            if not self._waiting:
                return None
            work = self._waiting.popleft()
            self._under_way |= {shard.name for shard in work.shards}
            return work

    def note(self, report: ShardReport) -> None:
        """Record how a shard ended."""
        with self._change:
            self._under_way.discard(report.shard.name)
            if isinstance(report, Written):
                self.statuses.update(report.statuses)
            elif report.is_open_elsewhere:
                self._later.append(report.shard)
            else:
                self.not_written.append(report)
            self._change.notify_all()

    def give_back(self, work: Pass) -> None:
        """Have a pass judged by another worker, as far as it has not ended: the one that took it
        died.
        """
        with self._change:
            unfinished = tuple(
                shard for shard in work.shards if shard.name in self._under_way
            )
            self._under_way -= {shard.name for shard in unfinished}
            if unfinished:
                self._waiting.appendleft(Pass(unfinished, work.is_last))
            self._change.notify_all()

    @property
    def is_done(self) -> bool:
        """Return whether nothing waits and nothing is under way."""
        return not (self._waiting or self._later or self._under_way)

    @property
    def is_closed(self) -> bool:
        """Return whether no more passes may be taken."""
        return self._is_closed

    def close(self) -> None:
        """Wake up whoever waits for a pass: there are no more."""
        with self._change:
            self._is_closed = True
            self._change.notify_all()

    def __iter__(self) -> Iterator[Pass]:
        """The passes, waiting for those that may come back."""
        while not self._is_closed:
            if work := self.take():
                yield work
                continue
            with self._change:
                if self.is_done:
                    return
                if not (self._waiting or self._later or self._is_closed):
                    self._change.wait()


def part_of(option: str, environment: Mapping[str, str]) -> tuple[int, int]:
    """The number of a part from 0, and how many there are.

    Args:
        option: `I/N`, with I from 1; or `auto` for what the variables of a Slurm array or of
            torchrun say.
        environment: the variables.

    Raises:
        VievalError: it is neither, or there are no such variables.

    >>> part_of("2/8", {}), part_of("auto", {"RANK": "0", "WORLD_SIZE": "4"})
    ((1, 8), (0, 4))
    """
    if option != "auto":
        match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", option)
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            raise VievalError(
                f"--part must be auto, or I/N such as 1/8, got {option[:40]!r}"
            )
        return int(match[1]) - 1, int(match[2])
    for number, total, first in _PART_VARIABLES:
        task_number = environment.get(number, "")
        values = task_number, environment.get(total, ""), environment.get(first, "0")
        if all(value.isdecimal() for value in values):
            task, parts, offset = map(int, values)
            if 0 <= task - offset < parts:
                return task - offset, parts
            raise VievalError(
                f"{number}={task_number} is out of range for {total}={parts}; use an array "
                "with steps of 1, or pass --part I/N"
            )
    pairs = (f"{number} and {total}" for number, total, _ in _PART_VARIABLES)
    variables = ", or ".join(pairs)
    raise VievalError(f"--part auto requires {variables}; set them or pass --part I/N")
