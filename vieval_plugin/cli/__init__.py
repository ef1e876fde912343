"""The `vieval` command: each command is a module of this package with a line in `GROUPS`.

The docstring of the module is the command's help. Its function `run` takes a class of `Options`,
whose fields are its flags. A command with actions has `ACTIONS` in place of `run`: functions whose
docstrings are the help of each.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NoReturn,
    TypeAlias,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from vieval_plugin.run.shutdown import stopped_like_ctrl_c, unforeseen
from vieval_plugin.text.errors import PROJECT, ExitCode, VievalError
from vieval_plugin.text.escaping import say
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.suggestions import did_you_mean
from vieval_plugin.text.untrusted import has_scheme
from vieval_plugin.text.versions import VERSION

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from vieval_plugin.api.conclusion import Conclusion
    from vieval_plugin.run.progress import Progress

    Commands = _SubParsersAction[Any]

#: The commands by task, in the order of the help, each with what it does.
GROUPS = {
    "score images": {
        "score": "score images and write the verdicts",
        "shards": "show the contents and progress of a folder of shards",
        "filter": "keep the rows of a data set whose verdicts meet a condition",
        "show": "show one verdict with its questions, replies and scores",
    },
    "compare generators": {
        "rank": "find out which generator is better, and how certain that is",
        "label": "make a page where annotators rate your images",
        "calibrate": "convert a judge's score to the rating that annotators would give",
        "report": "make a page and tables of results",
    },
    "evaluate a judge": {
        "card": "measure how good a judge your model is",
        "compare": "test which of several judges is better",
        "tasks": "list benchmarks, their tasks and missing data",
        "prepare": "download or check a benchmark's data",
        "vlmevalkit": "run VLMEvalKit with VIEval's datasets",
        "anchor": "check whether a judge has changed",
        "leaderboard": "make the leaderboard of published judges",
    },
    "serve rewards and train": {
        "serve": "serve judges as rewards for trainers",
        "export": "export verdicts as training data, or results for leaderboards",
        "data": "make training data for judges, without annotators",
        "train": "train a judge, or tune its backbone",
    },
    "set up and extend": {
        "demo": "make posters with two simulated generators and compare them",
        "doctor": "show what is ready to use and what is missing",
        "config": "print an options file, or the options of a run",
        "prompts": "show or change judges' prompts, or export a benchmark's prompts",
        "cache": "show, export or clear the reply cache",
        "completion": "print a shell completion script",
    },
}
_SUMMARIES = {
    name: summary for group in GROUPS.values() for name, summary in group.items()
}

_EXAMPLES = """\
examples:
  # score an image without a model
  vieval score cat.png --prompt 'a sign that says "CAT"' --judge text_rendering
  # find out whose images are better
  vieval rank mine theirs --prompts prompts.csv --judge pairwise --model NAME --base-url http://127.0.0.1:8000/v1"""

_DOCS = f" {PROJECT}/blob/main/docs/"  # of the pages that docstrings name
_LONGEST_COMMAND = 2000  # of thousands of images in one command
# a name so long hides what is said of it
_UNREADABLE = re.compile(r"(\S{80})\S{200,}(\S{80})")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code, one of `ExitCode` or 128 and the number of a
    signal.
    """
    with stopped_like_ctrl_c() as stop:
        try:
            run, options = read_options(
                sys.argv[1:] if arguments is None else arguments
            )
            return run(options)
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


def read_options(arguments: Sequence[str]) -> tuple[Callable[[Any], int], Any]:
    """The function of a command line, and its options; argparse's exit where it is wrong."""
    command = next(
        (argument for argument in arguments if not argument.startswith("-")), ""
    )
    parser = build_parser([command] if command in _SUMMARIES else [])
    values, unknown = parser.parse_known_args(arguments)
    options_type = _options_type(values.run)
    names = [option.name for option in fields(options_type)]
    if unknown and "rest" not in names:
        hint = _flag_hint(values.parser, unknown)
        values.parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    values.rest = unknown
    line = redacted(shlex.join(["vieval", *arguments]))[:_LONGEST_COMMAND]
    values.command = line.encode(
        errors="replace"
    ).decode()  # names of files may hold no characters
    return values.run, options_type(**{name: getattr(values, name) for name in names})


def _flag_hint(parser: argparse.ArgumentParser, unknown: Sequence[str]) -> str:
    """The known flag that is nearest to the first unknown one."""
    flags = [flag for action in parser._actions for flag in action.option_strings]
    unknown_flag = next(
        (
            argument.partition("=")[0]
            for argument in unknown
            if argument.startswith("-")
        ),
        "",
    )
    return did_you_mean(unknown_flag, sorted(flags), 0.6)


