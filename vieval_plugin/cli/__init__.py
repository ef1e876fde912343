"""The `vieval` command: each command is a module of this package with `add(commands)`, and a
name in `GROUPS`.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import math
import os
import pkgutil
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from vieval_plugin.run.shutdown import stopped_like_ctrl_c, unforeseen
from vieval_plugin.text.errors import (
    BASE_URL_ENV_VAR,
    MODEL_ENV_VAR,
    OPENAI_BASE_URL_ENV_VAR,
    ExitCode,
    VievalError,
)
from vieval_plugin.text.escaping import say
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.suggestions import did_you_mean
from vieval_plugin.text.untrusted import has_scheme
from vieval_plugin.text.versions import VERSION

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from vieval_plugin.api.conclusion import Conclusion
    from vieval_plugin.run.progress import Progress

    Commands = _SubParsersAction[argparse.ArgumentParser]

#: The commands by task, in the order of the help.
GROUPS = {
    "score images": ("score", "shards", "filter", "show"),
    "compare generators": ("rank", "label", "calibrate", "report"),
    "evaluate a judge": (
        "card",
        "compare",
        "tasks",
        "prepare",
        "vlmevalkit",
        "anchor",
        "leaderboard",
    ),
    "serve rewards and train": ("serve", "export", "data", "train"),
    "set up and extend": ("demo", "doctor", "config", "prompts", "cache"),
}

#: A backbone in examples.
EXAMPLE_BACKBONE = "--model NAME --base-url http://127.0.0.1:8000/v1"

_EXAMPLES = (
    (
        "score an image without a model",
        "vieval score cat.png --prompt 'a sign that says \"CAT\"' --judge text_rendering",
    ),
    (
        "find out whose images are better",
        f"vieval rank mine theirs --prompts prompts.csv --judge pairwise {EXAMPLE_BACKBONE}",
    ),
)

_LONGEST_COMMAND = 2000  # of thousands of images in one command
_UNREADABLE = re.compile(
    r"(\S{80})\S{200,}(\S{80})"
)  # a name so long hides what is said of it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code, one of `ExitCode` or 128 and the number of a
    signal.
    """
    with stopped_like_ctrl_c() as stop:
        try:
            arguments = sys.argv[1:] if arguments is None else arguments
            parser = _parser(arguments[0] if arguments else "")
            options, unknown = parser.parse_known_args(arguments)
            if unknown and "rest" not in options:
                parser.error(
                    f"unrecognized arguments: {' '.join(unknown)}{_flag_hint(parser, unknown)}"
                )
            options.rest = unknown
            command = redacted(shlex.join(["vieval", *arguments]))[:_LONGEST_COMMAND]
            options.command = command.encode(
                errors="replace"
            ).decode()  # names of files may hold no characters
            return int(options.run(options))
        except VievalError as error:
            return _report_error(redacted(str(error)), ExitCode.ERROR)
        except BrokenPipeError:  # who read what is printed has seen enough
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except KeyboardInterrupt:
            return _report_error(stop.line, stop.code)
        except Exception as error:
            return _report_error(unforeseen(error), ExitCode.ERROR)


