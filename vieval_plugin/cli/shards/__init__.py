"""`vieval shards`: what a folder of shards holds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands

GROUP = "judge images"


def add(commands: Commands) -> None:
    parser = commands.add_parser("shards", help="what a folder of shards holds, and what is left")
    parser.add_argument("folder", type=Path, help="the folder that vieval score was given with --out")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.errors import VievalError
    from vieval_plugin.run.shards.folder import ShardFolder
    from vieval_plugin.run.shards.progress import progress_of
    from vieval_plugin.text.escaping import say

    folder = ShardFolder(options.folder)
    plan = folder.plan()
    if plan is None:
        raise VievalError(f"{options.folder}: no plan of shards there; name the folder that was given with --out")
    say(*progress_of(folder, plan).lines())
    return 0
