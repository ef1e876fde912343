"""`vieval show`: one verdict as a tree."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_command, add_partial, output_path

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "show",
        "show one verdict: what was asked, answered and scored",
        "It is printed as a tree, or written as a page with the images.",
        ("the verdict on sample 17", "vieval show verdicts.jsonl 17"),
        (
            "with questions and images",
            "vieval show verdicts.jsonl 17 --html verdict.html",
        ),
    )
    parser.add_argument(
        "results",
        type=Path,
        help="verdicts of vieval score, or a folder of a run (lmms-eval's --output_path)",
    )
    parser.add_argument(
        "id",
        help=(
            "the sample, as benchmark/part/image model/uid or the end of that; in a folder of "
            "shards also FILE:ROW"
        ),
    )
    parser.add_argument(
        "--judge", help="the verdict of this judge, if there are several"
    )
    add_partial(parser)
    parser.add_argument(
        "--html",
        type=output_path,
        help="write a page with the questions and images to this file",
    )
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
    write_whole(
        options.html,
        [page(str(record.id), [outline(record, conversation)], unfolded=4)],
        "--html",
    )
    say(f"wrote {options.html}")
    return 0
