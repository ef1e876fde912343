"""Convert a judge's score to the rating that annotators would give.

The file is written only if held-out labels show that the calibration is better than the raw score
and than a constant.

Examples:
    # with labels from vieval label
    vieval calibrate verdicts.jsonl --human labels.csv --out cal.json
    # with labels of two annotators
    vieval calibrate verdicts/ --human ann.csv ben.csv --out cal.json
"""

from __future__ import annotations

from pathlib import Path

from vieval_plugin.cli import OutputPath, argument, flag
from vieval_plugin.cli.options import PartialOptions, human_flag


class CalibrateOptions(PartialOptions):
    """Options of `vieval calibrate`."""

    verdicts: Path = argument("verdicts of one judge, written by vieval score")
    human: list[Path] = human_flag(required=True)
    out: OutputPath = flag("JSON file to write")
    anyway: bool = flag(
        "write the calibration even if it is not measurably better, and mark it as such"
    )


def run(options: CalibrateOptions) -> int:
    from vieval_plugin import config
    from vieval_plugin.benchmarks.loading.ratings import read_ratings
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.meta_evaluation.ratings import drop_constant_annotators
    from vieval_plugin.results.calibration import calibrate, calibration_lines
    from vieval_plugin.results.runs import load_results, rated_runs
    from vieval_plugin.run.calibration import write_calibration
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say

    require_writable(options.out, reads=[options.verdicts, *options.human])
    statistics = config.current().statistics.options()
    ratings = read_ratings(options.human)
    look = ratings.look
    ratings, constant = drop_constant_annotators(ratings)
    [run, *further], notes = rated_runs(
        load_results([options.verdicts], partial=options.partial), ratings
    )
    if further:
        raise VievalError(
            f"{options.verdicts}: contains verdicts from several judges or benchmarks; "
            "use one file per judge and benchmark"
        )
    is_random = bool(look and look.is_first)
    result = calibrate(run, statistics, options.anyway, random=is_random)
    calibration = result.calibration
    better = result.better
    note_lines = [f"note: {note}" for note in (*notes, *constant)]
    say(*calibration_lines(result), *note_lines)
    if look:
        say(f"rated {look.images_rated} of {len(look.plan.images)} planned images")
    say(f"seed {statistics.seed}, {statistics.draws} resamples")
    if calibration.accepted or options.anyway:
        write_calibration(calibration, options.out)
        command = (
            f'vieval filter FOLDER --calibration {options.out} --where "{calibration.name} '
            '> .6" --out kept/'
        )
        reason = "" if calibration.accepted else " because of --anyway"
        say(f"wrote {options.out}{reason}; next: `{command}`")
    elif not better.accepted and (needed := better.labels_needed(calibration.labels)):
        rated = " ".join(map(str, options.human))
        say(
            f"next: for more labels, run `vieval label {options.verdicts} --n {needed} "
            f"--human {rated} --out more.html`"
        )
    return 0 if calibration.accepted or options.anyway else 1
