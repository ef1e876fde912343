"""`vieval export`: training examples from the conversations of a run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_partial

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


GROUP = "train judges"


def add(commands: Commands) -> None:
    parser = commands.add_parser("export", help="training examples from the conversations of a run")
    parser.add_argument("judge", help="whose conversations")
    parser.add_argument("results", nargs="+", type=Path, help="as for show")
    parser.add_argument("--out", type=Path, required=True, help="JSONL of examples")
    add_partial(parser)
    parser.add_argument(
        "--trainer",
        choices=["trl", "ms-swift", "llama-factory"],
        default="ms-swift",
        help="whose reading of images in messages to follow (default: %(default)s)",
    )
    parser.add_argument(
        "--rebalance", action="store_true", help="even out sub-tasks and scores, where the judge says how"
    )
    parser.add_argument("--seed", type=int, default=0, help="of what is sampled (default: %(default)s)")
    parser.add_argument(
        "--margin",
        type=float,
        default=0.3,
        help="how far a verdict may be from the human mean, for judges near to it (default: %(default)s)",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.results.lookup import open_results
    from vieval_plugin.text.escaping import say
    from vieval_plugin.training.export import ExportChoices, export

    require_writable(options.out)
    lookup = open_results(options.results, options.partial)
    choices = ExportChoices(options.trainer, options.rebalance, options.seed, options.margin)
    for line in export(options.judge, lookup, options.out, choices):
        say(line)
    say(f"wrote {options.out}")
    return 0
