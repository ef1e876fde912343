"""Several workers, each in a process of its own on this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from vieval_plugin.errors import VievalError
from vieval_plugin.run.shards.children import WORK, Child
from vieval_plugin.run.shards.isolated import in_words
from vieval_plugin.run.shards.passes import Pass, PassQueue
from vieval_plugin.run.shards.reports import Written
from vieval_plugin.run.shards.worker import ShardRun

MOST_DEATHS = 10
"""Deaths of a worker in a row, without a shard that it wrote, after which it is not started again."""
_POLL = 0.2  # seconds between two looks at a queue that may get passes back


def work_in_processes(run: ShardRun, queue: PassQueue, on_rows: Callable[[int], None], processes: int) -> list[str]:
    """Have all passes of a queue judged; lines on workers that died or stopped.

    A worker that dies is started again, and what it had not finished goes back to the queue.

    Args:
        run: what is judged, and by whom; its budget is shared out.
        queue: the passes.
        on_rows: called, in any thread, with numbers of rows that have their verdicts.
        processes: how many workers.

    Raises:
        VievalError: no worker can go on; files that were written stay.
    """
    budget = None if run.budget is None else max(run.budget // processes, 1)
    slots = [_Slot(replace(run, budget=budget), queue, on_rows) for _ in range(processes)]
    threads = [threading.Thread(target=slot.work, name=f"worker {n}", daemon=True) for n, slot in enumerate(slots)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():  # so that signals are seen
                thread.join(1)
    finally:
        queue.close()
        for slot in slots:
            slot.stop()
    problems = [slot.problem for slot in slots if slot.problem]
    if len(problems) == processes:
        raise VievalError(problems[-1])
    deaths = [slot.deaths for slot in slots]
    lines = [f"{sum(deaths)} workers died and were started again"] if any(deaths) else []
    return [*lines, *(f"a worker stopped: {problem}" for problem in problems)]


@dataclass
class _Slot:
    """A worker's place: the process that is in it now, and the passes that this was given."""

    run: ShardRun
    queue: PassQueue
    on_rows: Callable[[int], None]
    deaths: int = 0
    problem: str = ""
    _child: Child | None = None
    _held: list[Pass] = field(default_factory=list)
    _in_a_row: int = 0
    _stopped: bool = False

    def work(self) -> None:
        """Keep a child at work until nothing is left; in a thread."""
        while not (self._stopped or self.problem or self.queue.is_closed):
            self._child = child = Child(WORK, self.run)
            try:
                if self._serve(child):
                    break
            except (EOFError, OSError):
                self._note_death(child.end())
            finally:
                for work in self._held:
                    self.queue.give_back(work)
                self._held.clear()
        if self._child:
            self._child.end()

    def stop(self) -> None:
        """End the child."""
        self._stopped = True
        if self._child:
            self._child.end()

    def _serve(self, child: Child) -> bool:
        """Hand passes to a child and take its reports; True when it has been told that there are no more."""
        wants_pass = told = False
        while True:
            if wants_pass and not told:
                if work := self.queue.take():
                    self._held.append(work)
                    child.connection.send(work)
                    wants_pass = False
                elif self.queue.is_done:
                    child.connection.send(None)
                    told = True
            if not child.connection.poll(_POLL):
                continue
            try:
                message = child.connection.recv()
            except EOFError:
                if told:
                    return True
                raise
            if message is None:
                wants_pass = True
            elif isinstance(message, VievalError):
                self.problem = str(message)
                return True
            else:
                self.queue.note(message)
                if isinstance(message, Written):
                    self._in_a_row = 0
                    self.on_rows(message.shard.rows)

    def _note_death(self, code: int) -> None:
        if self._stopped:
            return
        self.deaths += 1
        self._in_a_row += 1
        if self._in_a_row == MOST_DEATHS:
            self.problem = f"a worker died {MOST_DEATHS} times in a row, the last time of {in_words(code)}"
