"""Packs by any name: built-in ones, folders, and those read at run time from the wording of a package that is installed."""

from __future__ import annotations

import tempfile
from pathlib import Path

from vieval_plugin.errors import VievalError
from vieval_plugin.prompts import packs
from vieval_plugin.prompts.importing import found_installed, importers

INSTALLED = "installed/"


def load(name: str) -> packs.Pack:
    """The pack `installed/<judge>`, made of what that judge's importer finds installed, or any other as `packs.load` has it."""
    if not name.startswith(INSTALLED):
        return packs.load(name)
    judge = name.removeprefix(INSTALLED)
    finders = found_installed()
    if judge not in finders:
        raise VievalError(f"{name}: no wording of {judge!r} is read from a package; known: {', '.join(finders)}")
    source = finders[judge]()
    with tempfile.TemporaryDirectory() as folder:
        [made] = importers()[judge](source, Path(folder), None)
        return packs.load(str(made))
