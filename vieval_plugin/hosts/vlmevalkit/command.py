"""`vieval vlmevalkit`: the host's own run with our datasets and models, and an exit code that says how it went."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from functools import partial

from vieval_plugin.errors import VievalError
from vieval_plugin.hosts.vlmevalkit import guard, register
from vieval_plugin.text.escaping import say

_OURS = "--vieval-"


def run(arguments: Sequence[str], limit: int | None) -> int:
    """Run the host with these arguments; 0 where every verdict that was asked for has a score.

    VievalError or SystemExit with one line where the run cannot go on.
    """
    here = guard.found()
    given, fields = _apart(arguments)
    register()
    from vlmeval.config import supported_VLM

    from vieval_plugin.hosts.vlmevalkit import dataset, judging
    from vieval_plugin.hosts.vlmevalkit.models import VievalOpenAI

    if fields:
        name = fields.get("model", "").rstrip("/").rpartition("/")[2]
        if not name:
            raise VievalError("--vieval-model is missing: what the server calls the model")
        supported_VLM[name] = partial(VievalOpenAI, **fields)
        given += ["--model", name]
    if limit is not None:
        dataset.LIMIT.append(limit)
    if (here.folder / "run.py").is_file():
        sys.argv = ["vlmeval.run", *given]
        runpy.run_module("vlmeval.run", run_name="__main__", alter_sys=True)
    else:  # a checkout's stands beside the package
        sys.argv = [str(here.folder.parent / "run.py"), *given]
        runpy.run_path(sys.argv[0], run_name="__main__")
    return _ended(judging.failed, judging.unbuilt)


def _apart(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The host's arguments, and the fields of a backbone that were given as --vieval-FIELD VALUE."""
    given: list[str] = []
    fields: dict[str, str] = {}
    rest = iter(arguments)
    for one in rest:
        if not one.startswith(_OURS):
            given.append(one)
            continue
        name, equals, value = one.removeprefix(_OURS).partition("=")
        value = value if equals else next(rest, "")
        if not value:
            raise VievalError(f"{one} needs a value")
        fields[name.replace("-", "_")] = value
    if fields and "--model" in given:
        raise VievalError("name the model with --model or with --vieval-model, not with both")
    return given, fields


def _ended(failed: Sequence[int], unbuilt: Sequence[str]) -> int:
    """The exit code; that calls failed is said at the very end of the process."""
    if unbuilt:
        say(f"vieval: VLMEvalKit could not build {', '.join(unbuilt)} (see above)", file=sys.stderr)
    return 1 if unbuilt or any(failed) else 0
