"""`vieval data`: training data without people, one module what it is for."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


GROUP = "train judges"


def add(commands: Commands) -> None:
    parser = commands.add_parser("data", help="training data without people, and sequences to make it of")
    actions = parser.add_subparsers(required=True, metavar="what")
    for recipe in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{recipe.name}").add(actions)
