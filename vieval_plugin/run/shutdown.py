"""Early end of a command or run: by a signal or an unexpected error."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from vieval_plugin.text.errors import PROJECT
from vieval_plugin.text.escaping import console
from vieval_plugin.text.redaction import redacted


@dataclass
class Stop:
    """The signal by which a run was stopped, as far as it was."""

    #: Number of the signal.
    number: int = int(signal.SIGINT)

    @property
    def code(self) -> int:
        """The exit code that shells know for it."""
        return 128 + self.number

    @property
    def line(self) -> str:
        """The message on it."""
        return (
            f"interrupted ({signal.Signals(self.number).name}); answers so far are kept"
        )


@contextlib.contextmanager
def stopped_like_ctrl_c() -> Iterator[Stop]:
    """Within, SIGTERM and SIGHUP raise KeyboardInterrupt as Ctrl-C does, which ends a run in order.

    A signal that somebody ignores or handles already stays theirs: `nohup` must keep a run alive.
    """
    stop = Stop()

    def stopped(number: int, frame: FrameType | None) -> None:
        stop.number = number
        interrupt = signal.getsignal(signal.SIGINT)
        if not callable(interrupt):
            raise KeyboardInterrupt
        interrupt(
            signal.SIGINT, frame
        )  # Python's, or that of an event loop, which ends it tidily

    handled = []
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
        handled = [
            signum
            for signum in numbers
            if signum is not None and signal.getsignal(signum) is signal.SIG_DFL
        ]
    for signal_number in handled:
        signal.signal(signal_number, stopped)
    try:
        with _ctrl_c_known() if handled else contextlib.nullcontext():
            yield stop
    finally:
        for signal_number in handled:
            if signal.getsignal(signal_number) is stopped:
                signal.signal(signal_number, signal.SIG_DFL)


@contextlib.contextmanager
def _ctrl_c_known() -> Iterator[None]:
    """Within, there is a handler of Ctrl-C, which event loops build upon, even where Ctrl-C itself
    is ignored.

    So it is in a script's background, and there it stays without effect.
    """
    if callable(signal.getsignal(signal.SIGINT)) or not hasattr(
        signal, "pthread_sigmask"
    ):
        yield
        return
    previous = signal.getsignal(signal.SIGINT)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def unforeseen(error: BaseException) -> str:
    """Line about an unexpected error, with a traceback file unless the disk is full."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return (
            f"{error.filename or 'output'}: no space left; free disk space, then "
            "run the same command again"
        )
    description = redacted(f"{type(error).__name__}: {error}")
    message = " ".join(description.split())[:300]
    trace = "".join(traceback.format_exception(error))
    lines = [" ".join(sys.argv), *trace.split("\n")]
    file = _error_file(redacted("\n".join(map(console, lines))))
    where = (
        f"the traceback is in {file}" if file else "the traceback could not be written"
    )
    return (
        f"unexpected error ({message}); {where}; please report it at {PROJECT}/issues"
    )


def _error_file(text: str) -> Path | None:
    """A file of the user's own with this text, in the user's cache folder or else in that for
    temporary files.
    """
    from vieval_plugin.media.files import cache_folder

    name = f"error-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    for folder in (
        cache_folder() / "errors",
        Path(tempfile.gettempdir()),
    ):
        with contextlib.suppress(OSError):
            folder.mkdir(0o700, parents=True, exist_ok=True)
            descriptor, path = tempfile.mkstemp(
                ".txt",
                f"{name}-",
                folder,
            )  # which nobody else may read
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            return Path(path)
    return None
