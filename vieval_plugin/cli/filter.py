"""`vieval filter`: the rows of a data set whose verdicts pass a condition."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_calibration, add_command, add_partial, output_path

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "filter",
        "keep the rows of a data set whose verdicts pass",
        "The rows are written with their scores, into files named as those that were judged.",
        (
            "good images alone",
            "vieval filter verdicts/ --where \"SC > .7 and status = 'ok'\" --out kept/",
        ),
        (
            "with a prefix for the new columns",
            'vieval filter verdicts/ --where "judge_O >= .5" --prefix judge_ --out kept/',
        ),
        (
            "in people's terms",
            (
                'vieval filter verdicts/ --calibration cal.json --where "O_calibrated > .6" --out '
                "kept/"
            ),
        ),
    )
    parser.add_argument(
        "folder",
        type=Path,
        help="the folder of shards that vieval score wrote (its --out)",
    )
    parser.add_argument(
        "--where",
        required=True,
        metavar="CONDITION",
        help="a condition in SQL on scores and columns of verdicts (file, row, uid, image_model, "
        "kind, category, status, "
        'reason, rationale, ...), and not on those of the data set, such as "SC > .7 and status '
        "= 'ok'\"",
    )
    parser.add_argument(
        "--out", type=output_path, required=True, help="folder for the files"
    )
    parser.add_argument(
        "--prefix",
        default="",
        help="prefix of the columns, or of the member of a tar, that are added (default: none)",
    )
    add_calibration(parser)
    add_partial(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.results.filtering import filter_shards
    from vieval_plugin.run.calibration import read_calibration
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.wording import plural

    calibration = read_calibration(options.calibration) if options.calibration else None
    result = filter_shards(
        options.folder,
        options.where,
        options.out,
        options.prefix,
        options.partial,
        calibration,
    )
    say(*(f"note: {note}" for note in result.notes))
    say(
        f"wrote {options.out}: {result.passed:,} of {plural(result.verdicts, 'row')}, "
        f"{plural(result.files, 'file')}"
    )
    return 0
