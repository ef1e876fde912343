"""`vieval filter`: the rows of a data set whose verdicts pass a condition."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_partial

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands

GROUP = "judge images"


def add(commands: Commands) -> None:
    parser = commands.add_parser("filter", help="the rows of a data set whose verdicts pass, with their scores")
    parser.add_argument("folder", type=Path, help="the folder of shards that vieval score was given with --out")
    parser.add_argument(
        "--where",
        required=True,
        metavar="CONDITION",
        help="in SQL, on scores and columns of verdicts, such as \"SC > .7 and status = 'ok'\"",
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for the files, called as those that were judged"
    )
    parser.add_argument(
        "--prefix", default="", help="before the names of the columns that are added (scores, status, verdict_uid)"
    )
    add_partial(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.results.filtering import filter_shards
    from vieval_plugin.text.escaping import say

    done = filter_shards(options.folder, options.where, options.out, options.prefix, options.partial)
    if done.note:
        say(f"note: {done.note}")
    say(f"wrote {options.out}: {done.passed:,} of {done.verdicts:,} rows, {done.files:,} files")
    return 0
