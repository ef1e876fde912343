"""End of a run inside a host: errors in one line with a failing exit code, and what a run cost.

Hosts report exceptions and exit 0.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from vieval_plugin.backends.http.server import Usage
from vieval_plugin.run.progress import MAX_AGE, Progress
from vieval_plugin.run.shutdown import stopped_like_ctrl_c, unforeseen
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import console, say
from vieval_plugin.text.redaction import redacted

P = ParamSpec("P")
R = TypeVar("R")
_failures: list[str] = []


def vieval_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Turn an unexpected error into a `VievalError`, and let a signal end the process as Ctrl-C
    does.
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with stopped_like_ctrl_c() as stop:
            try:
                return function(*args, **kwargs)
            except VievalError:
                raise
            except KeyboardInterrupt:
                print_lines(stop.line)
                raise SystemExit(stop.code) from None
            except Exception as error:
                raise VievalError(unforeseen(error)) from error

    return wrapped


def one_line(function: Callable[P, R]) -> Callable[P, R]:
    """Let an error end the process with one line, and a signal as Ctrl-C does."""
    reporting = vieval_errors(function)

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return reporting(*args, **kwargs)
        except VievalError as error:
            raise SystemExit(error_line(error)) from None

    return wrapped


def error_line(error: VievalError) -> str:
    """Return the line of an error on a terminal."""
    return f"vieval: {console(redacted(str(error)))}"


def print_lines(*lines: str) -> None:
    """Print lines to standard error, each marked as VIEval's."""
    say(*(f"vieval: {line}" for line in lines), file=sys.stderr)


def tell(progress: Progress) -> None:
    """Print what a run cost; that calls failed is said again at the very end, below the host's
    tables.
    """
    print_lines(*progress.lines(f"set {MAX_AGE}"))
    if progress.failed_calls:
        line = (
            f"{progress.failed_calls} of {progress.statuses.total()} verdicts failed "
            "because calls FAILED (see above)"
        )
        _failures.append(line)
        atexit.register(print_lines, line)


def failures() -> list[str]:
    """Return the lines on calls that failed in this run, in any of its processes."""
    return _failures


def forget_failures() -> None:
    """Begin a run in this process."""
    _failures.clear()


def gather_failures() -> None:
    """Share what failed with the other processes of a run, all of which call this."""
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if processes == 1:
        return
    from torch import distributed

    if distributed.is_initialized():
        lines: list[list[str]] = [[] for _ in range(processes)]
        distributed.all_gather_object(lines, _failures)
        _failures[:] = [line for process in lines for line in process]


def tell_usage(usage: Usage, cached: str) -> None:
    """Print the cost of calls for anything but verdicts."""
    lines = [f"calls: {usage.calls}, {cached}: {usage.cached}"]
    lines += [f"retried: {dict(usage.retries)}"] if usage.retries else []
    lines += [f"FAILED CALLS: {dict(usage.failures)}"] if usage.failures else []
    print_lines(*lines)
