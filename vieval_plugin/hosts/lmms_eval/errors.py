"""Errors meant for the user leave lmms-eval as one line and a failing exit code, not as a traceback with exit code 0."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from vieval_plugin.errors import VievalError

P = ParamSpec("P")
R = TypeVar("R")


def one_line(function: Callable[P, R]) -> Callable[P, R]:
    """Let a VievalError end the process with its message; lmms-eval itself reports exceptions and exits 0."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except VievalError as error:
            raise SystemExit(f"vieval: {error}") from None

    return wrapped
