"""Preference pairs as two folders of images with captions, paired by the names of their files.

So read them the pull requests for DPO of kohya's sd-scripts (kohya-ss/sd-scripts#1427) and of
OneTrainer (Nerogar/OneTrainer#1403); neither is merged.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from vieval_plugin.images import format_of, pixels, read_bytes
from vieval_plugin.media.files import unfinished_file, write_whole
from vieval_plugin.media.png import encode
from vieval_plugin.text.errors import VievalError
from vieval_plugin.training.preference_pairs import PreferencePair

#: By trainer, the folder of better images and that of worse ones.
FOLDERS = {"kohya": ("w", "l"), "onetrainer": ("chosen", "rejected")}

_SUFFIXES = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp"}


def write_pair_folders(
    folder: Path, pairs: Sequence[PreferencePair], trainer: str
) -> None:
    """Write both images of each pair under one name, each with the prompt in a `.txt` beside it.

    Args:
        folder: what holds the two folders; it appears when all of it is written.
        pairs: of images made from a prompt alone.
        trainer: one of `FOLDERS`.

    Raises:
        VievalError: the folder is there, an image was made from another or cannot be read, or
            nothing can be written there.
    """
    if folder.exists():
        raise VievalError(f"{folder} must not exist; choose another --out")
    if edits := [pair.uid for pair in pairs if pair.conditions]:
        raise VievalError(
            f"--trainer {trainer} requires images made from a prompt alone, got {edits[0]}, which "
            "has a source or another condition; use --trainer trl"
        )
    unfinished = unfinished_file(folder)
    try:
        for number, pair in enumerate(pairs):
            _write_pair(unfinished, f"{number:06}", pair, FOLDERS[trainer])
        os.replace(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _write_pair(
    folder: Path, name: str, pair: PreferencePair, sides: Sequence[str]
) -> None:
    files = [read_bytes(pair.preferred), read_bytes(pair.rejected)]
    formats = {format_of(file) for file in files}
    suffix = _SUFFIXES.get(formats.pop()) if len(formats) == 1 else None
    if suffix is None:  # one name for both files means one format
        files = [encode(pixels(pair.preferred)), encode(pixels(pair.rejected))]
    # trainers read a caption's first line
    caption = " ".join(pair.prompt.split()).encode()
    for side, file in zip(sides, files, strict=True):
        write_whole(folder / side / f"{name}{suffix or '.png'}", file)
        write_whole(folder / side / f"{name}.txt", caption)
