"""`vieval data`: training data without people, one module what it is for."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_command

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "data",
        "make training data for judges without annotators",
        "",
        ("synthetic editing sequences", "vieval data drawn --out turns"),
        ("labelled edits of them", "vieval data adiee turns --out data"),
    )
    actions = parser.add_subparsers(required=True, metavar="DATA")
    for recipe in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{recipe.name}").add(actions)
