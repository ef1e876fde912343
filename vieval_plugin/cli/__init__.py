"""The `vieval` command. A command is a module of this package with `add(commands)`, found by looking."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence

from vieval_plugin.errors import VievalError
from vieval_plugin.harmless import say
from vieval_plugin.run.ending import stopped_like_ctrl_c, unforeseen


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0 fine, 1 a finding or an error of one line, 2 wrong usage.

    What a signal ends has 128 and the signal's number.
    """
    with stopped_like_ctrl_c() as stop:
        try:
            parser = _parser()
            options, rest = parser.parse_known_args(arguments)
            if rest and "rest" not in options:
                parser.error(f"unrecognized arguments: {' '.join(rest)}")
            options.rest = rest
            return int(options.run(options))
        except VievalError as error:
            return _ended(str(error), 1)
        except BrokenPipeError:  # who read what is printed has seen enough
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except KeyboardInterrupt:
            return _ended(stop.line, stop.code)
        except Exception as error:
            return _ended(unforeseen(error), 1)


def _ended(line: str, code: int) -> int:
    with contextlib.suppress(OSError):  # of a terminal that is gone
        say(f"vieval: {line}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="vieval", description="Judges of generated images for evaluation harnesses.")
    commands = parser.add_subparsers(required=True, metavar="command")
    for found in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{found.name}").add(commands)
    return parser
