"""The synthetic benchmark's subjects: toys with four features each, by which one can be told
from another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import PIL.Image

from vieval_plugin.benchmarks.vieval_demo.drawing import (
    COLOURS,
    HUES,
    SIZE,
    Picture,
    Rgb,
    blend,
    draw_shapes,
    place,
)
from vieval_plugin.benchmarks.vieval_demo.plan import quarters

# "main" is the body's colour, "second" the belly's, "third" the garment's.
EARS = {
    "bear": """
        ellipse main 22 2 42 20
        ellipse main 58 2 78 20
    """,
    "dog": """
        ellipse main 12 14 32 52
        ellipse main 68 14 88 52
    """,
    "cat": """
        polygon main 24 22 26 0 46 12
        polygon main 76 22 74 0 54 12
    """,
    "robot": """
        line ink 50 12 50 2
        ellipse second 44 -2 56 9
    """,
}
BELLIES = {
    "striped": """
        plain second 33 56 38 88
        plain second 43 56 48 88
        plain second 53 56 58 88
        plain second 63 56 68 88
    """,
    "dotted": """
        plain second 34 56 43 65
        plain second 34 68 43 77
        plain second 34 79 43 88
        plain second 46 56 55 65
        plain second 46 68 55 77
        plain second 46 79 55 88
        plain second 58 56 67 65
        plain second 58 68 67 77
        plain second 58 79 67 88
    """,
    "hearted": """
        plain second 34 56 52 74
        plain second 48 56 66 74
        wedge second 36 69 64 69 50 87
    """,
    "round": """
        ellipse second 32 54 68 90
    """,
}
WEAR = {
    "hat": """
        rectangle third 35 -3 65 9
        rectangle third 26 8 74 13
    """,
    "bow": """
        polygon third 50 50 30 42 30 58
        polygon third 50 50 70 42 70 58
    """,
    "scarf": """
        rectangle third 27 44 73 53
        rectangle third 58 50 68 72
    """,
    "glasses": """
        ellipse third 30 19 48 33
        ellipse third 52 19 70 33
    """,
}
#: A block is a rectangle of a robot, and an ellipse of any other animal.
_LIMBS = """
    block main 26 84 48 99
    block main 52 84 74 99
    block main 8 52 34 66
    block main 66 52 92 66
    block main 24 42 76 95
"""
_SKULL = """
    block main 24 10 76 50
"""
_FACE = """
    ellipse white 34 21 44 31
    ellipse white 56 21 66 31
    plain ink 37 24 42 29
    plain ink 58 24 63 29
    line ink 42 40 50 43 58 40
"""
_ANIMALS = tuple(EARS)
_PATTERNS = tuple(BELLIES)
_GARMENTS = tuple(WEAR)


@dataclass(frozen=True)
class Toy:
    """Subject that can be recognised again."""

    #: Animal, one of `EARS`.
    animal: str
    #: Colour of its body.
    body: Rgb
    #: Pattern on its belly, one of `BELLIES`.
    belly: str
    #: Colour of that pattern.
    belly_colour: Rgb
    #: Garment, one of `WEAR`.
    wear: str
    #: Colour of the garment.
    wear_colour: Rgb


@lru_cache(maxsize=256)
def draw_toy(toy: Toy, size: int) -> Picture:
    """A toy on a transparent square of `size` pixels."""
    garment = WEAR[toy.wear]
    head = garment + _FACE if toy.wear == "glasses" else _FACE + garment
    shapes = _LIMBS + BELLIES[toy.belly] + EARS[toy.animal] + _SKULL + head
    block = "rectangle" if toy.animal == "robot" else "ellipse"
    colours = {
        "main": toy.body,
        "second": toy.belly_colour,
        "third": toy.wear_colour,
    }
    return draw_shapes(
        shapes.replace("block", block),
        colours,
        size,
    )


def toy_number(index: int) -> Toy:
    """Toy by its index; those whose indices differ by 5 or 10 differ in animal and in all
    colours.
    """
    body, belly, wear = (COLOURS[HUES[(index * step + step) % 7]] for step in (1, 2, 3))
    belly = COLOURS["white"] if belly == body else belly
    pattern = (index + index // 4) % 4
    garment = (index * 3 + 1) % 4
    return Toy(
        animal=_ANIMALS[index % 4],
        body=body,
        belly=_PATTERNS[pattern],
        belly_colour=belly,
        wear=_GARMENTS[garment],
        wear_colour=wear,
    )


def altered(toy: Toy, stranger: Toy, kind: str, strength: float) -> Toy:
    """The toy with so many of a stranger's four features, or with colours so far off; itself for
    other defects.
    """
    if kind == "wrong_colour":
        body = blend(toy.body, stranger.body, strength)
        return replace(
            toy,
            body=body,
            belly_colour=blend(toy.belly_colour, stranger.belly_colour, strength),
        )
    if kind != "wrong_subject":
        return toy
    with_other_garment = replace(
        toy,
        wear=stranger.wear,
        wear_colour=stranger.wear_colour,
    )
    two = replace(
        with_other_garment,
        belly=stranger.belly,
        belly_colour=stranger.belly_colour,
    )
    three = replace(two, animal=stranger.animal)
    return (toy, with_other_garment, two, three, stranger)[quarters(strength)]


def portrait(toy: Toy) -> Picture:
    """The toy large, on plain light grey: the image a generator is shown of its subject."""
    background = PIL.Image.new(
        "RGB",
        (SIZE, SIZE),
        (226, 226, 230),
    )
    return place(
        background,
        draw_toy(toy, 240),
        (128, 130),
    )
