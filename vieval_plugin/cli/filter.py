"""Keep the rows of a data set whose verdicts meet a condition.

The rows are written with their scores, to files with the same names as the input files.

Examples:
    # keep only good images
    vieval filter verdicts/ --where "SC > .7 and status = 'ok'" --out kept/
    # add a prefix to the new columns
    vieval filter verdicts/ --where "judge_O >= .5" --prefix judge_ --out kept/
    # filter by a calibrated score
    vieval filter verdicts/ --calibration cal.json --where "O_calibrated > .6" --out kept/
"""

from __future__ import annotations

from pathlib import Path

from vieval_plugin.cli import OutputPath, argument, flag
from vieval_plugin.cli.options import CalibrationOptions, PartialOptions


class FilterOptions(CalibrationOptions, PartialOptions):
    """Options of `vieval filter`."""

    folder: Path = argument("folder of shards from vieval score (its --out)")
    where: str = flag(
        "SQL condition, such as \"SC > .7 and status = 'ok'\", on scores and columns of "
        "verdicts (file, row, uid, image_model, kind, category, status, reason, rationale, "
        "...); columns of the data set are not supported",
        metavar="CONDITION",
    )
    out: OutputPath = flag("folder for the selected rows")
    prefix: str = flag(
        "prefix for the added columns, or for the added tar member (default: none)",
        "",
    )


def run(options: FilterOptions) -> int:
    from vieval_plugin.results.filtering import filter_shards
    from vieval_plugin.run.calibration import read_calibration
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.wording import plural

    result = filter_shards(
        options.folder,
        options.where,
        options.out,
        options.prefix,
        options.partial,
        read_calibration(options.calibration) if options.calibration else None,
    )
    say(*(f"note: {note}" for note in result.notes))
    rows = f"{result.passed:,} of {plural(result.verdicts, 'row')}"
    say(f"wrote {options.out}: {rows}, {plural(result.files, 'file')}")
    return 0
