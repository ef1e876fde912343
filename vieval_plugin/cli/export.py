"""`vieval export`: training examples from the conversations of a run, and preference pairs of
images for generators.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_command, add_partial, margin, output_path

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands
    from vieval_plugin.results.lookup import Lookup


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "export",
        "write training data from verdicts",
        "Examples for a judge's backbone come from its conversations; with --pairs you get "
        "preference pairs to train a generator by DPO.",
        (
            "preference pairs for a generator",
            "vieval export --pairs verdicts.jsonl --out pairs.parquet",
        ),
        (
            "examples for a backbone",
            "vieval export t2i_eval out/gpt-4o --out train.jsonl",
        ),
    )
    parser.add_argument(
        "judge", nargs="?", help="the judge whose conversations to write"
    )
    parser.add_argument(
        "results", nargs="*", type=Path, help="results, as vieval show takes them"
    )
    parser.add_argument(
        "--pairs",
        nargs="+",
        type=Path,
        default=[],
        metavar="RESULTS",
        help="write the best and the worst image of each prompt by these verdicts",
    )
    parser.add_argument(
        "--out",
        type=output_path,
        required=True,
        help="file or folder to write: .jsonl for examples; .jsonl, .parquet or a folder for pairs",
    )
    add_partial(parser)
    parser.add_argument(
        "--trainer",
        choices=["trl", "diffusers", "kohya", "onetrainer"],
        default="trl",
        help="the trainer whose format to write; all but trl are for --pairs, and the last two "
        "read folders (default: %(default)s)",
    )
    parser.add_argument(
        "--rebalance",
        action="store_true",
        help="balance sub-tasks and scores, for a judge that says how",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="seed of what is sampled (default: %(default)s)",
    )
    parser.add_argument(
        "--margin",
        type=margin,
        help="for examples, the largest distance of a verdict from the human mean (default: "
        "0.3); for pairs, write each two "
        "images whose scores differ by this or more, in place of the best and the worst",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.media.files import require_suffix, require_writable
    from vieval_plugin.results.lookup import open_results
    from vieval_plugin.text.escaping import say
    from vieval_plugin.training.export import MARGIN, ExportChoices, export
    from vieval_plugin.training.pair_folders import FOLDERS
    from vieval_plugin.training.preference_pairs import PARQUET

    if options.trainer not in FOLDERS:
        formats = (".jsonl", PARQUET) if options.pairs else (".jsonl",)
        require_suffix(options.out, formats)
        require_writable(options.out, reads=[*options.pairs, *options.results])
    _require_one_export(options)
    lookup = open_results(options.pairs or options.results, options.partial)
    say(*(f"note: {note}" for note in lookup.notes))
    if options.pairs:
        say(_write_pairs(options, lookup))
        return 0
    margin = MARGIN if options.margin is None else options.margin
    choices = ExportChoices(options.rebalance, options.seed, margin)
    say(*export(options.judge, lookup, options.out, choices))
    return 0


def _require_one_export(options: argparse.Namespace) -> None:
    """VievalError for arguments of both kinds of exports, or of none."""
    from vieval_plugin.text.errors import VievalError

    if options.pairs and (options.judge or options.results or options.rebalance):
        raise VievalError(
            "--pairs takes the results itself, and no judge: vieval export --pairs RESULTS --out "
            "FILE"
        )
    if not options.pairs and not (options.judge and options.results):
        raise VievalError("name a judge and results, or results of images with --pairs")
    if not options.pairs and options.trainer != "trl":
        raise VievalError(f"--trainer {options.trainer} requires --pairs")


def _write_pairs(options: argparse.Namespace, lookup: Lookup) -> str:
    """The line on the pairs that were written."""
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.wording import plural
    from vieval_plugin.training.pair_folders import FOLDERS, write_pair_folders
    from vieval_plugin.training.preference_pairs import preference_pairs, write_pairs

    pairs = preference_pairs(lookup, options.margin)
    if not pairs:
        raise VievalError(
            f"no prompt has two images whose scores differ (by {options.margin or 0:g}): nothing "
            "to pair"
        )
    write = write_pair_folders if options.trainer in FOLDERS else write_pairs
    write(options.out, pairs, options.trainer)
    prompts = plural(len({pair.uid for pair in pairs}), "prompt")
    return f"wrote {options.out}: {plural(len(pairs), 'pair')} of {prompts}"
