"""Make posters with two simulated generators and compare them.

Each prompt asks for a photograph with a title. One generator spells it correctly, the other does
not. It works offline.

Examples:
    # make posters, verdicts and a page, and open the page
    vieval demo --open
    # write to another folder
    vieval demo --out posters
"""

from __future__ import annotations

import shlex
from itertools import chain
from pathlib import Path

from vieval_plugin.cli import (
    Options,
    OutputPath,
    flag,
    print_conclusion,
    tell,
)

_SEED = 0


class DemoOptions(Options):
    """Options of `vieval demo`."""

    out: OutputPath = flag(
        "folder to write to (default: demo)", Path("demo"), metavar="FOLDER"
    )
    open: bool = flag("open the page in a browser")


def run(options: DemoOptions) -> int:
    from vieval_plugin.api import rank
    from vieval_plugin.generation import posters
    from vieval_plugin.judges.text_rendering import SPEC
    from vieval_plugin.judges.tools import ToolMissing
    from vieval_plugin.text.errors import install_advice
    from vieval_plugin.text.escaping import say

    folder = options.out
    act = "made" if posters.make(folder, _SEED) else "found"
    say(
        f"{act} {len(posters.SCENES)} posters by each of two generators in {folder} (seed "
        f"{_SEED}; truth.csv lists all errors)"
    )
    judge = SPEC.name
    try:
        SPEC.build(SPEC.options(), None, "")
    except ToolMissing:
        judge = "sharpness"
        say(
            "the titles cannot be read on this machine, so the posters are ranked by "
            "sharpness;",
            f"to read the titles, {install_advice('text')}",
        )
    folders = [folder / name for name in (posters.CAREFUL, posters.CARELESS)]
    page = folder / "rank.html"
    verdicts = folder / "verdicts.jsonl"
    verdicts.unlink(missing_ok=True)  # an earlier demo may have had the other judge
    prompts = folder / "prompts.csv"
    files = {"--prompts": prompts, "--judge": judge, "--out": verdicts, "--html": page}
    arguments = ["vieval", "rank", *folders, *chain(*files.items())]
    command = shlex.join(map(str, arguments))
    say(f"$ {command}", "")
    conclusion = rank(
        *folders,
        prompts=prompts,
        judge=judge,
        out=verdicts,
        command=command,
        bar=True,
        tell=tell,
    )
    print_conclusion(conclusion, None, page)
    code = conclusion.outcome
    if options.open and code == 0:
        import webbrowser

        webbrowser.open(page.absolute().as_uri())
    return code
