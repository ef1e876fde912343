"""Memory of image tools: pixels decoded once for all of them, and images that they make, in
memory or in files.

Judging in batch steps, all samples of a run hold their images at once.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeAlias

from vieval_plugin import images
from vieval_plugin.judges.protocol import Image
from vieval_plugin.media.png import Pixels
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import announce


class Spill:
    """Keeps images in memory up to `memory` bytes of them, and puts further ones into files.

    The files are in a folder of their own where temporary files are (TMPDIR). Each is removed
    when its image is no longer used, and all by `close`. If a file cannot be written, its image
    stays in memory, and one line says so.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._bytes_in_memory = 0
        self._files = 0
        self._released_sizes: deque[int] = (
            deque()
        )  # an image may go at any moment, also while this thread has the lock
        self._change = threading.Lock()
        self._folder: Path | None = None
        self._writes = True
        self._process = os.getpid()

    def keep(self, image: Image) -> Image:
        """The image itself, or one with the same bytes in a file; what is in a file stays there."""
        if not isinstance(image.source, bytes):
            return image
        size = len(image.source)
        with self._change:
            while self._released_sizes:
                self._bytes_in_memory -= self._released_sizes.popleft()
            if self._writes and self._bytes_in_memory + size > self._memory:
                try:
                    return self._write_file(image.source)
                except OSError as error:
                    self._writes = False
                    self._say(error)
            self._bytes_in_memory += size
        weakref.finalize(image, self._released_sizes.append, size)
        return image

    def close(self) -> None:
        """Remove all files; what is handed in later stays in memory."""
        with self._change:
            self._writes = False
            if self._folder is not None:
                _remove(self._folder, self._process)

    def _write_file(self, data: bytes) -> Image:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="vieval-"))
            weakref.finalize(self, _remove, self._folder, self._process)
        self._files += 1
        file = self._folder / str(self._files)
        try:
            file.write_bytes(data)
        except OSError:
            file.unlink(missing_ok=True)
            raise
        spilled = Image(file)
        weakref.finalize(spilled, _remove, file, self._process)
        return spilled

    def _say(self, error: OSError) -> None:
        announce(
            f"cannot write to {tempfile.gettempdir()} ({error.strerror}), so "
            f"tool images beyond {self._memory >> 20} MiB stay in memory; free disk "
            "space there, or set TMPDIR to another folder"
        )


def _remove(path: Path, process: int) -> None:
    """Remove a file or a folder, but not in a process that was forked from the one which made
    it.
    """
    if os.getpid() != process:
        return
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


#: Gives the pixels (height, width, 3) of an image, which are not to be written to; VievalError as
#: `images.decode`.
Decode: TypeAlias = Callable[[Image], Pixels]


class Decoded:
    """Decodes images for threads and keeps the pixels of the most recent, up to `memory` bytes
    in all.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._decoded_bytes = 0
        self._change = threading.Lock()
        self._futures: OrderedDict[Image, Future[Pixels]] = OrderedDict()

    def pixels(self, image: Image) -> Pixels:
        """The pixels (height, width, 3) of an image, not to be written to; one that two threads
        want is decoded once.

        Raises:
            VievalError: as `images.decode`.
        """
        with self._change:
            is_new = image not in self._futures
            future = self._futures.setdefault(image, Future())
            self._futures.move_to_end(image)
        if is_new:
            self._decode(image, future)
        return future.result()

    def look(self, image: Image) -> None:
        """Decode an image that will be wanted, unless its bytes are known to be sound; what is
        broken shows later.
        """
        try:
            if not images.is_known(image):
                self.pixels(image)
        except VievalError:  # whoever is asked about the image says so
            pass

    def _decode(self, image: Image, future: Future[Pixels]) -> None:
        try:
            pixels = images.pixels(image)
        except BaseException as error:
            with self._change:
                del self._futures[image]
            future.set_exception(error)
            return
        with self._change:
            future.set_result(pixels)
            self._decoded_bytes += pixels.nbytes
            # one that is still being decoded ends this, and goes on with it when it is done
            while (
                self._decoded_bytes > self._memory
                and (oldest := next(iter(self._futures.values()))).done()
            ):
                self._futures.popitem(last=False)
                self._decoded_bytes -= oldest.result().nbytes
