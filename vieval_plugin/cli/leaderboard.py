"""`vieval leaderboard`: the page of published judges, and what others submit to it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_command, output_path

if TYPE_CHECKING:
    from vieval_plugin.card.card import Card
    from vieval_plugin.cli import Commands
    from vieval_plugin.leaderboard.checking import CheckedEntry
    from vieval_plugin.leaderboard.making import Sources


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "leaderboard",
        "make the leaderboard of published judges",
        (
            "Numbers are recomputed from published verdicts. Your model's card joins them as a "
            "submission."
        ),
        ("the page", "vieval leaderboard make --out leaderboard"),
        (
            "add your model's card",
            "vieval leaderboard add card-my-model --out leaderboard",
        ),
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    making = add_command(
        actions,
        "make",
        "recompute the published judges' numbers, and write the page",
        "Fetch the verdicts once, with `vieval prepare published_verdicts`.",
        ("the page and its data", "vieval leaderboard make --out leaderboard"),
    )
    making.set_defaults(run=_make)
    checking = add_command(
        actions,
        "check",
        "check a card and its verdicts",
        "Each problem is printed on a line.",
        ("a card", "vieval leaderboard check card-my-model"),
    )
    checking.set_defaults(run=_check)
    adding = add_command(
        actions,
        "add",
        "check a card, and add it to the submissions",
        "`vieval leaderboard make` then puts it into the page.",
        ("a card", "vieval leaderboard add card-my-model --out leaderboard"),
    )
    adding.set_defaults(run=_add)
    for action in (checking, adding):
        action.add_argument(
            "submission",
            type=Path,
            metavar="FOLDER",
            help="the folder that vieval card wrote, with card.json and verdicts",
        )
    for action in (making, adding):
        action.add_argument(
            "--out",
            type=output_path,
            required=True,
            help="folder of the page and its submissions/",
        )
    for action in (making, checking, adding):
        action.add_argument(
            "--published",
            type=Path,
            metavar="FOLDER",
            help="folder of published verdicts (default: as prepared)",
        )


def _sources(options: argparse.Namespace) -> Sources:
    from vieval_plugin import config
    from vieval_plugin.leaderboard.making import Sources
    from vieval_plugin.results.published.files import NAME

    data = config.current().data_folder()
    return Sources(options.published or data / NAME, data)


def _make(options: argparse.Namespace) -> int:
    from vieval_plugin import config
    from vieval_plugin.leaderboard.making import make_boards
    from vieval_plugin.leaderboard.submissions import FOLDER, read_submissions
    from vieval_plugin.leaderboard.writing import PAGE, title, write_boards
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.text.escaping import say

    require_writable(options.out / PAGE)
    statistics = config.current().statistics.options()
    submissions = read_submissions(options.out / FOLDER)
    boards = make_boards(
        _sources(options),
        submissions,
        statistics,
        lambda line: say(line, file=sys.stderr),
    )
    write_boards(boards, options.out, statistics)
    say(
        title(boards),
        f"wrote {options.out / PAGE} (open it in a browser), and its data beside it",
    )
    return 0


def _check(options: argparse.Namespace) -> int:
    return 1 if _checked(options) is None else 0


def _add(options: argparse.Namespace) -> int:
    from vieval_plugin.leaderboard.submissions import (
        FOLDER,
        submission_of,
        write_submission,
    )
    from vieval_plugin.text.escaping import say

    checked = _checked(options)
    if checked is None:
        return 1
    path = write_submission(submission_of(*checked), options.out / FOLDER)
    say(
        f"wrote {path}; vieval leaderboard make --out {options.out} puts it into the page"
    )
    return 0


def _checked(options: argparse.Namespace) -> tuple[Card, list[CheckedEntry]] | None:
    """A submission, and its outcome in lines; None where there is a problem."""
    from vieval_plugin.leaderboard.checking import CANNOT_SHOW, check_submission
    from vieval_plugin.text.escaping import say

    card, entries, problems = check_submission(options.submission, _sources(options))
    if problems:
        say(*(f"vieval: {problem}" for problem in problems), file=sys.stderr)
        return None
    for entry, records in entries:
        say(
            f"{entry.title}: {len(records)} verdicts of {card.model} come out of their replies, "
            "and its agreement of them"
        )
    say(CANNOT_SHOW)
    return card, entries
