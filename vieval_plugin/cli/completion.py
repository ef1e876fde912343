"""Print a shell script that completes commands and flags.

Write it once to where the shell looks for completions; a TAB then starts no Python. Write it again
after an update of VIEval.

Examples:
    # in bash
    vieval completion bash > ~/.local/share/bash-completion/completions/vieval
    # in zsh, with this folder in its fpath
    vieval completion zsh > ~/.zfunc/_vieval
    # in fish
    vieval completion fish > ~/.config/fish/completions/vieval.fish
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Literal

from vieval_plugin.cli import Options, argument, build_parser, output_path


class CompletionOptions(Options):
    """Options of `vieval completion`."""

    shell: Literal["bash", "zsh", "fish"] = argument("the shell")


def run(options: CompletionOptions) -> int:
    from vieval_plugin.text.errors import VievalError, install_advice

    try:
        import shtab
    except ImportError:
        advice = install_advice("completion")
        raise VievalError(f"completion requires shtab; {advice}") from None
    parser = build_parser()
    _complete_files(parser, shtab.FILE)
    print(shtab.complete(parser, options.shell))
    return 0


def _complete_files(parser: argparse.ArgumentParser, files: object) -> None:
    """Have shells propose files for arguments that name some."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command, files)
        elif action.type in (Path, output_path) or not action.option_strings:
            action.complete = files  # type: ignore[attr-defined]
