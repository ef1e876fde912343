"""Passes over row groups, and the queue that workers take them from."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from vieval_plugin.readers.webdataset import PLAIN
from vieval_plugin.run.shards.plan import Shard
from vieval_plugin.run.shards.reports import NotWritten, ShardReport


@dataclass(frozen=True)
class Pass:
    """Shards of one row group, which are read together; `is_last` where nobody else's having them open counts any more."""

    shards: tuple[Shard, ...]
    is_last: bool = False


def passes_over(shards: Iterable[Shard], done: Container[str]) -> Iterator[Pass]:
    """The passes over shards that are not done: one a row group, and of a tar, whose samples have a place, one a shard."""
    left = (shard for shard in shards if shard.name not in done)
    for _, group in groupby(left, key=_group_of):
        yield Pass(tuple(group))


def _group_of(shard: Shard) -> tuple[str, int]:
    return shard.path, shard.first if shard.path.lower().endswith(PLAIN) else shard.group


class PassQueue:
    """Passes that wait, and shards that were taken and have not ended; for several threads.

    A shard that another driver's worker has open comes again at the end, as it may have written it by then.
    """

    def __init__(self, passes: Iterable[Pass]) -> None:
        self._waiting = deque(passes)
        self._later: list[Shard] = []
        self._taken: set[str] = set()
        self._closed, self._change = False, threading.Condition()
        self.not_written: list[NotWritten] = []

    def take(self) -> Pass | None:
        """The next pass; None where none waits."""
        with self._change:
            if not self._waiting and self._later:
                self._waiting.extend(Pass(of.shards, is_last=True) for of in passes_over(self._later, ()))
                self._later.clear()
            if not self._waiting:
                return None
            work = self._waiting.popleft()
            self._taken |= {shard.name for shard in work.shards}
            return work

    def note(self, report: ShardReport) -> None:
        """Take note of how a shard ended."""
        with self._change:
            self._taken.discard(report.shard.name)
            if isinstance(report, NotWritten):
                if report.is_open_elsewhere:
                    self._later.append(report.shard)
                else:
                    self.not_written.append(report)
            self._change.notify_all()

    def give_back(self, work: Pass) -> None:
        """Have a pass judged by another worker, as far as it has not ended: the one that took it died."""
        with self._change:
            left = tuple(shard for shard in work.shards if shard.name in self._taken)
            self._taken -= {shard.name for shard in left}
            if left:
                self._waiting.appendleft(Pass(left, work.is_last))
            self._change.notify_all()

    @property
    def is_done(self) -> bool:
        """Return whether nothing waits and nothing is under way."""
        return not (self._waiting or self._later or self._taken)

    @property
    def is_closed(self) -> bool:
        """Return whether nobody is to take passes any more."""
        return self._closed

    def close(self) -> None:
        """Wake up whoever waits for a pass: there are no more."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def __iter__(self) -> Iterator[Pass]:
        """All passes, waiting for those that may come back."""
        while not self._closed:
            if work := self.take():
                yield work
                continue
            with self._change:
                if self.is_done:
                    return
                if not (self._waiting or self._later or self._closed):
                    self._change.wait()
