"""`vieval vlmevalkit`: the host's own run with our datasets and models, and an exit code that
says how it went.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from functools import partial

from vieval_plugin.hosts.shutdown import print_lines
from vieval_plugin.hosts.vlmevalkit import guard, register
from vieval_plugin.text.errors import VievalError

_OURS = "--vieval-"
#: Options of the judge that the host's own data sets ask.
_JUDGE = "--judge"


def run(arguments: Sequence[str], limit: int | None) -> int:
    """Run the host with these arguments; 0 where every verdict that was asked for has a score.

    VievalError or SystemExit with one line where the run cannot go on.
    """
    installed = guard.installation()
    host_arguments, fields = _split_arguments(arguments)
    register()
    from vlmeval.config import supported_VLM

    from vieval_plugin.hosts.vlmevalkit import dataset, judging
    from vieval_plugin.hosts.vlmevalkit.models import VievalOpenAI

    if fields:
        name = fields.get("model", "").rstrip("/").rpartition("/")[2]
        if not name:
            raise VievalError(
                "--vieval-model NAME is required: the model's name on the server"
            )
        supported_VLM[name] = partial(VievalOpenAI, **fields)
        host_arguments += ["--model", name]
    if limit is not None:
        dataset.LIMIT.append(limit)
    if (installed.folder / "run.py").is_file():
        sys.argv = ["vlmeval.run", *host_arguments]
        runpy.run_module("vlmeval.run", run_name="__main__", alter_sys=True)
    else:  # a checkout's stands beside the package
        sys.argv = [str(installed.folder.parent / "run.py"), *host_arguments]
        runpy.run_path(sys.argv[0], run_name="__main__")
    if judging.unbuilt:  # said at the very end of the process
        print_lines(
            f"VLMEvalKit could not build {', '.join(judging.unbuilt)} (see above)"
        )
    return 1 if judging.unbuilt or any(judging.failed) else 0


def _split_arguments(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The host's arguments, and the fields of a backbone that were given as --vieval-FIELD
    VALUE.
    """
    host_arguments = []
    fields = {}
    remaining = iter(arguments)
    for argument in remaining:
        if argument.startswith(_JUDGE):
            raise VievalError(
                f"{argument.partition('=')[0]} does not apply to VIEval's datasets, whose names "
                "include the judge; remove it, and run other datasets with `python -m vlmeval`"
            )
        if not argument.startswith(_OURS):
            host_arguments.append(argument)
            continue
        name, equals, value = argument.removeprefix(_OURS).partition("=")
        value = value if equals else next(remaining, "")
        if not value:
            raise VievalError(f"{argument} requires a value")
        fields[name.replace("-", "_")] = value
    if fields and "--model" in host_arguments:
        raise VievalError(
            "--model and --vieval-model cannot be combined; pass one of them"
        )
    return host_arguments, fields
