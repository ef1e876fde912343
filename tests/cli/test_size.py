"""What a user has to choose from stays small: commands, options and keys of the options file."""

import argparse

from pydantic import BaseModel

from vieval_plugin.cli import _parser
from vieval_plugin.config import Config


def actions(parser, path=()):
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from actions(below, (*path, name))
        else:
            yield path, action


def keys(model, prefix=""):
    for name, field in model.model_fields.items():
        members = [field.annotation, *getattr(field.annotation, "__args__", ())]
        below = [member for member in members if isinstance(member, type) and issubclass(member, BaseModel)]
        yield from (key for member in below for key in keys(member, f"{prefix}{name}."))
        if not below:
            yield f"{prefix}{name}"


def test_commands_options_and_keys_are_few():
    commands = {path[0] for path, _ in actions(_parser()) if path}
    found = {command: [action for _, action in actions(_parser(command))] for command in commands}
    options = {name for of_one in found.values() for a in of_one for name in a.option_strings if name.startswith("--")}
    print(f"{len(commands)} commands, {len(options)} options, {len(set(keys(Config)))} keys: {sorted(options)}")
    assert "--margin" in options
    assert len(commands) <= 25
    assert len(options) <= 165
    assert len(set(keys(Config))) <= 60
