"""`vieval anchor`: is this still the same judge?"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import (
    EXAMPLE_BACKBONE,
    add_backbone,
    add_command,
    number_between,
    output_path,
)
from vieval_plugin.cli.score.backbone import named_backbone, require_model
from vieval_plugin.text.errors import ExitCode

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands
    from vieval_plugin.config import Config
    from vieval_plugin.judges.contests import Judged
    from vieval_plugin.judges.protocol import SampleId, Verdict
    from vieval_plugin.records import Provenance
    from vieval_plugin.run.prepare import PreparedJudge

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
_SEED = 0
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
    from vieval_plugin.audit.anchor import (
        REPEATS,
        anchor_samples,
        copy_images,
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
    judge, current = judge_today(options, source_of(lookup))
    judged = anchor_samples(lookup, options.n, _SEED)
    if options.copy_images:
        judged = copy_images(judged, options.out.with_suffix(".images"))
    repeats = _asked(judged, judge, current, REPEATS)
    runs = runs_of_anchor(provenance_of(judge, current, None), repeats)
    write_runs(
        options.out, Inputs("", len(judged), ""), [(judged, *run) for run in runs]
    )
    say(
        f"wrote {options.out}: {len(judged)} samples, each judged {REPEATS} times (seed {_SEED})"
    )
    return int(
        any(
            verdict.status in FAILED_CALLS
            for verdicts in repeats
            for verdict in verdicts
        )
    )


def _check(options: argparse.Namespace) -> int:
    from vieval_plugin.text.escaping import say

    _, decision, lines = check_anchor(options.anchor, options)
    say(*lines, f"seed {_SEED}")
    return EXIT_CODES[decision]


def check_anchor(
    path: Path, options: argparse.Namespace
) -> tuple[dict[SampleId, Verdict], str, list[str]]:
    """Judge an anchor's samples again, and test the verdicts for drift.

    Args:
        path: the file that `vieval anchor make` wrote.
        options: flags that name the backbone.

    Returns:
        Today's verdicts, the decision, and lines on it, the answer first.

    Raises:
        VievalError: the file is no anchor, or its judge would ask other questions today.
    """
    from vieval_plugin.audit.anchor import (
        drift_report,
        lines,
        read_anchor,
        require_same_judge,
    )
    from vieval_plugin.results.lookup import open_results
    from vieval_plugin.run.evaluate import provenance_of

    anchor = read_anchor(open_results([path]), str(path))
    judge, current = judge_today(options, anchor.provenance)
    require_same_judge(anchor, judge)
    [verdicts] = _asked(anchor.judged, judge, current, 1)
    report = drift_report(anchor, verdicts, _SEED)
    today = {
        judged.id: verdict
        for judged, verdict in zip(anchor.judged, verdicts, strict=True)
    }
    return (
        today,
        report.decision,
        lines(report, anchor, provenance_of(judge, current, None).backbone),
    )


def _asked(
    judged: Sequence[Judged], judge: PreparedJudge, current: Config, times: int
) -> list[list[Verdict]]:
    """The verdicts of a judge that is asked so many times."""
    from vieval_plugin.run.evaluate import outcomes_of
    from vieval_plugin.run.progress import Progress
    from vieval_plugin.text.escaping import say

    progress = Progress()
    try:
        runs = [
            asyncio.run(outcomes_of(judged, judge, current, None, progress, True))
            for _ in range(times)
        ]
        return [[outcome.verdict for outcome in outcomes] for outcomes in runs]
    finally:
        say(*progress.lines(), file=sys.stderr)


def judge_today(
    options: argparse.Namespace, source: Provenance, stored: bool = False
) -> tuple[PreparedJudge, Config]:
    """The judge of results with the options that it had then, past the store unless `stored`, and
    today's backbones.

    These are what flags, else the options in force, else the environment say of them, laid over
    what was recorded.
    """
    from vieval_plugin import config
    from vieval_plugin.run.backbones import JUDGE
    from vieval_plugin.run.prepare import prepare, setting_of

    recorded = config.from_document(source.options)
    in_force = config.read(str(options.config)) if options.config else config.current()
    named = named_backbone(options, in_force) or named_backbone(options, recorded)
    backbones = dict(recorded.backbones)
    for name, today in {
        **in_force.backbones,
        **({JUDGE: named} if named else {}),
    }.items():
        fields = {
            "api_key_env": today.api_key_env,
            **today.model_dump(exclude_unset=True),
        }
        backbones[name] = backbones.get(name, today).model_copy(update=fields)
    store = in_force.store if stored else config.StoreOptions(use=False)
    in_place = {
        "store": store,
        "calibration": in_force.calibration,
        "backbones": backbones,
    }
    current = recorded.model_copy(update=in_place)
    judge = prepare(source.judge, setting_of(source), current)
    if judge.asks_a_model:
        require_model(source.judge, current, None)
    return judge, current
