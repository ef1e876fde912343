"""Turn a judge's score into the rating that annotators would give.

The file is written only if held-out labels say that it is surely better than the score and than
one number for all.

Examples:
    # by labels of vieval label
    vieval calibrate verdicts.jsonl --human labels.csv --out cal.json
    # by those of two annotators
    vieval calibrate verdicts/ --human ann.csv ben.csv --out cal.json
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import OutputPath, argument, flag
from vieval_plugin.cli.options import PartialOptions, human_flag

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vieval_plugin.results.calibration import CalibrationResult


class CalibrateOptions(PartialOptions):
    """Options of `vieval calibrate`."""

    verdicts: Path = argument("verdicts of one judge, which vieval score wrote")
    human: list[Path] = human_flag(required=True)
    out: OutputPath = flag("the file to write, in JSON")
    anyway: bool = flag("write it also where it is not surely better, marked so")


def run(options: CalibrateOptions) -> int:
    from vieval_plugin import config
    from vieval_plugin.benchmarks.loading.ratings import read_ratings
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.meta_evaluation.ratings import drop_constant_annotators
    from vieval_plugin.report.inputs import rated_runs
    from vieval_plugin.results.calibration import calibrate
    from vieval_plugin.results.runs import load_results
    from vieval_plugin.run.calibration import write_calibration
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say

    require_writable(options.out, reads=[options.verdicts, *options.human])
    statistics, ratings = (
        config.current().statistics.options(),
        read_ratings(options.human),
    )
    look = ratings.look
    ratings, constant = drop_constant_annotators(ratings)
    [run, *further], notes = rated_runs(
        load_results([options.verdicts], partial=options.partial), ratings
    )
    if further:
        raise VievalError(
            f"{options.verdicts}: verdicts of several judges or benchmarks; name a file of one"
        )
    result = calibrate(
        run, statistics, options.anyway, random=bool(look and look.is_first)
    )
    calibration, better = result.calibration, result.better
    say(*_lines(result), *(f"note: {note}" for note in (*notes, *constant)))
    if look:
        say(
            f"people rated {look.images_rated} of {len(look.plan.images)} planned images"
        )
    say(f"seed {statistics.seed}, {statistics.draws} resamples")
    if calibration.accepted or options.anyway:
        write_calibration(calibration, options.out)
        command = (
            f'vieval filter FOLDER --calibration {options.out} --where "{calibration.name} '
            '> .6" --out kept/'
        )
        say(f"wrote {options.out}; next: `{command}`")
    elif not better.accepted and (needed := better.labels_needed(calibration.labels)):
        rated = " ".join(map(str, options.human))
        say(
            f"next: `vieval label {options.verdicts} --n {needed} --human {rated} --out "
            "more.html` asks for the others"
        )
    return 0 if calibration.accepted or options.anyway else 1


def _lines(result: CalibrationResult) -> Iterator[str]:
    """The title, its evidence, and the limits."""
    from vieval_plugin.meta_evaluation.tables import interval_text
    from vieval_plugin.stats.calibration import MOST_LABELS
    from vieval_plugin.stats.decisions import LEAST_LABELS, LEAST_PROMPTS
    from vieval_plugin.text.wording import enumeration

    calibration, better, (raw_ties, ties) = (
        result.calibration,
        result.better,
        result.ties,
    )
    judge = f"{calibration.judge} {calibration.setting}".strip()
    score = f"{calibration.aspect} of {judge} ({calibration.backbone})"
    gains = {
        "the raw score": better.over_raw,
        "the mean of the labels": better.over_constant,
    }
    if calibration.accepted:
        yield f"{score} is {calibration.sentence}."
    elif result.selection:
        yield (
            f"Not calibrated: the {calibration.labels} ratings are not of a random part of the "
            "images."
        )
        yield (
            "The judge's mean of the rated images less that of the others is "
            f"{interval_text(result.selection, 3)}."
        )
    elif better.accepted:
        yield (
            f"Not calibrated: {calibration.labels} ratings do not show of any task type that "
            "its calibration helps."
        )
    else:
        unbeaten = enumeration(
            [name for name, gain in gains.items() if gain.high >= 0], "or"
        )
        yield (
            f"Not calibrated: {calibration.labels} ratings do not show that {score} is nearer "
            f"to people's, calibrated, than {unbeaten}."
        )
    for name, gain in gains.items():
        interval = f"{gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]"
        yield (
            f"Squared error on all {result.labels} held-out labels less that of {name}: "
            f"{interval}, which has to lie below 0."
        )
    if not better.accepted:
        needed = better.labels_needed(calibration.labels)
        number = (
            f"Some {needed:,} labels"
            if needed
            else f"No number of labels up to {MOST_LABELS:,}"
        )
        yield f"{number} would show it in four of five cases, as far as these tell."
    if calibration.refused:
        kinds = enumeration(calibration.refused)
        yield (
            f"No {calibration.name} for {kinds}: their own ratings do not show that "
            "calibration helps."
        )
    if result.common:
        kinds = enumeration(
            [f"{kind} ({labels})" for kind, labels in result.common.items()]
        )
        least = f"{LEAST_LABELS} ratings or {LEAST_PROMPTS} prompts"
        yield (
            f"With fewer than {least}, these task types take the function of all ratings: {kinds}."
        )
    for errors, where in (
        (calibration.on_prompts, "prompts"),
        (calibration.on_generators, "generators"),
    ):
        numbers = errors and (
            f"{errors.calibrated:.3f}, {errors.raw:.3f} raw, {errors.median:.3f} by the "
            "labels' median"
        )
        yield (
            f"Typical error on {where} without labels: "
            f"{numbers or 'not known, as all labels of a task type are of one'}."
        )
    if (
        calibration.accepted
        and calibration.on_prompts.calibrated >= calibration.on_prompts.median
    ):
        yield (
            "Saying the median for every image is no further off on average: the calibrated "
            "score tells good from bad, and not by how much."
        )
    tied = (
        ""
        if math.isnan(ties)
        else f" ({ties:.0%} of pairs on one prompt, {raw_ties:.0%} by the raw score)"
    )
    yield (
        f"Calibration makes ties{tied}, so order, tests and rewards go by the raw score. An "
        "error is typical, and no bound."
    )
