"""One worker, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from vieval_plugin.run.shards.passes import PassQueue
from vieval_plugin.run.shards.worker import ShardRun, ShardWorker


def work_here(run: ShardRun, queue: PassQueue, on_rows: Callable[[int], None]) -> list[str]:
    """Have all passes of a queue judged; lines on what that cost.

    Args:
        run: what is judged, and by whom.
        queue: the passes.
        on_rows: called with numbers of rows that have their verdicts.

    Raises:
        VievalError: the run cannot go on; files that were written stay.
    """
    worker = ShardWorker(run, queue.note, lambda: on_rows(1))
    try:
        asyncio.run(worker.work(queue))
    finally:
        queue.close()
    return worker.progress.lines()
