"""Slots of workers: a thread each, in which a worker is started, handed passes, and started
again where it died.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from vieval_plugin.run.progress import Progress
from vieval_plugin.run.shards.passes import Pass, PassQueue, ShardReport, Written
from vieval_plugin.run.shards.worker import ShardRun
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import plural

#: Deaths of a worker in a row, without a shard that it wrote, after which it is not started again.
#:
#: A row that ends its worker takes four of them, and a shard may have some such rows.
MOST_DEATHS = 30
#: Seconds between two looks at a queue that may get passes back.
POLL = 0.2


class WorkerDied(Exception):
    """A worker ended before it was done."""


@dataclass
class Slot(ABC):
    """A worker, which another takes the place of when it dies, and the passes that it was
    handed.
    """

    #: What the worker is told.
    run: ShardRun
    #: The passes of all workers.
    queue: PassQueue
    #: Called, in any thread, with numbers of rows that have their verdicts.
    on_rows: Callable[[int], None]
    #: Counts of its workers that came to their end.
    progress: Progress = field(default_factory=Progress)
    #: Deaths of its workers.
    deaths: int = 0
    #: Deaths since a shard was last written.
    deaths_in_a_row: int = 0
    #: Reason why it stopped; empty while it works.
    problem: str = ""
    #: Passes that its worker has.
    passes: list[Pass] = field(default_factory=list)
    #: It is to start no further worker.
    is_stopped: bool = False

    @abstractmethod
    def serve(self) -> None:
        """Start a worker, and hand it passes until there are no more.

        Raises:
            WorkerDied: it did.
            VievalError: it cannot go on.
        """

    @abstractmethod
    def end(self) -> int | None:
        """End the worker, if there is one; its exit code, where it has one."""

    def work(self) -> None:
        """Keep a worker at work until nothing is left; in a thread."""
        while not (self.is_stopped or self.problem or self.queue.is_closed):
            try:
                self.serve()
                return
            except WorkerDied as death:
                if self.is_stopped:
                    continue
                self.deaths += 1
                self.deaths_in_a_row += 1
                if self.deaths_in_a_row == MOST_DEATHS:
                    self.problem = f"a worker died {MOST_DEATHS} times in a row (last reason: {death})"
            except VievalError as error:
                self.problem = str(error)
            finally:
                self.end()
                for work in self.passes:
                    self.queue.give_back(work)
                self.passes.clear()

    def note(self, report: ShardReport) -> None:
        """Record how a shard ended."""
        self.queue.note(report)
        if isinstance(report, Written):
            self.deaths_in_a_row = 0
            self.on_rows(report.shard.rows)


def share_budget(run: ShardRun, workers: int) -> ShardRun:
    """The run of each of several workers."""
    if run.budget is None:
        return run
    return replace(run, budget=max(run.budget // workers, 1))


def work_in_slots(slots: Sequence[Slot], queue: PassQueue) -> list[str]:
    """Have all passes of a queue judged; lines on what that cost, and on workers that died or
    stopped.

    What a worker that died had not finished goes back to the queue.

    Raises:
        VievalError: no worker can go on; files that were written stay.
    """
    threads = [
        threading.Thread(target=slot.work, name=f"worker {n}", daemon=True)
        for n, slot in enumerate(slots)
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():  # so that signals are seen
                thread.join(1)
    finally:
        queue.close()
        for slot in slots:
            slot.is_stopped = True
            slot.end()
    problems = [slot.problem for slot in slots if slot.problem]
    if len(problems) == len(slots):
        raise VievalError(problems[-1])
    lines = sum((slot.progress for slot in slots), Progress()).lines()
    if deaths := sum(slot.deaths for slot in slots):
        lines.append(
            f"restarted {plural(deaths, 'worker')} that had died; these lines do not "
            "include their counts"
        )
    return [*lines, *(f"a worker stopped: {problem}" for problem in problems)]
