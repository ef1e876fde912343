"""`vieval calibrate`: a judge's score in people's terms, where labels show that this helps."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_command, add_partial

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vieval_plugin.cli import Commands
    from vieval_plugin.run.calibration import Calibration
    from vieval_plugin.stats.calibration import Improvement


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "calibrate",
        "turn a judge's score into the rating that annotators would give",
        "The file is written only if held-out labels say that it is surely better than the score and than one number for all.",
        ("by labels of vieval label", "vieval calibrate verdicts.jsonl --human labels.csv --out cal.json"),
        ("by those of two annotators", "vieval calibrate verdicts/ --human ann.csv ben.csv --out cal.json"),
    )
    parser.add_argument("verdicts", type=Path, help="verdicts of one judge, which vieval score wrote")
    parser.add_argument("--human", nargs="+", type=Path, required=True, help="CSV files of human ratings")
    parser.add_argument("--out", type=Path, required=True, help="the file to write, in JSON")
    parser.add_argument("--anyway", action="store_true", help="write it also where it is not surely better, marked so")
    add_partial(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin import config
    from vieval_plugin.benchmarks.loading.ratings import read_ratings
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.report.inputs import rated_runs
    from vieval_plugin.results.calibration import calibrate
    from vieval_plugin.results.runs import load_results
    from vieval_plugin.run.calibration import write_calibration
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say

    require_writable(options.out, reads=[options.verdicts, *options.human])
    statistics, ratings = config.current().statistics.options(), read_ratings(options.human)
    [run, *further], notes = rated_runs(load_results([options.verdicts], partial=options.partial), ratings)
    if further:
        raise VievalError(f"{options.verdicts}: verdicts of several judges or benchmarks; name a file of one")
    calibration, better, ties = calibrate(run, statistics)
    say(*_lines(calibration, better, *ties), *(f"note: {note}" for note in notes))
    say(f"seed {statistics.seed}, {statistics.draws} resamples")
    if not (calibration.accepted or options.anyway):
        return 1
    write_calibration(calibration, options.out)
    command = f'vieval filter FOLDER --calibration {options.out} --where "{calibration.name} > .6" --out kept/'
    say(f"wrote {options.out}; next: `{command}`")
    return 0


def _lines(calibration: Calibration, better: Improvement, raw_ties: float, ties: float) -> Iterator[str]:
    """The title, its evidence, and the limits."""
    judge = f"{calibration.judge} {calibration.setting}".strip()
    score = f"{calibration.aspect} of {judge} ({calibration.backbone})"
    if calibration.accepted:
        yield f"{score} is {calibration.sentence()}."
    else:
        needed = better.labels_needed(calibration.labels)
        number = f"some {needed:,} would, as far as these tell" if needed else "no number that would is in sight"
        yield f"Not calibrated: {calibration.labels} ratings do not show that {score} is better calibrated; {number}."
    for gain, baseline in ((better.over_raw, "the raw score"), (better.over_constant, "the mean of the labels")):
        interval = f"{gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]"
        yield f"Squared error on held-out labels less that of {baseline}: {interval}, which has to lie below 0."
    for errors, where in ((calibration.on_prompts, "prompts"), (calibration.on_generators, "generators")):
        numbers = errors and f"{errors.calibrated:.3f}, {errors.raw:.3f} raw, {errors.median:.3f} by the labels' median"
        yield f"Typical error on {where} without labels: {numbers or 'not known, as all labels are of one'}."
    tied = "" if math.isnan(ties) else f" ({ties:.0%} of pairs on one prompt, {raw_ties:.0%} by the raw score)"
    yield f"Calibration makes ties{tied}, so order, tests and rewards go by the raw score. An error is typical, and no bound."
