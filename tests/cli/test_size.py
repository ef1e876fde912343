"""What a reader has to read and a user to choose from stays small (`tests/bounds.py`)."""

import argparse
import dataclasses
import typing
from pathlib import Path

from pydantic import BaseModel

from tests import bounds
from vieval_plugin.cli import build_parser
from vieval_plugin.config import Config

ROOT = Path(__file__).parents[2]
REMEDY = (
    "see tests/bounds.py: remove or merge one for each that you add; a judge in "
    "judges/described/ needs neither a module nor an option key"
)


def actions(parser, path=()):
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from actions(below, (*path, name))
        else:
            yield path, action


def keys(model, prefix=""):
    """The keys of options as a file has them, with those under names of the user's."""
    for name, annotation in typing.get_type_hints(model).items():
        below = [
            member
            for member in (annotation, *typing.get_args(annotation))
            if isinstance(member, type)
            and (issubclass(member, BaseModel) or dataclasses.is_dataclass(member))
        ]
        yield from (key for member in below for key in keys(member, f"{prefix}{name}."))
        if not (
            below
            or name.startswith("model_")
            or typing.get_origin(annotation) is typing.ClassVar
        ):
            yield f"{prefix}{name}"


def files(*folders, suffix):
    return [file for folder in folders for file in (ROOT / folder).rglob(f"*{suffix}")]


def test_commands_options_and_keys_are_few():
    commands = {path[0] for path, _ in actions(build_parser()) if path}
    options = {
        name
        for command in commands
        for _, action in actions(build_parser([command]))
        for name in action.option_strings
        if name.startswith("--")
    }
    options_keys = {*keys(Config)}
    counts = f"{len(commands)} commands, {len(options)} options"
    print(f"{counts}, {len(options_keys)} keys: {sorted(options)}")
    assert "--margin" in options
    assert {"judges.cigeval.removed", "scorers.device", "store.path"} <= options_keys
    assert len(commands) <= bounds.COMMANDS, REMEDY
    assert len(options) <= bounds.OPTIONS, REMEDY
    assert len(options_keys) <= bounds.OPTION_KEYS, REMEDY


def test_the_code_is_small():
    modules = files("vieval_plugin", "judges", suffix=".py")
    assert 400 < len(modules) <= bounds.MODULES, REMEDY
    suffixes = (".jinja", ".css", ".js")
    pages = [
        file for suffix in suffixes for file in files("vieval_plugin", suffix=suffix)
    ]
    lines = sum(len(file.read_text().splitlines()) for file in pages)
    assert 1_000 < lines <= bounds.TEMPLATE_LINES
