"""A child process that judges, by what its parent sends: a run, and then samples, or passes that it asks for."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from vieval_plugin.errors import VievalError
from vieval_plugin.run.prepare import prepare
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.run.session import Session
from vieval_plugin.run.shards.children import JUDGE
from vieval_plugin.run.shards.worker import ShardRun, ShardWorker
from vieval_plugin.run.shutdown import stopped_like_ctrl_c

if TYPE_CHECKING:
    from vieval_plugin.run.shards.passes import Pass
    from vieval_plugin.run.shards.reports import ShardReport


def main(task: str, handle: int) -> int:
    """A child's life: until its parent closes the connection."""
    connection = Connection(handle)
    with stopped_like_ctrl_c() as stop:
        try:
            run = connection.recv()
            asyncio.run(_judge(run, connection) if task == JUDGE else _work(run, connection))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return 0
        except KeyboardInterrupt:
            return stop.code
        except VievalError as error:
            connection.send(error)
            return 1
    return 0


async def _judge(run: ShardRun, connection: Connection) -> None:
    prepared = prepare(run.judge, run.setting, run.options, run.backbone)
    async with Session(run.options, run.backbone, Progress(), prepared.asks_a_model) as session:
        while True:
            judged = await asyncio.to_thread(connection.recv)
            outcomes: dict[int, Outcome] = {}
            await session.judge([judged], prepared, outcomes, bar=False)
            connection.send(outcomes[0])


async def _work(run: ShardRun, connection: Connection) -> None:
    sending = threading.Lock()  # passes are asked for in one thread, and shards end in another

    def send(message: ShardReport | None) -> None:
        with sending:
            connection.send(message)

    def passes() -> Iterator[Pass]:
        while True:
            send(None)
            work: Any = connection.recv()
            if work is None:
                return
            yield work

    await ShardWorker(run, send).work(passes())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
