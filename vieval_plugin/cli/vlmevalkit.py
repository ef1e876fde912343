"""`vieval vlmevalkit`: VLMEvalKit with VIEval's datasets and models."""

from __future__ import annotations

import argparse
from functools import cache
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_command

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "vlmevalkit",
        "run VLMEvalKit with VIEval's datasets",
        "All other arguments are VLMEvalKit's own. To judge with a server, name it with "
        "--vieval-model NAME and "
        "--vieval-base-url URL; other fields of a backbone are --vieval-FIELD VALUE.",
        ("the datasets", "vieval vlmevalkit --list"),
        (
            "judge ImagenHub with VIEScore",
            (
                "vieval vlmevalkit --data ImagenHub_VIEScore --model Qwen2.5-VL-7B-Instruct "
                "--work-dir out"
            ),
        ),
        allow_abbrev=False,
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="list VIEval's datasets, and whether their data is there",
    )
    parser.add_argument(
        "--install-hook",
        action="store_true",
        help="make plain VLMEvalKit here know VIEval's datasets",
    )
    parser.add_argument("--remove-hook", action="store_true", help="remove that hook")
    parser.add_argument(
        "--limit", type=int, help="judge only the first rows of a dataset, so many"
    )
    parser.set_defaults(run=_run, rest=[])


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.text.escaping import say

    if options.install_hook or options.remove_hook:
        from vieval_plugin.hosts.vlmevalkit import hook_files

        paths = hook_files.install() if options.install_hook else hook_files.remove()
        say(
            *(
                f"{'wrote' if options.install_hook else 'removed'} {path}"
                for path in paths
            )
        )
        return 0
    if options.list:
        from vieval_plugin import config
        from vieval_plugin.cli.tasks import data_state, joined_states
        from vieval_plugin.hosts.vlmevalkit import names
        from vieval_plugin.text.tables import text_table

        datasets, state_of = names.datasets().items(), cache(data_state)
        rows = [
            (name, str(len(members)), joined_states(members, state_of))
            for name, members in datasets
        ]
        say(*text_table([("dataset", "parts", "data"), *rows]))
        say(
            f"data folder: {config.current().data_folder()}; `vieval tasks NAME` says what is "
            "missing"
        )
        return 0
    from vieval_plugin.hosts.vlmevalkit import command

    return command.run(options.rest, options.limit)
