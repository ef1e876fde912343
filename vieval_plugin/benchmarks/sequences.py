"""Editing sequences: images of one scene, each made from the one before by an instruction, in a
folder of turns.

Such a folder has our own layout, `sequences.jsonl` with a sequence a line and `about.json` with
source, licence and what it permits, or MagicBrush's: `edit_sessions.json` beside
`images/<session>/`, one folder a split (Zhang et al., MagicBrush: a manually annotated dataset for
instruction-guided image editing, NeurIPS 2023).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from vieval_plugin.images import examine
from vieval_plugin.judges.protocol import Image
from vieval_plugin.media.files import write_whole
from vieval_plugin.readers.rows import read_lines
from vieval_plugin.text.errors import VievalError, docs_url, line_of
from vieval_plugin.text.untrusted import isfile, real
from vieval_plugin.text.wording import plural
from vieval_plugin.text.yaml_json import JsonObject, read_json

FILE = "sequences.jsonl"
DESCRIPTION_FILE = "about.json"
MAGICBRUSH_FILE = "edit_sessions.json"
#: The label of an image to which more was done than was asked for.
OVER_EDITED = 0.5

_HELP = f"see {docs_url('guides/training.md#labels-without-people')}"


@dataclass(frozen=True)
class EditingSequence:
    """Images I_0 to I_l, and the l instructions of which each turned one into the next."""

    uid: str
    #: Files of the images.
    images: tuple[Path, ...]
    instructions: tuple[str, ...]


@dataclass(frozen=True)
class SequenceFolder:
    """Sequences of a folder, and the terms that they are on."""

    source: str
    #: The terms they are on.
    licence: str
    #: True where these terms let them train a model.
    trainable: bool
    sequences: tuple[EditingSequence, ...]


def label(j1: int, j2: int, k: int) -> float:
    """Degree to which image k of a sequence is what instructions j1 + 1 to j2 make of image j1, in
    [0, 1].

    Source: ADIEE (ICCV 2025), section on its data.

    >>> [label(1, 3, k) for k in range(5)]
    [0.0, 0.0, 0.5, 1.0, 0.5]
    """
    if k <= j1:
        return 0.0
    return (k - j1) / (j2 - j1) if k <= j2 else OVER_EDITED


def triples(turns: int) -> list[tuple[int, int, int]]:
    """Edits j1, j2, k that a sequence of so many turns has: 0 <= j1 < j2 <= turns and j1 <= k <=
    turns.

    >>> triples(1)
    [(0, 1, 0), (0, 1, 1)]
    """
    return [
        (j1, j2, k)
        for j1 in range(turns)
        for j2 in range(j1 + 1, turns + 1)
        for k in range(j1, turns + 1)
    ]


def read_sequences(folder: Path) -> SequenceFolder:
    """The sequences of a folder of turns, every image looked at and every instruction there.

    Raises:
        VievalError: in one line, a folder of no known layout, a turn without its image or its
            instruction, and an image that cannot be read.
    """
    layouts = {MAGICBRUSH_FILE: _read_magicbrush, FILE: _read_own}
    file = next((folder / name for name in layouts if isfile(folder / name)), None)
    if file is None:
        raise VievalError(
            f"{folder}: not a folder of turns, because it has no {' or '.join(layouts)}; {_HELP}"
        )
    try:
        sequences = layouts[file.name](folder)
    except OSError as error:
        raise VievalError(
            f"{error.filename}: cannot be read ({error.strerror}); {_HELP}"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = line_of(error)
        if isinstance(error, KeyError):
            reason = f"{error.args[0]} is missing"
        raise VievalError(f"{file}: does not fit this layout ({reason})") from None
    if not sequences.sequences:
        raise VievalError(f"{file}: no sequences found")
    for sequence in sequences.sequences:
        _require_complete(file, sequence)
    return sequences


def _read_own(folder: Path) -> SequenceFolder:
    description = read_json((folder / DESCRIPTION_FILE).read_bytes())
    if not isinstance(description["trainable"], bool):
        raise ValueError(f"{DESCRIPTION_FILE}: trainable must be true or false")
    sequences = []
    for row in read_lines(folder / FILE, _HELP):
        try:
            images = tuple(folder / name for name in row.cells["images"])
            uid = str(row.cells["uid"])
            instructions = tuple(row.cells["instructions"])
            sequences.append(
                EditingSequence(
                    uid,
                    images,
                    instructions,
                )
            )
        except (KeyError, TypeError) as error:
            raise VievalError(
                f"{row.where}: not a sequence ({error}); {_HELP}"
            ) from None
    terms = (
        str(description["source"]),
        str(description["licence"]),
        description["trainable"],
    )
    return SequenceFolder(*terms, tuple(sequences))


def _read_magicbrush(folder: Path) -> SequenceFolder:
    """Sessions of a split, each with turns of `input`, `output`, `instruction` and a mask that is
    not used here.

    The authors ask that the test split never train a model; what is in a folder called `test` does
    not.
    """
    sessions: JsonObject = read_json((folder / MAGICBRUSH_FILE).read_bytes())
    split = real(folder).name
    sequences = []
    for session, turns in sessions.items():
        for earlier, later in pairwise(turns):
            if earlier["output"] != later["input"]:
                raise ValueError(
                    f"session {session}: each turn must begin with the output of the "
                    f"previous turn, got {later['input']}"
                )
        names = [turn["input"] for turn in turns[:1]]
        names += [turn["output"] for turn in turns]
        # the folder of a session is called by what its files' names begin with
        paths = tuple(folder / "images" / session / Path(name).name for name in names)
        instructions = tuple(turn.get("instruction", "") for turn in turns)
        sequences.append(
            EditingSequence(
                f"magicbrush/{split}/{session}",
                paths,
                instructions,
            )
        )
    return SequenceFolder(
        f"MagicBrush, split {split}",
        "CC BY 4.0",
        split != "test",
        tuple(sequences),
    )


def _require_complete(file: Path, sequence: EditingSequence) -> None:
    if (
        len(sequence.images) != len(sequence.instructions) + 1
        or not sequence.instructions
    ):
        raise VievalError(
            f"{file}: sequence {sequence.uid} must have at least one instruction, and "
            f"one more image than instructions, got {plural(len(sequence.images), 'image')} "
            f"and {plural(len(sequence.instructions), 'instruction')}"
        )
    turns = zip(
        sequence.images[1:],
        sequence.instructions,
        strict=True,
    )
    for turn, (image, instruction) in enumerate(turns, start=1):
        if not isinstance(instruction, str) or not instruction.strip():
            raise VievalError(
                f"{file}: turn {turn} of sequence {sequence.uid} has no instruction"
            )
        if not isfile(image):
            raise VievalError(
                f"{file}: turn {turn} of sequence {sequence.uid} has no image ({image} is "
                "missing)"
            )
    for image in sequence.images:
        examine(Image(image))


def write_sequences(
    folder: Path, source: str, licence: str, sequences: Iterable[EditingSequence]
) -> None:
    """Write sequences that may train a model, which may be made one by one, their images already in
    the folder.

    Raises:
        VievalError: a file cannot be written.
    """
    terms = {
        "source": source,
        "licence": licence,
        "trainable": True,
    }

    def document(sequence: EditingSequence) -> JsonObject:
        return {
            "uid": sequence.uid,
            "images": [str(path.relative_to(folder)) for path in sequence.images],
            "instructions": sequence.instructions,
        }

    write_whole(folder / DESCRIPTION_FILE, [json.dumps(terms, indent=1)])
    write_whole(
        folder / FILE,
        (
            f"{json.dumps(document(sequence), ensure_ascii=False)}\n"
            for sequence in sequences
        ),
    )
