"""The files that a generator's answer may name as its output: a model wrote that text, and it names no file it likes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vieval_plugin.config import Config
from vieval_plugin.judges.protocol import Sample
from vieval_plugin.text.untrusted import is_below, real

_LOGS = Path("logs")
"""Below the working folder, and where lmms-eval's generators save unless they are told otherwise."""


def trusted_folders(options: Config, *folders: Path) -> tuple[Path, ...]:
    """Return the folders below which an output may lie: those given, those of the options and the host's default."""
    return (_LOGS, *options.generate.trusted, *folders)


def output_file(named: Path, conditions: Sample, trusted: Sequence[Path]) -> tuple[Path | None, str]:
    """Return the file that an answer names, with links followed, or None and the reason why it is no output.

    Args:
        named: the path as the answer has it.
        conditions: what the generator was given, none of whose files is its output.
        trusted: folders below which the file must lie once links are followed.
    """
    shown = repr(str(named)[:200])
    try:
        # first of all, because a path too long to be one costs `realpath` a call of the system for each of its parts
        if not named.is_file():
            return None, f"the image that the generator names is not there: {shown}"
        path = real(named)
        if not any(is_below(path, folder) for folder in trusted):
            return None, (
                "the generator names a file outside its output folders (if it saves there, add the folder to "
                f"generate.trusted in the options): {shown}"
            )
        if any(_is_file_of(image.source, path) for image in conditions.images.values()):
            return None, f"the generator names one of its own conditions as its output: {shown}"
    except (OSError, ValueError):
        return None, f"the image that the generator names is no path: {shown}"
    return path, ""


def _is_file_of(source: Path | bytes, path: Path) -> bool:
    return isinstance(source, Path) and source.is_file() and source.samefile(path)
