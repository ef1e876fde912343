"""Open resources of a judge: an event loop in a thread, and in it the store and connections."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys

from vieval_plugin.config import Config
from vieval_plugin.errors import VievalError
from vieval_plugin.run.loop import LoopThread
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.session import Session


class Opened:
    """A judge's loop and what is open in it."""

    def __init__(self, options: Config, progress: Progress) -> None:
        self._options, self._progress = options, progress
        self.loop, self.process, self.runs = LoopThread(self.shut), os.getpid(), 0
        self._session: asyncio.Task[Session] | None = None

    async def session(self) -> Session:
        """The open session; opened by whoever comes first."""
        if self._session is None:
            self._session = asyncio.ensure_future(Session(self._options, None, self._progress).__aenter__())
        try:
            return await asyncio.shield(self._session)
        except VievalError:
            self._session = None
            raise

    async def shut(self) -> None:
        """Close the session; the next run opens another."""
        opening, self._session = self._session, None
        if opening is not None:
            with contextlib.suppress(asyncio.CancelledError, VievalError):  # it never opened
                await (await opening).__aexit__(None, None, None)

    def close(self) -> None:
        if self.process == os.getpid() and not sys.is_finalizing():
            self.loop.close()
