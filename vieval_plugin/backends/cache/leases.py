"""Leases on questions: each is under way in one process only, and others that use the same store
wait for its reply.
"""

from __future__ import annotations

import asyncio
import random
import time

from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.reply_checks import Answer
from vieval_plugin.text.escaping import announce

_RENEWAL_INTERVAL = 4.0  # well before a lease ends
_POLL_INTERVAL = 0.2
_SILENT_WAIT = 2.0


class Leases:
    """The questions that this process is asking, as others see them in the store.

    Batch backends take no leases: a batch is one call without a pause in which a lease could be
    renewed, or another's reply waited for. What two of them store first is what both use.
    """

    def __init__(self, store: Store, longest_wait: float) -> None:
        self._store = store
        self._longest_wait = longest_wait
        self._leased_keys: set[str] = set()
        self._stored_keys: list[str] = []
        self._renewing: asyncio.Task[None] | None = None
        self._wait_announced = False

    async def reply_or_turn(self, key: str) -> Answer | None:
        """Wait for the right to ask a question; returns its reply if another process asked it, else
        None.

        A process that asks for longer than a question of ours may take is not waited for.
        """
        started = time.monotonic()
        while not self._store.claim(key):
            if (reply := self._store.get(key)) is not None:
                return reply
            waited = time.monotonic() - started
            if waited >= self._longest_wait:
                break
            if waited > _SILENT_WAIT and not self._wait_announced:
                self._wait_announced = True
                announce(
                    f"{self._store.path}: waiting for another process that is asking "
                    f"the same questions (up to {self._longest_wait:.0f} s per question)"
                )
            await asyncio.sleep(_POLL_INTERVAL * (0.5 + random.random()))
        self._leased_keys.add(key)
        if self._renewing is None:
            self._renewing = asyncio.ensure_future(self._renew())
        return None

    def finish(self, key: str, stored: bool) -> None:
        """Give up a lease, at once if another process may have to ask the question, else soon."""
        self._leased_keys.discard(key)
        if stored:
            self._stored_keys.append(key)
        else:
            self._store.release([key])

    async def close(self) -> None:
        """Give up all leases."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        self._store.release([*self._leased_keys, *self._stored_keys])
        self._leased_keys.clear()
        self._stored_keys.clear()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(_RENEWAL_INTERVAL)
            stored_keys = self._stored_keys
            self._stored_keys = []
            self._store.release(stored_keys)
            if self._leased_keys:
                self._store.renew_leases()
