"""`vieval rank`: which generator is best."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_label, add_partial, tell_unreadable

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


GROUP = "look at results"


def add(commands: Commands) -> None:
    parser = commands.add_parser("rank", help="which generator is best: ranks, intervals and paired tests")
    parser.add_argument(
        "verdicts", nargs="+", type=Path, help="what score wrote, or --output_path of runs with --log_samples"
    )
    parser.add_argument(
        "--human", nargs="+", type=Path, default=[], help="CSV files of people's ratings, by which means are corrected"
    )
    add_label(parser)
    add_partial(parser)
    parser.add_argument("--out", type=Path, help="folder for the tables as Markdown, CSV and JSON")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin import config
    from vieval_plugin.benchmarks.loading.ratings import read_ratings
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.report.ranking import FILES, lines, rank_results, write_ranking
    from vieval_plugin.results.runs import load_results
    from vieval_plugin.text.escaping import say

    if options.out:
        require_writable(options.out / FILES[-1])
    statistics = config.current().statistics.options()
    ratings = read_ratings(options.human) if options.human else None
    results = load_results(options.verdicts, options.label, options.partial)
    ranking = rank_results(results, ratings, statistics)
    say(*lines(ranking, statistics))
    if options.out:
        write_ranking(ranking, options.out, statistics)
        say(*(f"wrote {options.out / name}" for name in FILES))
    return tell_unreadable(results.unreadable)
