"""`vieval vlmevalkit`: VLMEvalKit with VIEval's datasets and models."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


GROUP = "judge images"


def add(commands: Commands) -> None:
    parser = commands.add_parser(
        "vlmevalkit",
        help="run VLMEvalKit with VIEval's datasets and models",
        description="Every other argument is VLMEvalKit's own. --vieval-model NAME, --vieval-base-url URL and --vieval-FIELD "
        "VALUE for the other fields of a backbone name a server as the model.",
        allow_abbrev=False,
    )
    parser.add_argument("--list", action="store_true", help="list VIEval's datasets, and whether their data is there")
    parser.add_argument(
        "--install-hook", action="store_true", help="let plain VLMEvalKit in this environment know VIEval"
    )
    parser.add_argument("--remove-hook", action="store_true", help="undo that")
    parser.add_argument("--limit", type=int, help="judge so many rows of a dataset, whatever VLMEvalKit calls that")
    parser.set_defaults(run=_run, rest=[])


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.text.escaping import say

    if options.install_hook or options.remove_hook:
        from vieval_plugin.hosts.vlmevalkit import hook_files

        paths = hook_files.install() if options.install_hook else hook_files.remove()
        say(*(f"{'wrote' if options.install_hook else 'removed'} {path}" for path in paths))
        return 0
    if options.list:
        from vieval_plugin import config
        from vieval_plugin.cli.tasks import data_states
        from vieval_plugin.hosts.vlmevalkit import names
        from vieval_plugin.text.tables import text_table

        state_of = data_states()
        rows = [(name, str(len(members)), state_of(members)) for name, members in names.datasets().items()]
        say(*text_table([("dataset", "parts", "data"), *rows]))
        say(f"data folder: {config.current().data_folder()}; `vieval tasks NAME` says what is missing")
        return 0
    from vieval_plugin.hosts.vlmevalkit import command

    return command.run(options.rest, options.limit)
