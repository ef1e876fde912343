"""`vieval train`: judges from training data, one module a recipe."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Commands = _SubParsersAction[argparse.ArgumentParser]


def add(commands: Commands) -> None:
    parser = commands.add_parser("train", help="a judge, or the backbone of one, from training data")
    actions = parser.add_subparsers(required=True, metavar="what")
    for found in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{found.name}").add(actions)
