"""Images that tools made, in bounded memory: what is beyond it lies in temporary files while somebody holds it.

Judging in waves, all samples of a run hold their images at once.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import weakref
from collections import deque
from pathlib import Path

from tqdm import tqdm

from vieval_plugin.judges.protocol import Image


class Spill:
    """Keeps images in memory up to `memory` bytes of them, and puts further ones into files.

    The files are in a folder of their own where temporary files are (TMPDIR). Each goes when nobody holds its image any
    more, and all with `close`. Where none can be written, images stay in memory, and one line says so.
    """

    def __init__(self, memory: int) -> None:
        self._memory, self._held, self._files = memory, 0, 0
        self._let_go: deque[int] = deque()  # an image may go at any moment, also while this thread has the lock
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
            while self._let_go:
                self._held -= self._let_go.popleft()
            if self._writes and self._held + size > self._memory:
                try:
                    return self._in_a_file(image.source)
                except OSError as error:
                    self._writes = False
                    self._say(error)
            self._held += size
        weakref.finalize(image, self._let_go.append, size)
        return image

    def close(self) -> None:
        """Remove all files; what is handed in later stays in memory."""
        with self._change:
            self._writes = False
            if self._folder is not None:
                _remove(self._folder, self._process)

    def _in_a_file(self, data: bytes) -> Image:
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
        kept = Image(file)
        weakref.finalize(kept, _remove, file, self._process)
        return kept

    def _say(self, error: OSError) -> None:
        tqdm.write(
            f"vieval: images of tools beyond {self._memory >> 20} MiB stay in memory, because {tempfile.gettempdir()} "
            f"cannot be written to ({error.strerror}); make room there, or name another folder as TMPDIR",
            file=sys.stderr,
        )


def _remove(path: Path, process: int) -> None:
    """Remove a file or a folder, but not in a process that was forked from the one which made it."""
    if os.getpid() == process:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
