"""`vieval shards`: what a folder of shards holds."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import EXAMPLE_BACKBONE, add_backbone, add_command
from vieval_plugin.cli.score.backbone import named_backbone

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands
    from vieval_plugin.run.shards.folder import ShardFolder
    from vieval_plugin.run.shards.plan import Plan


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "shards",
        "show what a folder of shards holds, and what is left",
        "You can look while vieval score is still running.",
        ("the progress of a run", "vieval shards verdicts/"),
        ("check that each row has its verdict", "vieval shards verdicts/ --verify"),
        (
            "judge failed rows again",
            f"vieval shards verdicts/ --rejudge api_error,parse_failure {EXAMPLE_BACKBONE}",
        ),
    )
    parser.add_argument(
        "folder", type=Path, help="the folder that vieval score wrote (its --out)"
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="compare it with its inputs, and exit with 1 if it is not complete",
    )
    parser.add_argument(
        "--compact",
        action="store_true",
        help="join the files of shards into files of about 256 MB",
    )
    parser.add_argument(
        "--rejudge",
        metavar="STATUS",
        help="judge rows with these statuses again, such as api_error,parse_failure",
    )
    parser.add_argument(
        "--config",
        type=Path,
        help="the options file whose store to use, with --rejudge",
    )
    add_backbone(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.run.shards.compact import compact
    from vieval_plugin.run.shards.folder import open_folder
    from vieval_plugin.run.shards.progress import progress_of
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.wording import plural

    folder = open_folder(options.folder)
    plan = folder.plan()
    if plan is None:
        raise VievalError(
            f"{folder.name}: no plan of shards there; name the folder that was given with --out"
        )
    code = _rejudge(options, folder, plan) if options.rejudge else 0
    if options.compact:
        joined, into = compact(folder, plan)
        say(f"joined {plural(joined, 'file')} into {into:,}")
    progress = progress_of(folder, plan)
    say(*progress.lines())
    return (
        max(code, _verify(folder, plan, progress.unscored)) if options.verify else code
    )


def _verify(folder: ShardFolder, plan: Plan, unscored: str) -> int:
    """Compare a folder with its inputs; the exit code, 1 where it is not complete. `unscored`
    says that it has no scores.
    """
    from vieval_plugin.run.shards.verify import verify
    from vieval_plugin.text.escaping import say

    verification = verify(folder, plan)
    say(*(f"vieval: {problem}" for problem in verification.problems), file=sys.stderr)
    say(*verification.notes)
    if not verification.problems:
        rows = "row" if plan.limit is None else f"of the first {plan.limit:,} rows"
        begin = f"{unscored}, but the folder is complete" if unscored else "complete"
        say(
            f"{begin}: each {rows} has its verdict once; {verification.digests} images were "
            "compared with what was judged"
        )
    return 1 if verification.problems else 0


def _rejudge(options: argparse.Namespace, folder: ShardFolder, plan: Plan) -> int:
    from vieval_plugin import config
    from vieval_plugin.cli.shards.judging import judged
    from vieval_plugin.judges.protocol import Status
    from vieval_plugin.run.shards.compact import drop_outdated
    from vieval_plugin.run.shards.start import options_of, passes_again, run_again
    from vieval_plugin.run.shards.worker import work_here
    from vieval_plugin.text.errors import VievalError

    statuses = tuple(status.strip() for status in options.rejudge.split(","))
    if unknown := [status for status in statuses if status not in list(Status)]:
        raise VievalError(
            f"--rejudge {unknown[0]!r} is no status; those are {', '.join(Status)}"
        )
    stored = config.read(str(options.config)) if options.config else config.current()
    current = options_of(plan, stored)
    run = run_again(folder, plan, current, named_backbone(options, current), statuses)
    code = judged(run, *passes_again(folder, plan, statuses), work_here)
    drop_outdated(folder)
    return code
