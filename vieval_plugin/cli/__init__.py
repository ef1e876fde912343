"""The `vieval` command: each command is a module of this package with `add(commands)` and its `GROUP` of the help."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.metadata
import os
import pkgutil
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from vieval_plugin.errors import VievalError
from vieval_plugin.run.shutdown import stopped_like_ctrl_c, unforeseen
from vieval_plugin.text.escaping import say
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.suggestions import did_you_mean

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Commands = _SubParsersAction[argparse.ArgumentParser]

GROUPS = ("judge images", "look at results", "benchmarks", "train judges", "settings and checks")
"""The parts of the help, in order."""

_UNREADABLE = re.compile(r"(\S{80})\S{200,}(\S{80})")  # a name so long hides what is said of it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0 fine, 1 a finding or an error of one line, 2 wrong usage.

    What a signal ends has 128 and the signal's number.
    """
    with stopped_like_ctrl_c() as stop:
        try:
            arguments = sys.argv[1:] if arguments is None else arguments
            parser = _parser(arguments[0] if arguments else "")
            options, unknown = parser.parse_known_args(arguments)
            if unknown and "rest" not in options:
                parser.error(f"unrecognized arguments: {' '.join(unknown)}")
            options.rest = unknown
            return int(options.run(options))
        except VievalError as error:
            return _report_error(redacted(str(error)), 1)
        except BrokenPipeError:  # who read what is printed has seen enough
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except KeyboardInterrupt:
            return _report_error(stop.line, stop.code)
        except Exception as error:
            return _report_error(unforeseen(error), 1)


def _report_error(line: str, code: int) -> int:
    line = _UNREADABLE.sub(r"\1...\2", line)
    with contextlib.suppress(OSError):  # of a terminal that is gone
        say(f"vieval: {line}", file=sys.stderr)
    return code


def add_label_option(parser: argparse.ArgumentParser) -> None:
    """The option that names the judge of each result."""
    parser.add_argument(
        "--label", action="append", default=[], help="what to call the judge of a result; once for each, in their order"
    )


def add_columns(parser: argparse._ActionsContainer) -> None:
    """The flag that says what the columns of a table are."""
    parser.add_argument(
        "--columns",
        action="append",
        default=[],
        metavar="KEY=COLUMN",
        help="columns of tables, such as output=image,prompt=caption (default: by their names)",
    )


def add_benchmark(parser: argparse.ArgumentParser) -> None:
    """The option that names folders with benchmarks of the user's own."""
    parser.add_argument(
        "--benchmark",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a benchmark of your own that results are of; once for each (or all in the folder that VIEVAL_BENCHMARKS names)",
    )


def add_partial(parser: argparse.ArgumentParser) -> None:
    """The option that has verdicts read of which the run is not complete."""
    parser.add_argument("--partial", action="store_true", help="read also OUT.partial, of a score that is not complete")


def margin(text: str) -> float:
    """The value of --margin: a number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"a number from 0 to 1 is needed, not {text!r}")
    return number


def tell_unreadable(lines: Sequence[str]) -> int:
    """Say which results could not be read; the exit code, 1 where there are such."""
    say(*(f"vieval: not read, and left out: {line}" for line in lines), file=sys.stderr)
    return 1 if lines else 0


class _Parser(argparse.ArgumentParser):
    """The command line, whose help has the commands in groups."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.groups: dict[str, list[tuple[str, str]]] = {name: [] for name in GROUPS}

    def error(self, message: str) -> NoReturn:
        if named := re.match(r"argument COMMAND: invalid choice: '(.*?)'", message):
            known = sorted(name for commands in self.groups.values() for name, _ in commands)
            message = f"no command {named[1]!r}{did_you_mean(named[1], known)} The commands are {', '.join(known)}"
        super().error(redacted(message))

    def format_help(self) -> str:
        wide = max(len(name) for commands in self.groups.values() for name, _ in commands)
        lines = [self.format_usage(), str(self.description), ""]
        for group, commands in self.groups.items():
            lines += [f"{group}:", *(f"  {name.ljust(wide)}  {summary}" for name, summary in sorted(commands)), ""]
        lines += ["`vieval COMMAND --help` says more of a command; `vieval --version` which version this is."]
        return "\n".join(lines) + "\n"


def _parser(command: str = "") -> argparse.ArgumentParser:
    """Build the parser of a command, or where there is no such command that of all, for the help."""
    parser = _Parser(prog="vieval", description="Judges of generated images for evaluation harnesses.")
    parser.add_argument("--version", action="version", version=f"vieval {_version()}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=argparse.ArgumentParser)
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    alone = [command] if command in names else []
    for name in names if not alone and command != "--version" else alone:
        module = importlib.import_module(f"{__name__}.{name}")
        module.add(commands)
        choice = commands._choices_actions[-1]
        parser.groups[module.GROUP].append((choice.dest, str(choice.help)))
    return parser


def _version() -> str:
    try:
        return importlib.metadata.version("vieval")
    except importlib.metadata.PackageNotFoundError:
        return "of a checkout that is not installed"
