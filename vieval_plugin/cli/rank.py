"""`vieval rank`: which generator is best."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import (
    EXAMPLE_BACKBONE,
    add_backbone,
    add_columns,
    add_command,
    add_human,
    add_judge,
    add_label_option,
    add_partial,
    number_between,
    output_path,
    show,
    tell,
)
from vieval_plugin.cli.score import DEFAULT_JUDGE, tell_plan
from vieval_plugin.cli.score.backbone import backbone_fields, options_in_force
from vieval_plugin.text.errors import ExitCode

if TYPE_CHECKING:
    from vieval_plugin.api.ranking import RankingRequest
    from vieval_plugin.cli import Commands
    from vieval_plugin.report.build_result import BuildResult

BEST_OF = "best_of.csv"
#: Margins are below one half, the most that a win rate can fall.
LARGEST_MARGIN = 0.499
#: Environment variable of the key of the server that makes images.
KEY_VARIABLE = "VIEVAL_GENERATOR_API_KEY"
#: Flags of the files that a build reads, with what they are.
_OUTPUTS = {
    "summary": "Markdown",
    "junit": "JUnit XML",
    "json": "JSON, with all numbers",
}
#: Flags of files that are written, with the suffix of their names.
_SUFFIXES = {
    "history": ".jsonl",
    "summary": ".md",
    "junit": ".xml",
    "json": ".json",
    "html": ".html",
    "out": ".jsonl",
}
#: Flags of files of earlier runs that stay until they are replaced.
_KEPT = ("history", "out")


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "rank",
        "find out which generator is better, and how sure that is",
        (
            "Generators are compared on the prompts that they share, with ranks, intervals and "
            "paired tests."
        ),
        (
            "folders of images",
            f"vieval rank mine theirs --prompts prompts.csv --judge pairwise {EXAMPLE_BACKBONE}",
        ),
        ("verdicts, with a page", "vieval rank verdicts.jsonl --html rank.html"),
        (
            "fail if the new one is worse",
            "vieval rank new.jsonl --against last_build.jsonl --margin 0.02",
        ),
    )
    parser.add_argument(
        "inputs",
        nargs="+",
        type=Path,
        help="verdicts of vieval score, folders of runs (lmms-eval's --output_path, with "
        "--log_samples), or folders of images, with --prompts",
    )
    parser.add_argument(
        "--prompts",
        type=Path,
        help="the prompts of images in folders: a .txt, .csv or .jsonl file",
    )
    add_columns(parser)
    parser.add_argument(
        "--kind", help="the task type of prompts that name none, such as tig"
    )
    parser.add_argument(
        "--out",
        type=output_path,
        help="write the verdicts on folders here, a .jsonl file",
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="FILE",
        help=(
            "verdicts of an earlier build on the same prompts by the same judge, or an anchor, "
            "as the other generator"
        ),
    )
    parser.add_argument(
        "--margin",
        type=number_between(0, LARGEST_MARGIN, float),
        metavar="M",
        help="exit with 0 only if the first generator is worse than no other by more than M, in "
        "the unit of the difference, also with failures as the lowest score, and the judge sees "
        "spoilt images; with 3 if it is worse, with 4 if the data cannot tell, with 5 if the "
        "judge of an anchor has drifted, with 6 if --history shows a slow fall",
    )
    parser.add_argument(
        "--no-control",
        action="store_true",
        help="pass a build without asking whether the judge sees spoilt images",
    )
    parser.add_argument(
        "--history",
        type=output_path,
        metavar="FILE",
        help="append the night of a gate to FILE, .jsonl, and look for a slow fall",
    )
    parser.add_argument(
        "--plan",
        action="store_true",
        help="judge eight images, print what all would cost, and stop",
    )
    for name, words in _OUTPUTS.items():
        parser.add_argument(
            f"--{name}",
            type=output_path,
            metavar="FILE",
            help=f"write the decision of the gate as {words}",
        )
    add_human(parser, ", which correct the judge's means")
    add_label_option(parser)
    add_partial(parser)
    parser.add_argument(
        "--tables",
        type=output_path,
        metavar="FOLDER",
        help="write all tables as Markdown, CSV and JSON",
    )
    parser.add_argument(
        "--html",
        type=output_path,
        metavar="FILE",
        help="write a page with images side by side",
    )
    parser.add_argument(
        "--best-of",
        action="store_true",
        help="only name the best image of each prompt and generator",
    )
    add_judge(parser, DEFAULT_JUDGE)
    add_backbone(parser)
    made = parser.add_argument_group(
        "generator", "a server that makes the images, kept in the folder named first"
    )
    made.add_argument(
        "--generator-url",
        metavar="URL",
        help=f"address ending in /v1; its key is in {KEY_VARIABLE}",
    )
    made.add_argument(
        "--generator-model", metavar="NAME", help="its name on the server"
    )
    made.add_argument(
        "--seed",
        type=int,
        default=0,
        help="seed of the first prompt, each further one has the next",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    """Rank, print and write, and write what a build reads, also of an error."""
    from vieval_plugin.report.build_result import failed_build, write_build_files
    from vieval_plugin.text.errors import VievalError

    _require_outputs(options)
    files = vars(options) if options.margin is not None else None
    try:
        result = _rank(options)
    except VievalError as error:
        write_build_files(failed_build(error), files)
        raise
    write_build_files(result, files)
    return result.exit_code


def _rank(options: argparse.Namespace) -> BuildResult:
    """Rank as the flags say, and print and write what that shows."""
    from vieval_plugin.api.ranking import conclude, planned, prepare_ranking
    from vieval_plugin.report.build_result import BuildResult
    from vieval_plugin.run.side_by_side import finish_build

    prepared = prepare_ranking(_request(options))
    if options.plan:
        return BuildResult(ExitCode(tell_plan(*planned(prepared))))
    conclusion = conclude(prepared)
    show(conclusion, options.tables, options.html)
    if options.generator_url and not conclusion.failed:
        finish_build(options.inputs[0])
    return conclusion.build


def _request(options: argparse.Namespace) -> RankingRequest:
    """The request of flags."""
    from vieval_plugin.api.ranking import request_of_flags
    from vieval_plugin.run.side_by_side import image_server

    url, model = options.generator_url, options.generator_model
    key = os.environ.get(KEY_VARIABLE, "")
    make = image_server(url, model, options.inputs, key, options.seed)
    return request_of_flags(
        vars(options),
        options=options_in_force(options),
        backbone=backbone_fields(options),
        make=make,
        tell=tell,
    )


def _require_outputs(options: argparse.Namespace) -> None:
    """VievalError for a file that cannot be written or is read; those of an earlier gate are
    removed, as they would mislead.
    """
    from vieval_plugin.media.files import require_outputs, require_writable
    from vieval_plugin.report.files import FINDING_FILES
    from vieval_plugin.report.writing import RANK_MD
    from vieval_plugin.text.errors import VievalError

    is_gate = options.margin is not None
    named = [options.against, options.prompts]
    reads = [*options.inputs, *options.human, *filter(None, named)]
    for name in ("history", "no_control"):
        if getattr(options, name) and not is_gate:
            flag = name.replace("_", "-")
            raise VievalError(f"--{flag} is part of a gate; pass --margin too")
    tables = [BEST_OF] if options.best_of else [RANK_MD, *FINDING_FILES]
    for name in tables if options.tables else ():
        require_writable(options.tables / name, "--tables", reads)
    for name in _OUTPUTS:
        if getattr(options, name) and not is_gate:
            raise VievalError(
                f"--{name} is the decision of a gate: give a --margin too"
            )
    replaced = () if is_gate else _SUFFIXES
    require_outputs(vars(options), _SUFFIXES, reads, (*replaced, *_KEPT))