def _report_error(line: str, code: int) -> int:
    line = _UNREADABLE.sub(r"\1...\2", line)
    with contextlib.suppress(OSError):  # of a terminal that is gone
        tell(line)
    return code


#: Group of flags of which one is given at most.
EXCLUSIVE = ("exclusive",)


def flag(meaning: str, default: Any = None, **arguments: Any) -> Any:
    """Declare a field of options that is a flag.

    The field's type reads its value, and says whether it is a switch (bool), may be repeated
    (list), has choices (Literal), or must be given (neither with None nor with a default).

    Args:
        meaning: for the help.
        default: the value where the flag is not given.
        **arguments: further ones of `add_argument`, such as metavar and nargs.
    """
    return field(metadata={"help": meaning, "default": default, **arguments})


def argument(meaning: str, **arguments: Any) -> Any:
    """Declare a field of options that is given by its place, not by a flag."""
    return flag(meaning, positional=True, **arguments)


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(flag, argument)
)
class Options:
    """Flags of a command, or those that several commands share; each subclass is a dataclass."""

    #: Title of the flags in the help, and what it says of them; empty for no group of their own.
    group: ClassVar[Sequence[str]] = ()

    def __init_subclass__(cls, group: Sequence[str] = ()) -> None:
        cls.group = group
        dataclass(frozen=True, kw_only=True)(cls)


def number_between(
    lowest: float, highest: float = math.inf, kind: type[int] | type[float] = int
) -> Callable[[str], float]:
    """The type of a flag whose value is a number within bounds, a whole one unless `kind` is
    float.
    """
    bounds = f"from {lowest} to {highest}"
    if highest == math.inf:
        bounds = f"of at least {lowest}"

    def number(text: str) -> float:
        with contextlib.suppress(ValueError):
            value = kind(text)
            if lowest <= value <= highest:
                return value
        raise argparse.ArgumentTypeError(
            f"must be a {'whole ' * (kind is int)}number {bounds}, got {text!r}"
        )

    return number


def output_path(text: str) -> Path:
    """The type of a flag that names a file or folder to write; argparse's error for an address."""
    if has_scheme(text):
        address = redacted(text).partition("?")[0]
        raise argparse.ArgumentTypeError(
            f"must be a local path, got {address}; write to a local path, then copy the "
            "result"
        )
    return Path(text)


#: Type of a flag that counts.
Count: TypeAlias = Annotated[int, number_between(1)]
#: Type of a flag that seeds what is random.
Seed: TypeAlias = Annotated[int, number_between(0)]
#: Type of a flag that names a file or folder to write.
OutputPath: TypeAlias = Annotated[Path, output_path]


def tell(*events: str | Progress) -> None:
    """Print lines, or the cost of calls, to standard error."""
    for event in events:
        lines = [f"vieval: {event}"] if isinstance(event, str) else event.lines()
        say(*lines, file=sys.stderr)


def tell_unreadable(lines: Sequence[str]) -> int:
    """Say which results could not be read; the exit code, 1 where there are such."""
    tell(*(f"skipped, because it cannot be read: {line}" for line in lines))
    return 1 if lines else 0


def print_conclusion(
    conclusion: Conclusion, tables: Path | None, page: Path | None
) -> None:
    """Print a conclusion, write tables and the page where they are named, and say where."""
    say(*conclusion.lines, answer=True)
    if conclusion.report:
        further = {
            "--tables FOLDER writes all tables": tables,
            "--html FILE writes a page with the images": page,
        }
        steps = ", and ".join(step for step, path in further.items() if not path)
        if steps:
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
        if text.startswith("examples:"):
            return text
        return super()._fill_text(text, width, indent)


def _options_type(run: Callable[[Any], int]) -> Any:
    return get_type_hints(run)["options"]


