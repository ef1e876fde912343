"""The page of commands, from the argparse parsers of `vieval`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from _ext import markdown

from vieval_plugin import cli


def page() -> str:
    """Every command and subcommand with its options, defaults and examples."""
    commands = {
        command.prog.split()[-1]: command for command in _subparsers(cli.build_parser())
    }
    tasks = [
        [
            task[:1].upper() + task[1:],
            ", ".join(f"[{name}](#vieval-{name})" for name in names),
        ]
        for task, names in cli.GROUPS.items()
    ]
    return markdown.page(
        "Commands",
        (
            "This page is generated from the commands themselves; `vieval COMMAND --help` prints "
            "the same."
        ),
        markdown.table(["to", "commands"], tasks),
        *(
            part
            for names in cli.GROUPS.values()
            for name in names
            for part in _section(commands[name], "##")
        ),
    )


def _subparsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    actions = (
        action
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return [
        command
        for action in actions
        for command in dict.fromkeys(action.choices.values())
    ]


def _section(parser: argparse.ArgumentParser, heading: str) -> Iterator[str]:
    yield f"{heading} {parser.prog}"
    yield markdown.text(parser.description or "")
    yield _fenced(
        "text",
        parser.format_usage()
        .replace("\n" + " " * len("usage: "), "\n")
        .removeprefix("usage: "),
    )
    if subparsers := _subparsers(parser):
        for subparser in subparsers:
            yield from _section(subparser, f"{heading}#")
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if _is_listed(action)]
        if actions and group.title not in ("positional arguments", "options"):
            about = f": {markdown.text(group.description)}" if group.description else ""
            yield f"**{str(group.title).capitalize()}**{about}"
        yield "\n\n".join(map(_entry, actions))
    if parser.epilog:
        yield _fenced(
            "bash",
            re.sub(
                r"^  ", "", parser.epilog.removeprefix("examples:"), flags=re.MULTILINE
            ),
        )


def _is_listed(action: argparse.Action) -> bool:
    hidden = isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    return not hidden and action.help is not argparse.SUPPRESS


def _entry(action: argparse.Action) -> str:
    names = action.option_strings or [str(action.metavar or action.dest)]
    value = (
        "" if not action.option_strings or action.nargs == 0 else f" {_value(action)}"
    )
    help_text = (action.help or "") % {**vars(action), "prog": "vieval"}
    default = (
        ""
        if "default" in help_text or action.default in (None, False, [], "==SUPPRESS==")
        else _default(action)
    )
    return (
        f"{markdown.codes(f'{name}{value}' for name in names)}\n: "
        f"{markdown.text(help_text)}{default}"
    )


def _value(action: argparse.Action) -> str:
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    name = action.metavar or choices or action.dest.upper()
    name = " ".join(name) if isinstance(name, tuple) else str(name)
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}.get(
        str(action.nargs), name
    )


def _default(action: argparse.Action) -> str:
    return f" (default: {markdown.code(str(action.default))})"


def _fenced(language: str, lines: str) -> str:
    return f"```{language}\n{lines.strip()}\n```"
