"""Show the contents and progress of a folder of shards.

It also works while vieval score is still running.

Examples:
    # show the progress of a run
    vieval shards verdicts/
    # check that each row has a verdict
    vieval shards verdicts/ --verify
    # judge failed rows again
    vieval shards verdicts/ --rejudge api_error,parse_failure --model NAME --base-url http://127.0.0.1:8000/v1
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import argument, flag, tell
from vieval_plugin.cli.options import BackboneOptions, named_backbone

if TYPE_CHECKING:
    from vieval_plugin.run.shards.folder import ShardFolder
    from vieval_plugin.run.shards.plan import Plan


class ShardsOptions(BackboneOptions):
    """Options of `vieval shards`."""

    folder: Path = argument("folder of shards from vieval score (its --out)")
    verify: bool = flag(
        "compare the folder with its inputs, and exit with 1 if it is incomplete"
    )
    compact: bool = flag("merge the files of shards into files of about 256 MB")
    rejudge: str | None = flag(
        "judge rows with these statuses again, such as api_error,parse_failure",
        metavar="STATUS",
    )
    config: Path | None = flag("options file whose cache --rejudge uses")


def run(options: ShardsOptions) -> int:
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
            f"{folder.name}: not a folder of shards; pass the --out of vieval score"
        )
    code = 0
    if options.rejudge:
        statuses = [status.strip() for status in options.rejudge.split(",")]
        code = _rejudge(options, folder, plan, statuses)
    if options.compact:
        joined, into = compact(folder, plan)
        say(f"merged {plural(joined, 'file')} into {into:,}")
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
    from vieval_plugin.text.wording import plural

    verification = verify(folder, plan)
    tell(*verification.problems)
    say(*verification.notes)
    if not verification.problems:
        rows = "row" if plan.limit is None else f"of the first {plan.limit:,} rows"
        begin = f"{unscored}, but the folder is complete" if unscored else "complete"
        say(
            f"{begin}: each {rows} has exactly one verdict; compared "
            f"{plural(verification.digests, 'image')} with the judged ones"
        )
    return 1 if verification.problems else 0


def _rejudge(
    options: ShardsOptions, folder: ShardFolder, plan: Plan, statuses: Sequence[str]
) -> int:
    from vieval_plugin import config
    from vieval_plugin.cli.shards.judging import judged
    from vieval_plugin.judges.protocol import Status
    from vieval_plugin.run.shards.compact import drop_outdated
    from vieval_plugin.run.shards.start import options_of, passes_again, run_again
    from vieval_plugin.run.shards.worker import work_here
    from vieval_plugin.text.errors import VievalError

    unknown = [status for status in statuses if status not in list(Status)]
    if unknown:
        raise VievalError(
            f"--rejudge: unknown status {unknown[0]!r}; known statuses: {', '.join(Status)}"
        )
    stored = config.read(str(options.config)) if options.config else config.current()
    current = options_of(plan, stored)
    run = run_again(
        folder,
        plan,
        current,
        named_backbone(options, current),
        statuses,
    )
    code = judged(run, *passes_again(folder, plan, statuses), work_here)
    drop_outdated(folder)
    return code
