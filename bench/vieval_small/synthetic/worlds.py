"""Parts of drawings: things, toys, backgrounds, wordings and defects, and a world of them that nothing is trained on.

It shares no kind of defect, no background, no thing and no feature of a toy with what `vieval_small` is trained on,
and no background or instruction with `vieval_demo`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from bench.vieval_small.synthetic import content, grounds, photographs, quality
from bench.vieval_small.synthetic.toys import ANIMALS, GARMENTS, PATTERNS
from vieval_plugin.benchmarks.vieval_demo.drawing import COLOURS, HUES, Picture
from vieval_plugin.benchmarks.vieval_demo.toys import Toy

HELD_OUT_THINGS = ("crown", "bell", "drum", "key", "cactus", "snail")


T = TypeVar("T")


def pick(among: Sequence[T], rng: np.random.RandomState) -> T:
    """Draw one of several, each as likely."""
    return among[rng.randint(len(among))]


@dataclass(frozen=True)
class World:
    """Things, features of toys, backgrounds, wordings and defects that are drawn together.

    `shown` is how a file of `photographs` becomes a background. `defects` are those of content by sort of instruction;
    `surroundings` and `outlines` are what the defects of those names do; `quality` are those of quality. What is
    listed twice is drawn twice as often. `rename` may put another name for a place.
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
    surroundings: Sequence[content.Change]
    outlines: Sequence[content.Change]
    quality: Sequence[quality.Defect]
    rename: Callable[[str, np.random.RandomState], str] = lambda place, rng: place

    def ground(self, rng: np.random.RandomState, photographs: float = 0.35) -> Picture:
        """A background, a photograph with that probability."""
        if rng.random_sample() < photographs:
            return self.shown(pick(tuple(self.photographs.values()), rng), rng)
        return pick(self.grounds, rng)(rng)

    def where(self, rng: np.random.RandomState) -> str:
        """A place in words."""
        return self.rename(pick(self.places, rng), rng)

    def toy(self, rng: np.random.RandomState, *unlike: Toy) -> Toy:
        """A toy that differs from others in every feature, and clearly in its colours."""
        while True:
            body, wear = pick(HUES, rng), pick(HUES, rng)
            belly = pick([name for name in COLOURS if name != body], rng)
            looks = [pick(options, rng) for options in (self.animals, self.patterns, self.garments)]
            candidate = Toy(looks[0], COLOURS[body], looks[1], COLOURS[belly], looks[2], COLOURS[wear])
            if not any(_alike(candidate, other) for other in unlike):
                return candidate


def _alike(first: Toy, second: Toy) -> bool:
    shares_feature = first.animal == second.animal or first.belly == second.belly or first.wear == second.wear
    colour_pairs = [
        (first.body, second.body),
        (first.belly_colour, second.belly_colour),
        (first.wear_colour, second.wear_colour),
    ]
    return shares_feature or any(sum(abs(a - b) for a, b in zip(*pair, strict=True)) < 120 for pair in colour_pairs)


HELD_OUT = World(
    things=HELD_OUT_THINGS,
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
    surroundings=(content.slid, content.painted),
    outlines=(content.rotated, content.zoomed, content.rotated),
    quality=quality.HELD_OUT,
)
