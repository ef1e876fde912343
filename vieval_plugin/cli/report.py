"""`vieval report`: a page and tables from results."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import (
    add_benchmark,
    add_calibration,
    add_command,
    add_human,
    add_label_option,
    add_partial,
    output_path,
    tell_unreadable,
)

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "report",
        "make a page, with tables, of results",
        (
            "The page compares judges with annotators, or generators with each other, and shows "
            "images with their verdicts."
        ),
        ("your verdicts", "vieval report verdicts.jsonl --out report"),
        ("a run of lmms-eval", "vieval report out/my-run --out report"),
    )
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        help="verdicts of vieval score, or folders of runs: lmms-eval's --output_path, with "
        "--log_samples, or VLMEvalKit's --work-dir",
    )
    add_label_option(parser)
    add_benchmark(parser)
    add_human(parser, " of your samples")
    add_calibration(parser)
    parser.add_argument(
        "--out",
        type=output_path,
        required=True,
        help="folder for report.html, report.md, numbers.csv, pairs.csv and tables",
    )
    parser.add_argument(
        "--expect", type=Path, help="compare with the published cells in this CSV file"
    )
    parser.add_argument(
        "--training-record",
        metavar="FOLDER",
        nargs="*",
        type=Path,
        default=[],
        help="folders of models that you trained, to mark the samples that they were trained on",
    )
    parser.add_argument(
        "--order",
        type=Path,
        help="compare rankings with this file, which has an image model on a line, the best first",
    )
    add_partial(parser)
    parser.add_argument(
        "--traces",
        action="store_true",
        help="also write pages that show each step of judges that take many",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin import api
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.report.writing import PAGE
    from vieval_plugin.text.escaping import say

    for name in ("report.md", PAGE):
        require_writable(options.out / name)
    conclusion = api.report(
        *options.results,
        folder=options.out,
        label=options.label,
        partial=options.partial,
        benchmarks=options.benchmark,
        human=options.human,
        calibration=options.calibration,
        expect=options.expect,
        order=options.order,
        training_records=options.training_record,
    )
    say(*conclusion.lines, answer=True)
    say(
        f"wrote {options.out / PAGE} (open it in a browser) and {options.out / 'report.md'}"
    )
    tell_unreadable(conclusion.unreadable)
    if options.traces:
        from vieval_plugin.report.traces import write_pages
        from vieval_plugin.results.lookup import open_results

        lookup = open_results(options.results, options.partial)
        for page in write_pages(lookup, options.out):
            say(f"wrote {page}")
    if conclusion.comparison:
        say(*conclusion.comparison.lines())
    return conclusion.outcome
