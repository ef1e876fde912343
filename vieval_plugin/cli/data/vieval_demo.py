"""`vieval data drawn`: editing sequences drawn here, as a folder of turns."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_command

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


def add(actions: Commands) -> None:
    parser = add_command(
        actions,
        "drawn",
        "draw synthetic editing sequences",
        "",
        ("a thousand sequences", "vieval data drawn --out turns"),
        ("a hundred others", "vieval data drawn --out turns --count 100 --seed 1"),
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the sequences")
    parser.add_argument("--count", type=int, default=1000, help="number of sequences (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the drawings (default: %(default)s)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.benchmarks.sequences import FILE
    from vieval_plugin.benchmarks.vieval_demo.sequences import write_drawn
    from vieval_plugin.errors import VievalError
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.text.escaping import say

    if options.count < 1:
        raise VievalError(f"--count {options.count}: draw one sequence or more")
    require_writable(options.out / FILE)
    write_drawn(options.out, options.count, options.seed)
    say(f"seed {options.seed}", f"wrote {options.count} sequences to {options.out}")
    return 0
