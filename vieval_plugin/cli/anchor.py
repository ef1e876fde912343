"""Check whether a judge has changed.

An anchor is a set of samples, each judged three times. Judge them again after an update of the
server: a test separates drift from noise.

Examples:
    # keep 200 samples of your results
    vieval anchor make verdicts.jsonl --out anchor.jsonl --model NAME --base-url http://127.0.0.1:8000/v1
    # check the judge a month later
    vieval anchor check anchor.jsonl --model NAME --base-url http://127.0.0.1:8000/v1
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from vieval_plugin.cli import Count, OutputPath, argument, flag, tell
from vieval_plugin.cli.options import BackboneOptions, named_backbone
from vieval_plugin.text.errors import ExitCode

#: Exit code of a check by its decision.
EXIT_CODES = {
    "no_drift": ExitCode.FINE,
    "drift": ExitCode.JUDGE_DRIFTED,
    "undecided": ExitCode.UNDECIDED,
}


class MakeOptions(BackboneOptions):
    """Options of `vieval anchor make`."""

    results: list[Path] = argument(
        "verdicts of one judge, from vieval score or lmms-eval"
    )
    n: Count = flag("number of samples (default: %(default)s)", 200, metavar="N")
    out: OutputPath = flag("anchor file to write (.jsonl)")
    copy_images: bool = flag("copy the images to a folder next to the anchor")


class CheckOptions(BackboneOptions):
    """Options of `vieval anchor check`."""

    anchor: Path = argument("anchor file from vieval anchor make")


def make(options: MakeOptions) -> int:
    """Make an anchor from results.

    Each sample is judged three times.

    Examples:
        # keep 200 samples of your results
        vieval anchor make verdicts.jsonl --out anchor.jsonl --model NAME --base-url http://127.0.0.1:8000/v1
    """
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
    from vieval_plugin.run.scheduler import Outcome
    from vieval_plugin.run.verdict_lines import Inputs, write_runs
    from vieval_plugin.text.escaping import say

    require_suffix(options.out, (".jsonl",))
    require_writable(options.out, reads=options.results)
    lookup = open_results(options.results)
    source = source_of(lookup)
    judged = anchor_samples(lookup, options.n, SEED)
    backbone_named = partial(named_backbone, options)
    judge, current = judge_today(source, config.current(), backbone_named)
    if options.copy_images:
        judged = copy_images(judged, options.out.with_suffix(".images"))
    repeats = judged_again(judged, judge, current, REPEATS, tell, bar=True)
    runs = runs_of_anchor(provenance_of(judge, current, None), repeats)
    write_runs(
        options.out,
        Inputs("", len(judged), ""),
        [
            (judged, list(map(Outcome, verdicts)), provenance)
            for verdicts, provenance in runs
        ],
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


def check(options: CheckOptions) -> int:
    """Judge an anchor's samples again, and test for drift.

    The exit code is 0 for no drift, 5 for drift, and 4 if the test is inconclusive.

    Examples:
        # check the judge a month later
        vieval anchor check anchor.jsonl --model NAME --base-url http://127.0.0.1:8000/v1
    """
    from vieval_plugin import config
    from vieval_plugin.audit.anchor import SEED, check_anchor
    from vieval_plugin.text.escaping import say

    backbone_named = partial(named_backbone, options)
    _, decision, lines = check_anchor(
        options.anchor, config.current(), backbone_named, tell, bar=True
    )
    say(*lines, f"seed {SEED}")
    return EXIT_CODES[decision]


ACTIONS = {"make": make, "check": check}