def _flag_hint(parser: argparse.ArgumentParser, unknown: Sequence[str]) -> str:
    """The flag of a parser or of its commands that was meant by the first one that is unknown."""
    parsers, flags = [parser], set[str]()
    while parsers:
        for action in parsers.pop()._actions:
            flags.update(action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                parsers += action.choices.values()
    flag = next(
        (
            argument.partition("=")[0]
            for argument in unknown
            if argument.startswith("-")
        ),
        "",
    )
    return did_you_mean(flag, sorted(flags), 0.6)


def _report_error(line: str, code: int) -> int:
    line = _UNREADABLE.sub(r"\1...\2", line)
    with contextlib.suppress(OSError):  # of a terminal that is gone
        say(f"vieval: {line}", file=sys.stderr)
    return code


def add_label_option(parser: argparse.ArgumentParser) -> None:
    """The option that names the judge of each result."""
    parser.add_argument(
        "--label",
        action="append",
        default=[],
        help="name a result's judge in tables; repeat it for each result, in their order",
    )


def add_columns(parser: argparse._ActionsContainer) -> None:
    """The flag that says what the columns of a table are."""
    parser.add_argument(
        "--columns",
        action="append",
        default=[],
        metavar="KEY=COLUMN",
        help=(
            "say which columns of a table to read, such as output=image,prompt=caption "
            "(default: found by their names)"
        ),
    )


def add_benchmark(parser: argparse.ArgumentParser) -> None:
    """The option that names folders with benchmarks of the user's own."""
    parser.add_argument(
        "--benchmark",
        action="append",
        default=[],
        metavar="FOLDER",
        help=(
            "folder of a benchmark of your own that results are about; may be repeated "
            "(default: those that VIEVAL_BENCHMARKS names)"
        ),
    )


def add_calibration(parser: argparse._ActionsContainer) -> None:
    """The option that adds a judge's calibrated score."""
    note = "file of vieval calibrate, which adds a score such as O_calibrated: what people would say"
    parser.add_argument("--calibration", type=Path, metavar="FILE", help=note)


def add_human(parser: argparse.ArgumentParser, purpose: str = "") -> None:
    """The option that names people's ratings; `purpose` ends its help."""
    note = f"CSV files of human ratings{purpose}"
    parser.add_argument(
        "--human",
        nargs="+",
        action="extend",
        type=Path,
        default=[],
        metavar="FILE",
        help=note,
    )


def add_partial(parser: argparse.ArgumentParser) -> None:
    """The option that has verdicts read of which the run is not complete."""
    parser.add_argument(
        "--partial",
        action="store_true",
        help="also read OUT.partial, the verdicts of a run of vieval score that is not complete",
    )


def add_judge(parser: argparse.ArgumentParser, default: str) -> argparse._ArgumentGroup:
    """The flags that choose the judge; `default` is the command's own, in words."""
    by = parser.add_argument_group("judge")
    by.add_argument(
        "--judge",
        action="append",
        help=f"a judge by its name; may be repeated (default: {default})",
    )
    by.add_argument(
        "--setting", help="a setting of the judge, such as 1shot (default: its first)"
    )
    add_aspects(by)
    by.add_argument(
        "--lazy",
        action="store_true",
        help="ask nothing that cannot change O: not about PQ where SC is 0",
    )
    by.add_argument(
        "--config",
        type=Path,
        help="the options file (default: the one that VIEVAL_CONFIG names)",
    )
    by.add_argument(
        "--scorer",
        help="weights of a judge that is a network: a name, folder or file (default: its own)",
    )
    by.add_argument(
        "--fresh",
        action="store_true",
        help="ask again for stored replies, and replace them",
    )
    return by


def add_aspects(by: argparse._ActionsContainer) -> None:
    """The flag that has a judge ask about some of its aspects only."""
    asking_about = "ask only about these, such as SC, where a judge asks about each by itself (default: all)"
    by.add_argument(
        "--aspects",
        type=lambda text: tuple(map(str.strip, text.split(","))),
        default=(),
        metavar="NAMES",
        help=asking_about,
    )


def add_backbone(
    parser: argparse.ArgumentParser, patience: float = 120
) -> argparse._ArgumentGroup:
    """The flags of the model that the judge asks; `patience` is the command's default of that
    flag.
    """
    model = parser.add_argument_group(
        "backbone",
        "the model that the judge asks (default: backbones.judge in the options file)",
    )
    model.add_argument(
        "--model", help=f"its name on the server (default: {MODEL_ENV_VAR})"
    )
    model.add_argument(
        "--base-url",
        action="append",
        help=f"address of an OpenAI-compatible server, ending in /v1; may be repeated "
        f"(default: {BASE_URL_ENV_VAR}, or {OPENAI_BASE_URL_ENV_VAR})",
    )
    for name, kind, unit, meaning in (
        ("--num-concurrent", int, "N", "requests in flight at once (default: 32)"),
        (
            "--temperature",
            str,
            "T",
            "sampling temperature, or none to send none (default: 0)",
        ),
        (
            "--max-tokens",
            int,
            "N",
            "longest answer in tokens (default: the judge's own)",
        ),
        (
            "--timeout",
            float,
            "S",
            "seconds without a byte before a call is retried (default: 600)",
        ),
        (
            "--patience",
            float,
            "S",
            f"seconds without any answer before the server counts as away (default: {patience:g})",
        ),
        ("--price-input", float, "P", "price of a million input tokens"),
        (
            "--price-cached-input",
            float,
            "P",
            "price of a million in the server's cache",
        ),
        ("--price-output", float, "P", "price of a million output tokens"),
    ):
        model.add_argument(name, type=kind, metavar=unit, help=meaning)
    return model


def add_batch(model: argparse._ActionsContainer) -> None:
    """The flags that have a model asked by batches."""
    model.add_argument(
        "--batch",
        action="store_true",
        help="ask by batches, which cost half and take hours",
    )
    model.add_argument(
        "--batch-files",
        type=output_path,
        metavar="FOLDER",
        help="write batches there, for vllm run-batch",
    )


def number_between(
    lowest: float, highest: float = math.inf, kind: type[int] | type[float] = int
) -> Callable[[str], float]:
    """The type of a flag whose value is a number within bounds, a whole one unless `kind` is
    float.
    """
    bounds = (
        f"from {lowest} on" if highest == math.inf else f"from {lowest} to {highest}"
    )

    def number(text: str) -> float:
        with contextlib.suppress(ValueError):
            if lowest <= (value := kind(text)) <= highest:
                return value
        raise argparse.ArgumentTypeError(
            f"a {'whole ' * (kind is int)}number {bounds} is needed, not {text!r}"
        )

    return number


def output_path(text: str) -> Path:
    """The type of a flag that names a file or folder to write; argparse's error for an address."""
    if has_scheme(text):
        address = redacted(text).partition("?")[0]
        raise argparse.ArgumentTypeError(
            f"must be a path on this machine, got {address}; write it here, then copy it there"
        )
    return Path(text)


#: The type of --margin.
margin = number_between(0, 1, float)


def tell(event: str | Progress) -> None:
    """Print a line, or what calls came to, beside the answer."""
    lines = [f"vieval: {event}"] if isinstance(event, str) else event.lines()
    say(*lines, file=sys.stderr)


def tell_unreadable(lines: Sequence[str]) -> int:
    """Say which results could not be read; the exit code, 1 where there are such."""
    say(*(f"vieval: not read, and left out: {line}" for line in lines), file=sys.stderr)
    return 1 if lines else 0


def show(conclusion: Conclusion, tables: Path | None, page: Path | None) -> None:
    """Print a conclusion, write tables and the page where they are named, and say where."""
    say(*conclusion.lines, answer=True)
    if conclusion.report:
        further = {
            "--tables FOLDER writes all tables": tables,
            "--html FILE a page with the pictures": page,
        }
        if steps := "; ".join(step for step, path in further.items() if not path):
            say(f"{steps}.")
    if tables:
        say(*(f"wrote {path}" for path in conclusion.write_tables(tables)))
    if page and conclusion.report:
        conclusion.write_page(page)
        say(f"wrote {page} (open it in a browser)")
    if conclusion.failed and not conclusion.build.gate:
        raise VievalError("; ".join(conclusion.failed))
    tell_unreadable(conclusion.unreadable)


class _HelpFormatter(argparse.HelpFormatter):
    """The format of a command's help: examples keep their lines."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return (
            text
            if text.startswith("examples:")
            else super()._fill_text(text, width, indent)
        )


def add_command(
    commands: Commands,
    name: str,
    summary: str,
    details: str,
    *examples: tuple[str, str],
    **arguments: Any,
) -> argparse.ArgumentParser:
    """A command, or an action of one.

    Args:
        summary: what it does, for the list of commands: an imperative.
        about: the sentences that open its own help after that.
        examples: pairs of what one does and the command, which end its help.
    """
    opening = f"{summary[0].upper()}{summary[1:]}. {details}".strip()
    return commands.add_parser(
        name,
        help=summary,
        description=opening,
        epilog=_example_lines(examples),
        formatter_class=_HelpFormatter,
        **arguments,
    )


def _example_lines(examples: Sequence[tuple[str, str]]) -> str:
    return "\n".join(
        ["examples:", *(f"  # {purpose}\n  {command}" for purpose, command in examples)]
    )


class _Parser(argparse.ArgumentParser):
    """The command line, whose help has the commands in groups."""

    summaries: dict[str, str]

    def error(self, message: str) -> NoReturn:
        if unknown := re.match(r"argument COMMAND: invalid choice: '(.*?)'", message):
            commands = sorted(self.summaries)
            message = (
                f"no command {unknown[1]!r}{did_you_mean(unknown[1], commands)} The "
                f"commands are {', '.join(commands)}"
            )
        super().error(redacted(message))

    def format_help(self) -> str:
        wide = max(map(len, self.summaries))
        lines = [self.format_usage(), str(self.description), ""]
        for group, names in GROUPS.items():
            lines += [
                f"{group}:",
                *(f"  {name.ljust(wide)}  {self.summaries[name]}" for name in names),
                "",
            ]
        lines += [
            str(self.epilog),
            "",
            "`vieval COMMAND --help` explains a command and shows examples.",
        ]
        return "\n".join(lines) + "\n"


def _parser(command: str = "") -> argparse.ArgumentParser:
    """Build the parser of a command, or where there is no such command that of all, for the
    help.
    """
    parser = _Parser(
        prog="vieval",
        description="Judge generated images, and measure how far to trust the judge.",
        epilog=_example_lines(_EXAMPLES),
    )
    parser.add_argument("--version", action="version", version=f"vieval {VERSION}")
    commands = parser.add_subparsers(
        required=True, metavar="COMMAND", parser_class=argparse.ArgumentParser
    )
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    single = [command] if command in names else []
    for name in names if not single and command != "--version" else single:
        importlib.import_module(f"{__name__}.{name}").add(commands)
    parser.summaries = {
        choice.dest: str(choice.help) for choice in commands._choices_actions
    }
    return parser
