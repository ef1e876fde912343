"""Several workers, each in a process of its own on this machine.

A worker's process is this module as a command, and not `multiprocessing`'s, which would run the
main module of whoever starts it again. Over a pipe it is sent its run and, for each None of its
own, a pass, or None where there are no more; it sends how each shard ended, and in the end its
counts and the error that ends it, if any. It ends when its parent closes the pipe or is gone.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe

from vieval_plugin.run.progress import Progress
from vieval_plugin.run.shards.launchers.slots import (
    POLL,
    Slot,
    WorkerDied,
    share_budget,
    work_in_slots,
)
from vieval_plugin.run.shards.passes import NotWritten, Pass, PassQueue, Written
from vieval_plugin.run.shards.worker import ShardRun, ShardWorker
from vieval_plugin.run.shutdown import stopped_like_ctrl_c
from vieval_plugin.text.errors import VievalError

_PATIENCE = 20.0  # seconds in which a process that is told to end does so


def work_in_processes(
    run: ShardRun,
    queue: PassQueue,
    on_rows: Callable[[int], None],
    processes: int,
) -> list[str]:
    """`work_in_slots` by so many processes, which share the run's budget."""
    run = share_budget(run, processes)
    return work_in_slots(
        [_Process(run, queue, on_rows) for _ in range(processes)],
        queue,
    )


@dataclass
class _Process(Slot):
    """A slot whose worker is a process."""

    #: The worker's process.
    _process: subprocess.Popen[bytes] | None = None
    #: The pipe to it.
    _connection: Connection | None = None

    def serve(self) -> None:
        connection = self._start()
        try:
            connection.send(self.run)
            self._hand_out(connection)
        except (EOFError, OSError):
            code = self.end()
            reason = f"exit code {code}"
            if code < 0:
                # a signal of real time has no name
                names = {member.value: member.name for member in signal.Signals}
                reason = f"signal {names.get(-code, -code)}"
            raise WorkerDied(reason) from None

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

    def end(self) -> int:
        """End the process, and wait until it has ended; its exit code."""
        if self._process is None or self._connection is None:
            return 0
        self._connection.close()
        for seconds, end in (
            (0.5, self._process.terminate),
            (_PATIENCE, self._process.kill),
        ):
            try:
                return self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                end()
        return self._process.wait()

    def _hand_out(self, connection: Connection) -> None:
        """Hand passes to the process and take its reports, until it has ended and knows that
        there are no more.
        """
        wants_pass = is_last = False
        while True:
            if wants_pass and not is_last:
                if work := self.queue.take():
                    self.passes.append(work)
                    connection.send(work)
                    wants_pass = False
                elif self.queue.is_done:
                    connection.send(None)
                    is_last = True
            if not connection.poll(POLL):
                continue
            try:
                message = connection.recv()
            except EOFError:
                if is_last:
                    return
                raise
            if message is None:
                wants_pass = True
            elif isinstance(message, Progress):
                self.progress += message
            elif isinstance(message, VievalError):
                raise message
            else:
                self.note(message)


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
    sending = (
        threading.Lock()
    )  # passes are asked for in one thread, and shards end in another

    def send(message: Written | NotWritten | Progress | None) -> None:
        with sending:
            connection.send(message)

    def passes() -> Iterator[Pass]:
        while True:
            send(None)
            work = connection.recv()
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
