"""lmms-eval's command line: an error of ours is one line, a list of runs goes on after it, and
exits with 1 at its end; it does where calls failed, too.

The host would print a traceback and exit with 0. Its module is still being imported when we are
asked for models, so its function is wrapped where it is looked up.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from vieval_plugin.hosts.lmms_eval import settings
from vieval_plugin.hosts.shutdown import error_line, failures
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import say


def install() -> None:
    """Wrap the host's command line if this process runs it. Doing it twice changes nothing."""
    module = sys.modules.get("lmms_eval.__main__")
    if module is not None:
        module.__class__ = _CommandLine


class _CommandLine(ModuleType):
    """The host's module, with another `cli_evaluate`."""

    @property
    def cli_evaluate(self) -> Callable[..., None]:
        """The host's function for all runs of a command."""
        names = vars(self)
        if "cli_evaluate" not in names:
            raise AttributeError("lmms_eval.__main__ has no cli_evaluate yet")
        return functools.partial(_evaluate_all, names["cli_evaluate"], names)


def _evaluate_all(
    evaluate: Callable[..., None], host: dict[str, Any], *args: Any, **kwargs: Any
) -> None:
    """Run the host's `evaluate`, whose module is `host`; SystemExit with 1 where a run failed."""
    lines: list[str] = []
    evaluate_single = host["cli_evaluate_single"]

    def evaluate_or_report(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        try:
            settings.prepare_command(args[0])
            results, samples = evaluate_single(*args, **kwargs)
        except VievalError as error:
            line = error_line(error)
            # the other processes would wait for this one for ever
            if int(os.environ.get("WORLD_SIZE", "1")) > 1:
                raise SystemExit(line) from None
            lines.append(line)
            say(line, file=sys.stderr)
            return None, None
        # as in the first process, which the others may not stop
        if results is not None:
            lines.extend(failures())
        return results, samples

    host["cli_evaluate_single"] = evaluate_or_report
    try:
        evaluate(*args, **kwargs)
    finally:
        host["cli_evaluate_single"] = evaluate_single
    if lines:
        exit_error = SystemExit("\n".join(lines))
        exit_error.code = 1  # the lines are on the terminal already
        raise exit_error
