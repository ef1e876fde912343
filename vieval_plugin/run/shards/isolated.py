"""A judge in a process of its own, for rows that may end it."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import TYPE_CHECKING

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Status
from vieval_plugin.records import unjudged
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.run.shards.children import JUDGE, Child

if TYPE_CHECKING:
    from vieval_plugin.run.shards.worker import ShardRun

_TRIES = 2


class IsolatedJudge:
    """Judges one sample at a time in a child process, which is started when it is first needed; `close` it in the end."""

    def __init__(self, run: ShardRun) -> None:
        self._run = run
        self._child: Child | None = None
        self._closed, self._busy = False, threading.Lock()

    async def judge(self, judged: Judged) -> Outcome:
        """The outcome of a sample; `tool_error` where the child died of it twice, VievalError where none can be had."""
        return await asyncio.to_thread(self._judge, judged)

    def close(self) -> None:
        """End the child, whatever it is at."""
        self._closed = True
        if self._child:
            self._child.end()

    def _judge(self, judged: Judged) -> Outcome:
        with self._busy:
            ending = ""
            for _ in range(_TRIES):
                if self._closed:
                    break
                if self._child is None:
                    self._child = Child(JUDGE, self._run)
                try:
                    self._child.connection.send(judged)
                    answer: Outcome | VievalError = self._child.connection.recv()
                except (EOFError, OSError):
                    ending, self._child = in_words(self._child.end()), None
                    continue
                if isinstance(answer, VievalError):
                    raise answer
                return answer
            reason = f"it ended the process that judged it {_TRIES} times ({ending}); it is not judged again"
            return Outcome(unjudged(Status.TOOL_ERROR, reason))


def in_words(code: int) -> str:
    """The exit code of a process in words.

    >>> in_words(-11), in_words(3)
    ('signal SIGSEGV', 'exit code 3')
    """
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"exit code {code}"
