"""Editing sequences: images of one scene, each made from the one before by an instruction, in a folder of turns.

A layout is a module of this package that describes itself in ``LAYOUT``; which one a folder has is found by looking.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from vieval_plugin.errors import VievalError, docs_url
from vieval_plugin.images import examine
from vieval_plugin.judges.protocol import Image
from vieval_plugin.text.untrusted import isfile


@dataclass(frozen=True)
class EditingSequence:
    """Images I_0 to I_l, and the l instructions of which each turned one into the next."""

    uid: str
    images: tuple[Path, ...]
    instructions: tuple[str, ...]


@dataclass(frozen=True)
class SequenceFolder:
    """Description of a folder: what it holds, where it is from, on which terms, and whether those let it train a
    model.
    """

    source: str
    licence: str
    trainable: bool
    sequences: tuple[EditingSequence, ...]


@dataclass(frozen=True)
class Layout:
    """Layout of a folder of turns: `file` lies in each that is, and `read(folder)` reads one.

    `read` raises a VievalError, or a ValueError, KeyError or TypeError for what is not as it should be.
    """

    file: str
    read: Callable[[Path], SequenceFolder]


OVER_EDITED = 0.5
"""The label of an image to which more was done than was asked for."""


def label(j1: int, j2: int, k: int) -> float:
    """Degree to which image k of a sequence is what instructions j1 + 1 to j2 make of image j1, in [0, 1].

    Source: ADIEE (ICCV 2025), section on its data.

    >>> [label(1, 3, k) for k in range(5)]
    [0.0, 0.0, 0.5, 1.0, 0.5]
    """
    if k <= j1:
        return 0.0
    return (k - j1) / (j2 - j1) if k <= j2 else OVER_EDITED


def triples(turns: int) -> list[tuple[int, int, int]]:
    """Edits j1, j2, k that a sequence of so many turns has: 0 <= j1 < j2 <= turns and j1 <= k <= turns.

    >>> triples(1)
    [(0, 1, 0), (0, 1, 1)]
    """
    return [(j1, j2, k) for j1 in range(turns) for j2 in range(j1 + 1, turns + 1) for k in range(j1, turns + 1)]


def read_sequences(folder: Path) -> SequenceFolder:
    """The sequences of a folder of turns, every image looked at and every instruction there.

    Raises:
        VievalError: in one line, a folder of no known layout, a turn without its image or its instruction, and an image
            that cannot be read.
    """
    layouts = _layouts()
    layout = next((candidate for candidate in layouts if isfile(folder / candidate.file)), None)
    if layout is None:
        known = " or ".join(candidate.file for candidate in layouts)
        raise VievalError(
            f"{folder}: no folder of turns; one has {known} in it; see {docs_url('guides/training.md#labels-without-people')}"
        )
    try:
        sequences = layout.read(folder)
    except OSError as error:
        raise VievalError(
            f"{error.filename}: cannot be read ({error.strerror}); see {docs_url('guides/training.md#labels-without-people')}"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"{error.args[0]} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())[:200]
        raise VievalError(f"{folder / layout.file}: not as this layout has it ({what})") from None
    if not sequences.sequences:
        raise VievalError(f"{folder / layout.file}: no sequences in it")
    for sequence in sequences.sequences:
        _require_whole(folder / layout.file, sequence)
    return sequences


def _layouts() -> Sequence[Layout]:
    modules = (
        importlib.import_module(f"{__name__}.{module_info.name}") for module_info in pkgutil.iter_modules(__path__)
    )
    return [module.LAYOUT for module in modules]


def _require_whole(file: Path, sequence: EditingSequence) -> None:
    if len(sequence.images) != len(sequence.instructions) + 1 or not sequence.instructions:
        raise VievalError(
            f"{file}: sequence {sequence.uid} has {len(sequence.images)} images and {len(sequence.instructions)} "
            "instructions; there is one image more than instructions, of which there is one or more"
        )
    for turn, (image, instruction) in enumerate(zip(sequence.images[1:], sequence.instructions, strict=True), start=1):
        if not isinstance(instruction, str) or not instruction.strip():
            raise VievalError(f"{file}: turn {turn} of sequence {sequence.uid} has no instruction")
        if not isfile(image):
            raise VievalError(f"{file}: turn {turn} of sequence {sequence.uid} has no image ({image} is not there)")
    for image in sequence.images:
        examine(Image(image))