def _add_command(commands: Commands, name: str, source: Any) -> None:
    """Add a command from its module, or an action from its function."""
    text, _, examples = inspect.cleandoc(source.__doc__ or "").partition(
        "\n\nExamples:\n"
    )
    summary = text.partition("\n")[0].rstrip(".")
    run = getattr(source, "run", source)
    actions = getattr(source, "ACTIONS", {})
    options_type = Options if actions else _options_type(run)
    description = " ".join(text.split()).replace(" docs/", _DOCS)
    indented_examples = re.sub("(?m)^    ", "  ", examples)
    takes_rest = "rest" in inspect.get_annotations(options_type)
    parser = commands.add_parser(
        name,
        help=f"{summary[:1].lower()}{summary[1:]}",
        description=description,
        epilog=f"examples:\n{indented_examples}",
        formatter_class=_HelpFormatter,
        allow_abbrev=not takes_rest,
    )
    if not actions:
        parser.set_defaults(run=run, parser=parser)
        _add_flags(parser, options_type)
        return
    subparsers = parser.add_subparsers(required=True, metavar="ACTION")
    for action_name, action in actions.items():
        _add_command(subparsers, action_name, action)


def _add_flags(parser: argparse.ArgumentParser, options_type: Any) -> None:
    """Add the fields of options: those of the command first, then those of each class that it
    shares with others, in the group of that class.
    """
    types = get_type_hints(options_type, include_extras=True)
    flags = {option.name: option for option in fields(options_type) if option.metadata}
    groups: dict[Sequence[str], argparse._ActionsContainer] = {(): parser}
    owners = {
        name: owner
        for owner in options_type.__mro__
        for name in inspect.get_annotations(owner)
    }
    for owner in options_type.__mro__:
        for name, option in flags.items():
            if owners[name] is not owner:
                continue
            if owner.group not in groups:
                groups[owner.group] = (
                    parser.add_mutually_exclusive_group()
                    if owner.group == EXCLUSIVE
                    else parser.add_argument_group(*owner.group)
                )
            _add_flag(groups[owner.group], name, types[name], **option.metadata)


def _add_flag(
    group: argparse._ActionsContainer,
    name: str,
    option_type: Any,
    default: Any,
    positional: bool = False,
    **arguments: Any,
) -> None:
    is_required = default is None
    if NoneType in get_args(option_type):
        is_required = False
        option_type = get_args(option_type)[0]
    if get_origin(option_type) is Literal:
        arguments["choices"] = get_args(option_type)
    elif option_type is bool:
        is_required = False
        default = False
        arguments["action"] = "store_true"
    else:
        arguments.setdefault("type", (option_type, *get_args(option_type))[-1])
    is_list = get_origin(option_type) is list
    if positional:
        arguments.setdefault("nargs", "+" if is_list else None if is_required else "?")
        group.add_argument(name, default=default, **arguments)
        return
    if is_list:
        default = [] if is_required else default
        is_required = False
        arguments["action"] = "extend" if "nargs" in arguments else "append"
    arguments.setdefault("required", is_required)
    group.add_argument(f"--{name.replace('_', '-')}", default=default, **arguments)


class _CommandParser(argparse.ArgumentParser):
    """The arguments of a command; an error comes without the long list of all flags."""

    def error(self, message: str) -> NoReturn:
        hint = f"For all arguments, run `{self.prog} --help`."
        self.exit(ExitCode.USAGE, f"{self.prog}: error: {redacted(message)}\n{hint}\n")


class _Parser(_CommandParser):
    """The command line, whose help has the commands in groups."""

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"argument COMMAND: invalid choice: '(.*?)'", message)
        if unknown:
            commands = sorted(_SUMMARIES)
            suggestion = did_you_mean(unknown[1], commands)
            if unknown[1] == "gate":
                suggestion = "; use `vieval rank --margin`."
            message = (
                f"unknown command {unknown[1]!r}{suggestion} "
                f"Known commands: {', '.join(commands)}"
            )
        super().error(message)

    def format_help(self) -> str:
        wide = max(map(len, _SUMMARIES))
        lines = [self.format_usage(), str(self.description), ""]
        for group, summaries in GROUPS.items():
            lines.append(f"{group}:")
            lines += [f"  {name.ljust(wide)}  {summaries[name]}" for name in summaries]
            lines.append("")
        lines += [
            str(self.epilog),
            "",
            "For details and examples, run `vieval COMMAND --help`.",
        ]
        return "\n".join(lines) + "\n"


def build_parser(commands: Iterable[str] = tuple(_SUMMARIES)) -> _Parser:
    """The parser of some commands, whose modules alone are imported."""
    parser = _Parser(
        prog="vieval",
        description="Judge generated images, and measure how far to trust the judge.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("--version", action="version", version=f"vieval {VERSION}")
    subparsers = parser.add_subparsers(
        required=True, metavar="COMMAND", parser_class=_CommandParser
    )
    for name in commands:
        _add_command(subparsers, name, importlib.import_module(f"{__name__}.{name}"))
    return parser
