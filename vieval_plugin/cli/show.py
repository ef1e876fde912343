"""`vieval show`: one verdict as a tree."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_partial

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


GROUP = "look at results"


def add(commands: Commands) -> None:
    parser = commands.add_parser("show", help="one verdict as a tree: what was asked, answered and scored")
    parser.add_argument("results", type=Path, help="--output_path of a run with --log_samples, or what score wrote")
    parser.add_argument(
        "id",
        help="the sample: benchmark/part/image model/uid, or as much of its end as tells it apart; in a folder of shards "
        "also FILE:ROW",
    )
    parser.add_argument("--judge", help="of several judges' verdicts on a sample, this one's")
    add_partial(parser)
    parser.add_argument("--html", type=Path, help="write a page with the questions and images instead")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.media.files import require_writable, write_whole
    from vieval_plugin.results.lookup import Lookup, find_record
    from vieval_plugin.results.tree import outline, text
    from vieval_plugin.text.escaping import say

    if options.html is not None:
        require_writable(options.html, "--html")
    record = find_record(options.results, options.id, options.judge, options.partial)
    if options.html is None:
        say(*text(outline(record)))
        return 0
    from vieval_plugin.report.traces import page

    conversation = Lookup((record,)).conversation(record)
    write_whole(options.html, [page(str(record.id), [outline(record, conversation)], unfolded=4)], "--html")
    say(f"wrote {options.html}")
    return 0
