"""Run VLMEvalKit with VIEval's datasets.

All other arguments are passed to VLMEvalKit. To judge with a server, pass --vieval-model NAME and
--vieval-base-url URL. To set another field of the backbone, pass --vieval-FIELD VALUE.

Examples:
    # list the datasets
    vieval vlmevalkit --list
    # judge ImagenHub with VIEScore
    vieval vlmevalkit --data ImagenHub_VIEScore --model Qwen2.5-VL-7B-Instruct --work-dir out
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from vieval_plugin.cli import Count, Options, flag


class VLMEvalKitOptions(Options):
    """Options of `vieval vlmevalkit`."""

    list: bool = flag("list VIEval's datasets and the state of their data")
    install_hook: bool = flag(
        "register VIEval's datasets with plain VLMEvalKit on this machine"
    )
    remove_hook: bool = flag("remove that hook")
    limit: Count | None = flag("maximum number of rows to judge per dataset")
    #: Arguments of VLMEvalKit's own.
    rest: Sequence[str]


def run(options: VLMEvalKitOptions) -> int:
    from vieval_plugin.text.escaping import say

    if options.install_hook or options.remove_hook:
        from vieval_plugin.hosts.vlmevalkit import hook_files

        if options.install_hook:
            say(*(f"wrote {path}" for path in hook_files.install()))
        else:
            say(*(f"removed {path}" for path in hook_files.remove()))
        return 0
    if options.list:
        from vieval_plugin import config
        from vieval_plugin.benchmarks.tasks import data_state, joined_states
        from vieval_plugin.hosts.vlmevalkit import names
        from vieval_plugin.text.tables import text_table

        state_of = cache(data_state)
        rows = [
            (name, str(len(members)), joined_states(members, state_of))
            for name, members in names.datasets().items()
        ]
        say(*text_table([("dataset", "parts", "data"), *rows]))
        say(
            f"data folder: {config.current().data_folder()}; `vieval tasks NAME` shows missing "
            "data"
        )
        return 0
    from vieval_plugin.hosts.vlmevalkit import command

    return command.run(options.rest, options.limit)
