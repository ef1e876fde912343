"""Pixels of images that several tools look at: each image decoded once, in bounded memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeAlias

from vieval_plugin import images
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Image
from vieval_plugin.judges.tools._pixels import Pixels

Decode: TypeAlias = Callable[[Image], Pixels]
"""Gives the pixels (height, width, 3) of an image, which are not to be written to; VievalError as `images.decode`."""


class Decoded:
    """Decodes images for threads and keeps the pixels of the most recent, up to `memory` bytes in all."""

    def __init__(self, memory: int) -> None:
        self._memory, self._held = memory, 0
        self._change = threading.Lock()
        self._known: OrderedDict[Image, Future[Pixels]] = OrderedDict()

    def pixels(self, image: Image) -> Pixels:
        """The pixels (height, width, 3) of an image, not to be written to; one that two threads want is decoded once.

        Raises:
            VievalError: as `images.decode`.
        """
        with self._change:
            mine = image not in self._known
            found = self._known.setdefault(image, Future())
            self._known.move_to_end(image)
        if mine:
            self._decode(image, found)
        return found.result()

    def look(self, image: Image) -> None:
        """Decode an image that will be wanted, unless its bytes are known to be sound; what is broken shows later."""
        try:
            if not images.is_known(image):
                self.pixels(image)
        except VievalError:  # whoever is asked about the image says so
            pass

    def _decode(self, image: Image, found: Future[Pixels]) -> None:
        try:
            pixels = images.pixels(image)
        except BaseException as error:
            with self._change:
                del self._known[image]
            found.set_exception(error)
            return
        with self._change:
            found.set_result(pixels)
            self._held += pixels.nbytes
            # one that is still being decoded ends this, and goes on with it when it is done
            while self._held > self._memory and (oldest := next(iter(self._known.values()))).done():
                self._known.popitem(last=False)
                self._held -= oldest.result().nbytes
