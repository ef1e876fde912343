"""The world of drawings that vieval_small is trained on."""

from __future__ import annotations

import numpy as np

from bench.vieval_small import changes, grounds, photographs, quality
from bench.vieval_small.places import somewhere
from bench.vieval_small.synthetic.toys import ANIMALS, GARMENTS, PATTERNS
from bench.vieval_small.synthetic.worlds import HELD_OUT_THINGS, World
from vieval_plugin.benchmarks.vieval_demo.drawing import THINGS

_INSERTING = (*["faded"] * 8, *["surroundings"] * 9, "smaller", "displaced", "wrong_colour")
_TOYS = (*["wrong_subject"] * 3, *["wrong_colour"] * 3, "faded")
STRANGE_PLACES = 0.75
"""The share of prompts that name a place which is none of the world's."""


def strange_place(place: str, rng: np.random.RandomState) -> str:
    """The place, or a made-up one, from a stream of its own, so that what is drawn does not depend on it."""
    words = np.random.RandomState([*rng.get_state(legacy=False)["state"]["key"][:4], 1])
    return somewhere(words) if words.random_sample() < STRANGE_PLACES else place


TRAINED = World(
    things=tuple(thing for thing in THINGS if thing not in HELD_OUT_THINGS),
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
        *[changes.turned_and_bent] * 16,
        *(changes.recoloured, changes.replaced, changes.replaced_from_a_side, changes.replaced_in_pieces),
        *(changes.bent, changes.lightened),
    ),
    outlines=(*[changes.bent] * 6, changes.replaced_from_a_side, changes.replaced_in_pieces),
    quality=(*quality.TRAINED, *[quality.noise, quality.blur, quality.watermark] * 18),
    rename=strange_place,
)
