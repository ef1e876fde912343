"""`vieval anchor`: is this still the same judge?"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import (
    EXAMPLE_BACKBONE,
    add_backbone,
    add_command,
    number_between,
    output_path,
    tell,
)
from vieval_plugin.cli.score.backbone import named_backbone
from vieval_plugin.text.errors import ExitCode

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands

_EXAMPLES = (
    (
        "keep 200 samples of your results",
        f"vieval anchor make verdicts.jsonl --out anchor.jsonl {EXAMPLE_BACKBONE}",
    ),
    (
        "check the judge a month later",
        f"vieval anchor check anchor.jsonl {EXAMPLE_BACKBONE}",
    ),
)
#: Exit code of a check by its decision.
EXIT_CODES = {
    "no_drift": ExitCode.FINE,
    "drift": ExitCode.JUDGE_DRIFTED,
    "undecided": ExitCode.UNDECIDED,
}


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "anchor",
        "check whether a judge is still the same",
        "Keep an anchor of samples that were judged three times; judge them again after an "
        "update of the server, and a test tells drift from noise.",
        *_EXAMPLES,
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    making = add_command(
        actions,
        "make",
        "make an anchor from results",
        "Each sample is judged three times.",
        _EXAMPLES[0],
    )
    making.add_argument(
        "results",
        nargs="+",
        type=Path,
        help="verdicts of one judge, from vieval score or lmms-eval",
    )
    making.add_argument(
        "--n",
        type=number_between(1),
        default=200,
        metavar="N",
        help="number of samples (default: %(default)s)",
    )
    making.add_argument(
        "--out",
        type=output_path,
        required=True,
        help="the anchor to write, a .jsonl file",
    )
    making.add_argument(
        "--copy-images",
        action="store_true",
        help="copy the images into a folder beside the anchor",
    )
    making.set_defaults(run=_make)
    checking = add_command(
        actions,
        "check",
        "judge an anchor's samples again, and test for drift",
        (
            f"The exit code is 0 for no drift, {ExitCode.JUDGE_DRIFTED} for drift, and 4 if the "
            "samples cannot tell."
        ),
        _EXAMPLES[1],
    )
    checking.add_argument(
        "anchor", type=Path, help="the file that vieval anchor make wrote"
    )
    checking.set_defaults(run=_check)
    for action in (making, checking):
        add_backbone(action)
        action.set_defaults(config=None)


def _make(options: argparse.Namespace) -> int:
    from vieval_plugin import config
    from vieval_plugin.audit.anchor import (
        REPEATS,
        SEED,
        anchor_samples,
        copy_images,
        judge_today,
        judged_again,
        runs_of_anchor,
        source_of,
    )
    from vieval_plugin.judges.protocol import FAILED_CALLS
    from vieval_plugin.media.files import require_suffix, require_writable
    from vieval_plugin.results.lookup import open_results
    from vieval_plugin.run.evaluate import provenance_of
    from vieval_plugin.run.verdict_lines import Inputs, write_runs
    from vieval_plugin.text.escaping import say

    require_suffix(options.out, (".jsonl",))
    require_writable(options.out, reads=options.results)
    lookup = open_results(options.results)
    named = partial(named_backbone, options)
    judge, current = judge_today(source_of(lookup), config.current(), named)
    judged = anchor_samples(lookup, options.n, SEED)
    if options.copy_images:
        judged = copy_images(judged, options.out.with_suffix(".images"))
    repeats = judged_again(judged, judge, current, REPEATS, tell, bar=True)
    runs = runs_of_anchor(provenance_of(judge, current, None), repeats)
    write_runs(
        options.out, Inputs("", len(judged), ""), [(judged, *run) for run in runs]
    )
    say(
        f"wrote {options.out}: {len(judged)} samples, each judged {REPEATS} times (seed {SEED})"
    )
    return int(
        any(
            verdict.status in FAILED_CALLS
            for verdicts in repeats
            for verdict in verdicts
        )
    )


def _check(options: argparse.Namespace) -> int:
    from vieval_plugin import config
    from vieval_plugin.audit.anchor import SEED, check_anchor
    from vieval_plugin.text.escaping import say

    named = partial(named_backbone, options)
    _, decision, lines = check_anchor(
        options.anchor, config.current(), named, tell, bar=True
    )
    say(*lines, f"seed {SEED}")
    return EXIT_CODES[decision]
