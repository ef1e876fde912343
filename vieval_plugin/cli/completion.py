"""Print a shell completion script.

Save it where your shell looks for completions; pressing TAB then does not start Python. Save it
again after an update of VIEval.

Examples:
    # for bash
    vieval completion bash > ~/.local/share/bash-completion/completions/vieval
    # for zsh, with this folder in fpath
    vieval completion zsh > ~/.zfunc/_vieval
    # for fish
    vieval completion fish > ~/.config/fish/completions/vieval.fish
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Literal

from vieval_plugin.cli import Options, argument, build_parser, output_path


class CompletionOptions(Options):
    """Options of `vieval completion`."""

    shell: Literal["bash", "zsh", "fish"] = argument("target shell")


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
