"""A line for the host versions that no test ran with: their classes and functions are wrapped, so they may not fit."""

from __future__ import annotations

import functools
import importlib.metadata
import re
import sys

from vieval_plugin.text.escaping import say

LMMS_EVAL = "0.7.3"
VLMEVALKIT = ("ms-vlmeval 0.0.20", "nvidia-vlmeval 26.3")


def note_lmms_eval() -> None:
    """Say that the installed lmms-eval is of another minor version than tests ran with, if it is."""
    try:
        installed = importlib.metadata.version("lmms-eval")
    except importlib.metadata.PackageNotFoundError:  # on PYTHONPATH, where no version is known
        return
    if _minor(installed) != _minor(LMMS_EVAL):
        _note(f"lmms-eval {installed}", f"lmms-eval {LMMS_EVAL}")


def note_vlmevalkit(name: str) -> None:
    """Say that VLMEvalKit's distribution, named with its version, is none that tests ran with; a checkout has none."""
    if name.partition(" ")[0] in (tested.partition(" ")[0] for tested in VLMEVALKIT) and name not in VLMEVALKIT:
        _note(name, " and ".join(VLMEVALKIT))


def _minor(version: str) -> list[str]:
    return re.findall(r"\d+", version)[:2]


@functools.cache
def _note(installed: str, tested: str) -> None:
    say(f"vieval: {installed} is not known to VIEval, whose tests ran with {tested}", file=sys.stderr)
