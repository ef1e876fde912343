"""What drawings are made of: the world that is trained on, and the one that is held out. They share no kind of defect,
no background, no thing and no feature of a toy, and neither has a background or an instruction of `vieval_demo`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vieval_plugin.data.drawings import content, grounds, photographs, quality
from vieval_plugin.data.drawings.chance import pick
from vieval_plugin.data.drawings.drawing import COLOURS, HUES, THINGS, Picture
from vieval_plugin.data.drawings.places import somewhere
from vieval_plugin.data.drawings.toys import ANIMALS, GARMENTS, PATTERNS, Toy

_HELD_OUT_THINGS = ("crown", "bell", "drum", "key", "cactus", "snail")
_INSERTING = (*["faded"] * 8, *["surroundings"] * 9, "smaller", "displaced", "wrong_colour")
_TOYS = (*["wrong_subject"] * 3, *["wrong_colour"] * 3, "faded")


@dataclass(frozen=True)
class World:
    """Things, features of toys, backgrounds, wordings and defects that are drawn together.

    `shown` is how a file of `photographs` becomes a background. `defects` are those of content by sort of instruction; `surroundings` and `outlines` are what the defects of those
    names do; `quality` are those of quality. What is named twice is drawn twice as often.
    """

    things: Sequence[str]
    animals: Sequence[str]
    patterns: Sequence[str]
    garments: Sequence[str]
    grounds: Sequence[grounds.Ground]
    photographs: Mapping[str, str]
    shown: Callable[[str, np.random.RandomState], Picture]
    places: Sequence[str]
    defects: Mapping[str, Sequence[str]]
    surroundings: Sequence[str]
    outlines: Sequence[str]
    quality: Sequence[str]
    strange_places: float = 0.0

    def ground(self, rng: np.random.RandomState, photographs: float = 0.35) -> Picture:
        """A background, a photograph with that probability."""
        if rng.random_sample() < photographs:
            return self.shown(pick(tuple(self.photographs.values()), rng), rng)
        return pick(self.grounds, rng)(rng)

    def where(self, rng: np.random.RandomState) -> str:
        """A place in words: one of `places`, or any where there is a share of `strange_places`.

        These have a stream of their own, so that what is drawn does not depend on them.
        """
        known = pick(self.places, rng)
        apart = np.random.RandomState([*rng.get_state(legacy=False)["state"]["key"][:4], 1])
        return somewhere(apart) if apart.random_sample() < self.strange_places else known

    def change(self, of: Sequence[str], rng: np.random.RandomState) -> content.Change:
        """One of `surroundings` or of `outlines`."""
        return content.CHANGES[pick(of, rng)]

    def toy(self, rng: np.random.RandomState, *unlike: Toy) -> Toy:
        """A toy that differs from others in every feature, and clearly in its colours."""
        while True:
            body, wear = pick(HUES, rng), pick(HUES, rng)
            belly = pick([name for name in COLOURS if name != body], rng)
            looks = [pick(one, rng) for one in (self.animals, self.patterns, self.garments)]
            found = Toy(looks[0], COLOURS[body], looks[1], COLOURS[belly], looks[2], COLOURS[wear])
            if not any(_alike(found, other) for other in unlike):
                return found


def _alike(one: Toy, other: Toy) -> bool:
    same = one.animal == other.animal or one.belly == other.belly or one.wear == other.wear
    near = [(one.body, other.body), (one.belly_colour, other.belly_colour), (one.wear_colour, other.wear_colour)]
    return same or any(sum(abs(a - b) for a, b in zip(*pair, strict=True)) < 120 for pair in near)


TRAINED = World(
    things=tuple(thing for thing in THINGS if thing not in _HELD_OUT_THINGS),
    animals=ANIMALS[:7],
    patterns=PATTERNS[:6],
    garments=GARMENTS[:6],
    grounds=grounds.TRAINED,
    photographs=photographs.TRAINED,
    shown=photographs.developed,
    places=(
        "in a sunny park",
        "on a grey street",
        "under a cloudy sky",
        "on a wooden table",
        "in a dark forest",
        "by a blue lake",
        "in front of a striped wall",
        "on a mountain",
        "in a large hall",
        "on a hill in autumn",
        "before a colourful curtain",
        "in the desert",
    ),
    defects={
        "counting": (*["wrong_count"] * 6, *["wrong_colour"] * 6, "wrong_thing"),
        "four": (*["missing_object"] * 6, *["wrong_colour"] * 6, "wrong_thing"),
        "mie": _INSERTING,
        "adding": _INSERTING,
        "recolouring": (*["not_done"] * 6, *["surroundings"] * 7, "wrong_colour"),
        "sdig": _TOYS,
        "sdie": (*_TOYS, *["surroundings"] * 3),
        "mcic": (*_TOYS, *["missing_object"] * 3),
        "cig": ("outlines",),
    },
    surroundings=(
        *["turned_and_bent"] * 16,
        *("recoloured", "replaced", "replaced_from_a_side", "replaced_in_pieces", "bent", "lightened"),
    ),
    outlines=(*["bent"] * 6, "replaced_from_a_side", "replaced_in_pieces"),
    quality=(*quality.TRAINED, *["noise", "blur", "watermark"] * 18),
    strange_places=0.75,
)

HELD_OUT = World(
    things=_HELD_OUT_THINGS,
    animals=ANIMALS[7:],
    patterns=PATTERNS[6:],
    garments=GARMENTS[6:],
    grounds=grounds.HELD_OUT,
    photographs=photographs.HELD_OUT,
    shown=photographs.crop,
    places=("in a city of towers", "behind stained glass", "over rippling water", "far from home"),
    defects={
        "counting": ("cut_off", "extra_thing"),
        "four": ("cut_off", "extra_thing"),
        "mie": ("cut_off", "squeezed", "surroundings"),
        "adding": ("cut_off", "squeezed", "surroundings"),
        "recolouring": ("half_done", "surroundings"),
        "sdig": ("cut_off", "squeezed"),
        "sdie": ("cut_off", "squeezed", "surroundings"),
        "mcic": ("cut_off", "squeezed", "twins"),
        "cig": ("outlines",),
    },
    surroundings=("slid", "painted"),
    outlines=("rotated", "zoomed", "rotated"),
    quality=quality.HELD_OUT,
)
