"""Show one verdict with its questions, replies and scores.

The verdict is printed as a tree, or written to a page with the images.

Examples:
    # print the verdict on sample 17
    vieval show verdicts.jsonl 17
    # write a page with questions and images
    vieval show verdicts.jsonl 17 --html verdict.html
"""

from __future__ import annotations

from pathlib import Path

from vieval_plugin.cli import OutputPath, argument, flag
from vieval_plugin.cli.options import PartialOptions


class ShowOptions(PartialOptions):
    """Options of `vieval show`."""

    results: Path = argument(
        "verdicts from vieval score, or a folder of a run (lmms-eval's --output_path)"
    )
    id: str = argument(
        "sample id, as benchmark/part/image model/uid or the end of it; in a folder "
        "of shards also FILE:ROW"
    )
    judge: str | None = flag("show the verdict of this judge, if there are several")
    html: OutputPath | None = flag(
        "write a page with the questions and images to this file",
    )


def run(options: ShowOptions) -> int:
    from vieval_plugin.media.files import require_writable, write_whole
    from vieval_plugin.results.lookup import Lookup, find_record
    from vieval_plugin.results.tree import outline, text
    from vieval_plugin.text.escaping import say

    if options.html is not None:
        require_writable(options.html, "--html")
    record = find_record(
        options.results,
        options.id,
        options.judge,
        options.partial,
    )
    if options.html is None:
        say(*text(outline(record)))
        return 0
    from vieval_plugin.report.traces import page

    lookup = Lookup((record,))
    tree = outline(record, lookup.conversation(record), lookup.sample(record))
    write_whole(
        options.html,
        [page(str(record.id), [tree], unfolded=4)],
        "--html",
    )
    say(f"wrote {options.html}")
    return 0
