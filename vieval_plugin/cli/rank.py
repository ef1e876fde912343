"""Find out which generator is better, and how certain that is.

Generators are compared on the prompts that they share, with ranks, intervals and paired tests.

Examples:
    # compare folders of images
    vieval rank mine theirs --prompts prompts.csv --judge pairwise --model NAME --base-url http://127.0.0.1:8000/v1
    # compare verdicts and write a page
    vieval rank verdicts.jsonl --html rank.html
    # fail if the new one is worse
    vieval rank new.jsonl --against last_build.jsonl --margin 0.02
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import (
    Options,
    OutputPath,
    Seed,
    argument,
    flag,
    number_between,
    print_conclusion,
    tell,
)
from vieval_plugin.cli.options import (
    BackboneOptions,
    ColumnOptions,
    JudgeOptions,
    LabelOptions,
    PartialOptions,
    backbone_fields,
    first_flag,
    human_flag,
    options_in_force,
)
from vieval_plugin.cli.score import tell_plan
from vieval_plugin.text.errors import ExitCode

if TYPE_CHECKING:
    from vieval_plugin.api.ranking import RankingRequest
    from vieval_plugin.report.build_result import BuildResult

BEST_OF = "best_of.csv"
#: Margins are below one half, the most that a win rate can fall.
LARGEST_MARGIN = 0.499
#: Environment variable of the key of the server that makes images.
KEY_VARIABLE = "VIEVAL_GENERATOR_API_KEY"
#: Flags of the files that a build reads.
_OUTPUTS = ("summary", "junit", "json")
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


class GeneratorOptions(
    Options,
    group=(
        "generator",
        "server that generates the images, which are saved in the first folder",
    ),
):
    """The generator that makes the images."""

    generator_url: str | None = flag(
        f"server address, ending in /v1; its key is read from ${KEY_VARIABLE}",
        metavar="URL",
    )
    generator_model: str | None = flag("model name on the server", metavar="NAME")
    seed: Seed = flag(
        "seed of the first prompt; each further prompt has the next seed", 0
    )


class GateOptions(Options, group=("gate",)):
    """The decision on a build, and its files."""

    against: Path | None = flag(
        "compare with an earlier build: its verdicts by the same judge on the same prompts, or an "
        "anchor",
        metavar="FILE",
    )
    margin: float | None = flag(
        "exit with 0 only if the first generator is not worse than any other by more than M (in "
        "the unit of the difference, even if failures count as the lowest score), and the judge "
        "detects damaged images; exit with 3 if it is worse, 4 if the data is inconclusive, 5 if "
        "the judge of an anchor has drifted, 6 if --history shows a slow fall",
        type=number_between(0, LARGEST_MARGIN, float),
        metavar="M",
    )
    no_control: bool = flag(
        "pass a build without checking whether the judge detects damaged images"
    )
    history: OutputPath | None = flag(
        "append the gate's result to FILE (.jsonl), one line per night, and check the "
        "scores for a slow fall",
        metavar="FILE",
    )
    summary: OutputPath | None = flag(
        "write the gate's decision as Markdown", metavar="FILE"
    )
    junit: OutputPath | None = flag(
        "write the gate's decision as JUnit XML", metavar="FILE"
    )
    json: OutputPath | None = flag(
        "write the gate's decision as JSON, with all numbers", metavar="FILE"
    )


class RankOptions(
    GateOptions,
    ColumnOptions,
    LabelOptions,
    PartialOptions,
    JudgeOptions,
    BackboneOptions,
    GeneratorOptions,
):
    """Options of `vieval rank`."""

    inputs: list[Path] = argument(
        "verdicts from vieval score, folders of runs (lmms-eval's --output_path, which "
        "requires --log_samples), or folders of images (which require --prompts)"
    )
    prompts: Path | None = flag(
        "prompts of images in folders: a .txt, .csv or .jsonl file"
    )
    reference: Path | None = flag(
        "images for the same prompts to compare with, such as another backend's",
        metavar="FOLDER",
    )
    kind: str | None = flag("task type of prompts without one, such as tig")
    out: OutputPath | None = flag(
        "write the verdicts on folders of images to this .jsonl file"
    )
    plan: bool = flag(
        "judge eight images, print the estimated cost of judging all of them, and exit"
    )
    human: list[Path] = human_flag(", to correct the judge's means")
    tables: OutputPath | None = flag(
        "write all tables as Markdown, CSV and JSON", metavar="FOLDER"
    )
    html: OutputPath | None = flag(
        "write a page with images side by side", metavar="FILE"
    )
    best_of: bool = flag("list only the best image of each prompt and generator")
    #: Command line, for the verdicts.
    command: str


def run(options: RankOptions) -> int:
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


def _rank(options: RankOptions) -> BuildResult:
    """Rank as the flags say, and print and write what that shows."""
    from vieval_plugin.api.ranking import conclude, planned, prepare_ranking
    from vieval_plugin.report.build_result import BuildResult
    from vieval_plugin.run.side_by_side import finish_build

    prepared = prepare_ranking(_request(options))
    if options.plan:
        return BuildResult(ExitCode(tell_plan(*planned(prepared))))
    conclusion = conclude(prepared)
    print_conclusion(conclusion, options.tables, options.html)
    if options.generator_url and not conclusion.failed:
        finish_build(options.inputs[0])
    return conclusion.build


def _request(options: RankOptions) -> RankingRequest:
    from vieval_plugin.api.ranking import request_of_flags
    from vieval_plugin.run.side_by_side import image_server

    key = os.environ.get(KEY_VARIABLE, "")
    make = image_server(
        options.generator_url,
        options.generator_model,
        options.inputs,
        key,
        options.seed,
    )
    return request_of_flags(
        vars(options),
        options=options_in_force(options),
        backbone=backbone_fields(options),
        make=make,
        tell=tell,
    )


def _require_outputs(options: RankOptions) -> None:
    """Raise VievalError for a file that cannot be written or is read; those of an earlier gate are
    removed, as they would mislead.
    """
    from vieval_plugin.media.files import require_outputs, require_writable
    from vieval_plugin.report.files import FINDING_FILES
    from vieval_plugin.report.writing import RANK_MD
    from vieval_plugin.text.errors import VievalError

    is_gate = options.margin is not None
    reads = [
        *options.inputs,
        *options.human,
        *filter(None, [options.against, options.prompts, options.reference]),
    ]
    flags = ("history", "no_control", *_OUTPUTS)
    part = first_flag(options, flags)
    if part and not is_gate:
        raise VievalError(f"{part} requires --margin")
    tables = [BEST_OF] if options.best_of else [RANK_MD, *FINDING_FILES]
    if options.tables:
        for name in tables:
            require_writable(options.tables / name, "--tables", reads)
    kept = _KEPT if is_gate else (*_SUFFIXES, *_KEPT)
    require_outputs(vars(options), _SUFFIXES, reads, kept)
