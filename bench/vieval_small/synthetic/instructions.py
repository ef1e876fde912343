"""An instruction, what is drawn for it, and how what it asks for is put into words and placed.

What can only be wrong in whole things goes by quarters of the strength, which is what `DrawnInstruction.draw` must
then be given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bench.vieval_small.synthetic import content
from bench.vieval_small.synthetic.worlds import World, pick
from vieval_plugin.benchmarks.vieval_demo.drawing import HUES, Picture, Rgb
from vieval_plugin.benchmarks.vieval_demo.toys import Toy

Random = np.random.RandomState
SHAPED = {"cut_off": content.cut_off, "squeezed": content.squeezed, "smaller": content.smaller}
"""Defects that change the picture of a thing or a toy as a whole."""


@dataclass(frozen=True)
class Placed:
    """A thing of a colour with its centre at a pixel."""

    thing: str
    ink: Rgb
    centre: tuple[int, int]
    opacity: float = 1.0


@dataclass(frozen=True)
class Drawn:
    """An output, and what is to be seen in it: colours of things by hue, where each thing is, or the toys shown."""

    picture: Picture
    colours: tuple[Rgb, ...] = ()
    toys: tuple[Toy, ...] = ()
    things: tuple[Placed, ...] = ()


@dataclass(frozen=True)
class DrawnInstruction:
    """Instruction: its texts and condition images, the defects that fit it, and how its output is drawn.

    `colours` and `toys` are what the instruction asks for.
    """

    texts: Mapping[str, str]
    conditions: Mapping[str, Picture]
    defects: Sequence[str]
    draw: Callable[[str, float, Random], Drawn]
    colours: tuple[Rgb, ...] = ()
    toys: tuple[Toy, ...] = field(default=())


def with_article(name: str) -> str:
    """A thing or a colour as one of them is named."""
    return f"{'an' if name[0] in 'aeio' else 'a'} {name}"


def far(colour: str, rng: Random) -> str:
    """Another colour, at least two on in the list of names and two back."""
    return HUES[(HUES.index(colour) + rng.randint(2, 6)) % len(HUES)]


def worded(what: str, where: str, rng: Random) -> str:
    """Prompt that says what is to be seen and where, in one of several wordings."""
    forms = ("{0} {1}", "a picture of {0} {1}", "{1}, {0}", "there are {0} {1}", "{0}, all of them {1}", "draw {0} {1}")
    return pick(forms, rng).format(what, where)


def some_things(world: World, rng: Random, number: int) -> tuple[list[tuple[str, str]], list[str]]:
    """Different things of different colours, and what they are called."""
    shapes = [str(name) for name in rng.permutation(world.things)[:number]]
    pairs = list(zip(shapes, (str(name) for name in rng.permutation(HUES)[:number]), strict=True))
    return pairs, [f"{with_article(colour)} {shape}" for shape, colour in pairs]


def quadrants(rng: Random) -> list[tuple[int, int]]:
    """Four places for things, one a quarter of the picture."""
    spots = (
        [(66, 66), (190, 66), (66, 190), (190, 190)]
        if rng.random_sample() < 0.5
        else [(66, 92), (190, 92), (66, 192), (190, 192)]
    )
    return [(int(x + rng.randint(-8, 9)), int(y + rng.randint(-8, 9))) for x, y in spots]
