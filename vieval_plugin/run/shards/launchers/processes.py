"""Several workers, each in a process of its own on this machine.

A worker's process is this module as a command, and not `multiprocessing`'s, which would run the main module of whoever
starts it again. Over a pipe it is sent its run and, for each None of its own, a pass, or None where there are no more;
it sends how each shard ended, and in the end its counts and the error that ends it, if any. It ends when its parent
closes the pipe or is gone.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, Pipe
from typing import Any

from vieval_plugin.run.progress import Progress
from vieval_plugin.run.shards.passes import NotWritten, Pass, PassQueue, Written
from vieval_plugin.run.shards.worker import ShardRun, ShardWorker
from vieval_plugin.run.shutdown import stopped_like_ctrl_c
from vieval_plugin.text.errors import VievalError

MOST_DEATHS = 30
"""Deaths of a worker in a row, without a shard that it wrote, after which it is not started again.

A row that ends its worker takes four of them, and a shard may have some such rows.
"""
_POLL = 0.2  # seconds between two looks at a queue that may get passes back
_PATIENCE = 20.0  # seconds in which a process that is told to end does so


def work_in_processes(run: ShardRun, queue: PassQueue, on_rows: Callable[[int], None], processes: int) -> list[str]:
    """Have all passes of a queue judged; lines on what that cost, and on workers that died or stopped.

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
    return lines_on_workers([slot.progress for slot in slots], sum(slot.deaths for slot in slots), problems)


def lines_on_workers(progresses: Iterable[Progress], deaths: int, problems: Iterable[str]) -> list[str]:
    """Lines on what all workers cost that came to their end, on deaths, and on workers that stopped for a reason."""
    died = [f"{deaths} workers died and were started again; their counts are not in these lines"] if deaths else []
    return [*sum(progresses, Progress()).lines(), *died, *(f"a worker stopped: {problem}" for problem in problems)]


@dataclass
class _Slot:
    """A worker's process, and the passes that it was given."""

    #: What the worker is told.
    run: ShardRun
    #: The passes of all workers.
    queue: PassQueue
    #: Called with numbers of rows that have their verdicts.
    on_rows: Callable[[int], None]
    #: Counts of its workers that came to their end.
    progress: Progress = field(default_factory=Progress)
    #: Deaths of its workers.
    deaths: int = 0
    #: Reason why it stopped; empty while it works.
    problem: str = ""
    #: The worker's process.
    _process: subprocess.Popen[bytes] | None = None
    #: The pipe to it.
    _connection: Connection | None = None
    #: Passes that it has.
    _passes: list[Pass] = field(default_factory=list)
    #: Deaths since a shard was last written.
    _deaths_in_a_row: int = 0
    #: It is to start no further process.
    _stopped: bool = False

    def work(self) -> None:
        """Keep a process at work until nothing is left; in a thread."""
        while not (self._stopped or self.problem or self.queue.is_closed):
            connection = self._start()
            try:
                connection.send(self.run)
                if self._serve(connection):
                    break
            except (EOFError, OSError):
                self._note_death(self._end())
            finally:
                for work in self._passes:
                    self.queue.give_back(work)
                self._passes.clear()
        self._end()

    def stop(self) -> None:
        """End the process."""
        self._stopped = True
        self._end()

    def _start(self) -> Connection:
        self._connection, theirs = Pipe()
        # a Ctrl-C of the terminal is for the parent, which ends its children in order
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        theirs.close()
        return self._connection

    def _end(self) -> int:
        """Have the process end, and wait until it has; its exit code."""
        if self._process is None or self._connection is None:
            return 0
        self._connection.close()
        for seconds, end in ((0.5, self._process.terminate), (_PATIENCE, self._process.kill)):
            try:
                return self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                end()
        return self._process.wait()

    def _serve(self, connection: Connection) -> bool:
        """Hand passes to the process and take its reports; True when it knows that there are no more."""
        wants_pass = is_last = False
        while True:
            if wants_pass and not is_last:
                if work := self.queue.take():
                    self._passes.append(work)
                    connection.send(work)
                    wants_pass = False
                elif self.queue.is_done:
                    connection.send(None)
                    is_last = True
            if not connection.poll(_POLL):
                continue
            try:
                message: Any = connection.recv()
            except EOFError:
                if is_last:
                    return True
                raise
            if message is None:
                wants_pass = True
            elif isinstance(message, Progress):
                self.progress += message
            elif isinstance(message, VievalError):
                self.problem = str(message)
                return True
            else:
                self.queue.note(message)
                if isinstance(message, Written):
                    self._deaths_in_a_row = 0
                    self.on_rows(message.shard.rows)

    def _note_death(self, code: int) -> None:
        if self._stopped:
            return
        self.deaths += 1
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row == MOST_DEATHS:
            names = {member.value: member.name for member in signal.Signals}  # a signal of real time has none
            reason = f"exit code {code}" if code >= 0 else f"signal {names.get(-code, -code)}"
            self.problem = f"a worker died {MOST_DEATHS} times in a row, the last time of {reason}"


def main(handle: int) -> int:
    """A worker's process, from its run to its last pass."""
    connection = Connection(handle)
    with stopped_like_ctrl_c() as stop:
        try:
            asyncio.run(_work(connection.recv(), connection))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return 0
        except KeyboardInterrupt:
            return stop.code
        except VievalError as error:
            connection.send(error)
            return 1
    return 0


async def _work(run: ShardRun, connection: Connection) -> None:
    sending = threading.Lock()  # passes are asked for in one thread, and shards end in another

    def send(message: Written | NotWritten | Progress | None) -> None:
        with sending:
            connection.send(message)

    def passes() -> Iterator[Pass]:
        while True:
            send(None)
            work: Pass | None = connection.recv()
            if work is None:
                return
            yield work

    worker = ShardWorker(run, send)
    try:
        await worker.work(passes())
    finally:
        send(worker.progress)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
