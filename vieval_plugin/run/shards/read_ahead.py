"""Rows read in a thread ahead of those who judge them, no more than so many bytes of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
MOST_BYTES = 256 << 20
_CLOSING = 5.0  # seconds; an image that is being fetched may take longer


class ReadAhead(Generic[T]):
    """The items of an iterator that may block, as an asynchronous iterator; `close` it in the end.

    Args:
        items: iterated in a thread of its own; an exception in it is raised to whoever waits for
            the next item.
        size: the bytes of an item.
        max_bytes: as many bytes may be read and not yet taken, or one item that is larger.
    """

    def __init__(
        self,
        items: Iterator[T],
        size: Callable[[T], int],
        max_bytes: int = MOST_BYTES,
    ) -> None:
        self._items = items
        self._size = size
        self._max_bytes = max_bytes
        self._loop = asyncio.get_running_loop()
        self._read: asyncio.Queue[tuple[T, int] | BaseException | None] = (
            asyncio.Queue()
        )
        self._waiting = 0
        self._is_closed = False
        self._change = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="read", daemon=True)
        self._thread.start()

    async def __aiter__(self) -> AsyncIterator[T]:
        while (item := await self._read.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            with self._change:
                self._waiting -= item[1]
                self._change.notify()
            yield item[0]

    def close(self) -> None:
        """Read no further, and wait a little for the thread: one that is in pyarrow when Python
        ends aborts the process.
        """
        with self._change:
            self._is_closed = True
            self._change.notify()
        self._thread.join(_CLOSING)

    def _run(self) -> None:
        try:
            for item in self._items:
                size = self._size(item)
                with self._change:
                    while (
                        self._waiting
                        and self._waiting + size > self._max_bytes
                        and not self._is_closed
                    ):
                        self._change.wait()
                    self._waiting += size
                if self._is_closed:
                    return
                self._hand_on((item, size))
            self._hand_on(None)
        except BaseException as error:  # whoever waits is to know
            self._hand_on(error)

    def _hand_on(self, item: tuple[T, int] | BaseException | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._read.put_nowait, item)
