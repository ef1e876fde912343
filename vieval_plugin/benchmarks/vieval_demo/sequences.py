"""Drawn editing sequences: a scene and several edits one after the other, each of which changes one
thing.

They provide labels without human raters: how far an instruction was carried out is
known exactly. Nothing here is part of the synthetic benchmark.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import PIL.Image
from tqdm import tqdm

from vieval_plugin.benchmarks.sequences import EditingSequence, write_sequences
from vieval_plugin.benchmarks.vieval_demo.backgrounds import PLACES, backdrop
from vieval_plugin.benchmarks.vieval_demo.drawing import (
    COLOURS,
    HUES,
    THINGS,
    Picture,
    add_article,
    draw_thing,
)
from vieval_plugin.benchmarks.vieval_demo.outputs import png
from vieval_plugin.images import read_bytes
from vieval_plugin.media.files import write_whole

#: Width and height of a drawn scene in pixels.
SIDE = 96

_ROWS = ("top", "middle", "bottom")
_COLUMNS = ("left", "centre", "right")
_CELLS = tuple((row, column) for row in range(3) for column in range(3))
ShapesByCell: TypeAlias = Mapping[tuple[int, int], tuple[str, str]]


@dataclass(frozen=True)
class DrawnSequence:
    """Scene that is edited several times."""

    #: Its name, of seed and number.
    uid: str
    #: Scenes before the first edit and after each.
    scenes: tuple[Picture, ...]
    #: Instruction of each edit.
    instructions: tuple[str, ...]


def draw_sequence(
    number: int, seed: int, turns: Sequence[int] = (2, 3, 4)
) -> DrawnSequence:
    """A sequence of edits of a scene of 96 x 96 pixels; the same for the same number and seed.

    Args:
        number: which sequence, from 0 on.
        seed: of all of them.
        turns: how many edits it may have, of which one number is drawn; 6 at most.

    >>> [round(number) for number in map(len, (draw_sequence(0, 0).scenes, draw_sequence(0, 0).instructions))]
    [4, 3]
    """
    rng = random.Random(f"sequence/{seed}/{number}")
    ground = rng.choice(tuple(PLACES))
    cells = rng.sample(_CELLS, len(_CELLS))
    shapes: ShapesByCell = {cell: _random_shape(rng) for cell in cells[:3]}
    scenes = [_scene(ground, shapes)]
    instructions = []
    # an edit leaves alone what an earlier one changed, so that each is there to be seen until the
    # end
    candidates = [*cells[:3], *cells[5:]]
    for cell in rng.sample(candidates, rng.choice(turns)):
        shapes, instruction = _edited(rng, shapes, cell)
        scenes.append(_scene(ground, shapes))
        instructions.append(instruction)
    return DrawnSequence(
        f"{seed}_{number:05d}",
        tuple(scenes),
        tuple(instructions),
    )


def write_drawn(folder: Path, count: int, seed: int) -> None:
    """Write `count` drawn sequences as a folder of turns; VievalError if it cannot be
    written.

    Args:
        folder: output folder, created if missing.
        count: how many sequences.
        seed: the same numbers of the same seed are the same sequences.
    """
    write_sequences(
        folder,
        "drawn by VIEval",
        "Apache-2.0",
        _editing_sequences(folder, count, seed),
    )


def _editing_sequences(
    folder: Path, count: int, seed: int
) -> Iterator[EditingSequence]:
    for number in tqdm(
        range(count),
        desc="Drawing",
        unit="sequence",
        disable=None,
    ):
        sequence = draw_sequence(number, seed)
        files = []
        for turn, scene in enumerate(sequence.scenes):
            files.append(folder / "images" / f"{sequence.uid}_{turn}.png")
            write_whole(files[turn], read_bytes(png(scene)))
        yield EditingSequence(
            uid_of(sequence),
            tuple(files),
            sequence.instructions,
        )


def uid_of(sequence: DrawnSequence) -> str:
    """Identifier of a drawn sequence wherever it is used."""
    return f"drawn/{sequence.uid}"


def _edited(
    rng: random.Random, shapes: ShapesByCell, cell: tuple[int, int]
) -> tuple[ShapesByCell, str]:
    where = f"at the {_ROWS[cell[0]]} {_COLUMNS[cell[1]]}"
    edited = dict(shapes)
    if cell not in shapes:
        shape, colour = edited[cell] = _random_shape(rng)
        return edited, f"Add {add_article(colour)} {shape} {where}."
    shape, colour = edited.pop(cell)
    if rng.random() < 0.5:
        return edited, f"Remove the {shape} {where}."
    new_colour = HUES[(HUES.index(colour) + 3) % len(HUES)]
    return {
        **shapes,
        cell: (shape, new_colour),
    }, f"Make the {shape} {where} {new_colour}."


def _random_shape(rng: random.Random) -> tuple[str, str]:
    return rng.choice(THINGS), rng.choice(HUES)


def _scene(ground: str, shapes: ShapesByCell) -> Picture:
    picture = backdrop(ground).resize((SIDE, SIDE), PIL.Image.Resampling.BOX)
    cell = SIDE // 3
    for (row, column), (shape, colour) in shapes.items():
        sprite = draw_thing(
            shape,
            COLOURS[colour],
            cell - 2,
        )
        corner = (column * cell + 1, row * cell + 1)
        picture.paste(
            sprite.convert("RGB"),
            corner,
            sprite.getchannel("A"),
        )
    return picture
