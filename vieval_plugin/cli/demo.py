"""`vieval demo`: posters of two generators, and which of the two is better."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_command, output_path, show, tell

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands

_SEED = 0


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "demo",
        "make posters of two simulated generators, and find out which is better",
        (
            "Each prompt asks for a photograph with a title; one generator spells, the other does "
            "not. It needs no network."
        ),
        ("the posters, verdicts and a page in a browser", "vieval demo --open"),
        ("in a folder of your choice", "vieval demo --out posters"),
    )
    parser.add_argument(
        "--out",
        type=output_path,
        default=Path("demo"),
        metavar="FOLDER",
        help="where to (default: demo)",
    )
    parser.add_argument(
        "--open", action="store_true", help="open the page in a browser"
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.api import rank
    from vieval_plugin.generation import posters
    from vieval_plugin.judges.text_rendering import SPEC
    from vieval_plugin.judges.tools import ToolMissing
    from vieval_plugin.text.errors import install_advice
    from vieval_plugin.text.escaping import say

    folder: Path = options.out
    act = "made" if posters.make(folder, _SEED) else "found"
    say(
        f"{act} {len(posters.SCENES)} posters of each of two generators in {folder} (seed "
        f"{_SEED}; truth.csv has all errors)"
    )
    judge = SPEC.name
    try:
        SPEC.build(SPEC.options(), None, "")
    except ToolMissing:
        judge = "sharpness"
        say(
            "the titles cannot be read here, so the posters are ranked by how sharp they are;",
            f"to read them {install_advice('text')}",
        )
    folders = [folder / name for name in (posters.CAREFUL, posters.CARELESS)]
    page, verdicts = folder / "rank.html", folder / "verdicts.jsonl"
    prompts = folder / "prompts.csv"
    words = ["vieval", "rank", *folders, "--prompts", prompts, "--judge", judge]
    words += ["--out", verdicts, "--html", page]
    command = shlex.join(map(str, words))
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
    show(conclusion, None, page)
    code = conclusion.outcome
    if options.open and code == 0:
        import webbrowser

        webbrowser.open(page.absolute().as_uri())
    return code
