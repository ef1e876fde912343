"""Make the leaderboard of published judges.

Scores are recomputed from published verdicts. To add your model, submit its card.

Examples:
    # write the page
    vieval leaderboard make --out leaderboard
    # add your model's card
    vieval leaderboard add card-my-model --out leaderboard
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import OutputPath, argument, flag, tell
from vieval_plugin.cli.options import PublishedOptions

if TYPE_CHECKING:
    from vieval_plugin.card.card import Card
    from vieval_plugin.leaderboard.checking import CheckedEntry
    from vieval_plugin.leaderboard.making import Sources


class MakeOptions(PublishedOptions):
    """Options of `vieval leaderboard make`."""

    out: OutputPath = flag("folder for the page and submissions/")


class CheckOptions(PublishedOptions):
    """Options of `vieval leaderboard check`."""

    submission: Path = argument(
        "folder from vieval card, with card.json and verdicts",
        metavar="FOLDER",
    )


class AddOptions(CheckOptions, MakeOptions):
    """Options of `vieval leaderboard add`."""


def _sources(options: PublishedOptions) -> Sources:
    from vieval_plugin import config
    from vieval_plugin.leaderboard.making import Sources
    from vieval_plugin.results.published.files import NAME

    data = config.current().data_folder()
    return Sources(options.published or data / NAME, data)


def make(options: MakeOptions) -> int:
    """Recompute the published judges' scores, and write the page.

    Download the verdicts first, with `vieval prepare published_verdicts`.

    Examples:
        # write the page and its data
        vieval leaderboard make --out leaderboard
    """
    from vieval_plugin import config
    from vieval_plugin.leaderboard.making import make_boards
    from vieval_plugin.leaderboard.submissions import FOLDER, read_submissions
    from vieval_plugin.leaderboard.writing import PAGE, title, write_boards
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.text.escaping import say

    require_writable(options.out / PAGE)
    statistics = config.current().statistics.options()
    boards = make_boards(
        _sources(options),
        read_submissions(options.out / FOLDER),
        statistics,
        lambda line: say(line, file=sys.stderr),
    )
    write_boards(boards, options.out, statistics)
    say(
        title(boards),
        f"wrote {options.out / PAGE} (open it in a browser) and its data next to it",
    )
    return 0


def check(options: CheckOptions) -> int:
    """Check a card and its verdicts.

    Each problem is printed on a line.

    Examples:
        # check a card
        vieval leaderboard check card-my-model
    """
    return 1 if _checked(options) is None else 0


def add_card(options: AddOptions) -> int:
    """Check a card, and add it to the submissions.

    Then run `vieval leaderboard make` to update the page.

    Examples:
        # add a card
        vieval leaderboard add card-my-model --out leaderboard
    """
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
        f"wrote {path}; run `vieval leaderboard make --out {options.out}` to add it to "
        "the page"
    )
    return 0


def _checked(options: CheckOptions) -> tuple[Card, list[CheckedEntry]] | None:
    """A submission, and its outcome in lines; None where there is a problem."""
    from vieval_plugin.leaderboard.checking import CANNOT_SHOW, check_submission
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.wording import plural

    card, entries, problems = check_submission(options.submission, _sources(options))
    if problems:
        tell(*problems)
        return None
    for entry, records in entries:
        say(
            f"{entry.title}: recomputed {plural(len(records), 'verdict')} of {card.model} from "
            "their replies, then the agreement from these verdicts"
        )
    say(CANNOT_SHOW)
    return card, entries


ACTIONS = {"make": make, "check": check, "add": add_card}
