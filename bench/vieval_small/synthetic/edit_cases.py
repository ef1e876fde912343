"""Instructions for edits: something is put into a picture, or given another colour."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import PIL.Image
import PIL.ImageDraw

from bench.vieval_small.synthetic import content
from bench.vieval_small.synthetic.instructions import (
    SHAPED,
    Drawn,
    DrawnInstruction,
    Placed,
    Random,
    far,
    quadrants,
    some_things,
    with_article,
)
from bench.vieval_small.synthetic.worlds import World, pick
from vieval_plugin.benchmarks.vieval_demo.drawing import COLOURS, HUES, SIZE, Picture, blend, draw_thing, place

_CORNERS = {"upper left": (0, 0), "upper right": (1, 0), "lower right": (1, 1), "lower left": (0, 1)}


def tie(world: World, rng: Random) -> DrawnInstruction:
    return _recolouring(world, rng) if rng.random_sample() < 0.5 else _adding(world, rng)


def mie(world: World, rng: Random) -> DrawnInstruction:
    shape, colour = pick(world.things, rng), pick(HUES, rng)
    half = int(rng.randint(44, 66))
    centre = tuple(int(v) for v in rng.randint(half + 4, SIZE - half - 4, 2))
    mask = PIL.Image.new("L", (SIZE, SIZE))
    box = (centre[0] - half, centre[1] - half, centre[0] + half, centre[1] + half)
    pen = PIL.ImageDraw.Draw(mask)
    if rng.random_sample() < 0.6:
        pen.rounded_rectangle(box, radius=int(rng.randint(0, 30)), fill=255)
    else:
        pen.ellipse(box, fill=255)
    forms = (
        "Put {0} where the mask is.",
        "Place {0} inside the masked area.",
        "Fill the marked area with {0}.",
        "{0} belongs in the masked area.",
    )
    text = pick(forms, rng).format(f"{with_article(colour)} {shape}")
    conditions = {"source": world.ground(rng, 0.5), "mask": mask}
    return _inserting(world, "mie", text, conditions, (shape, colour), int(half * rng.uniform(1.6, 1.95)), centre, rng)


def _adding(world: World, rng: Random) -> DrawnInstruction:
    shape, colour, corner = pick(world.things, rng), pick(HUES, rng), pick(tuple(_CORNERS), rng)
    forms = (
        "Add {0} to the {1} corner of the picture.",
        "Draw {0} into the {1} corner.",
        "There should be {0} in the {1}.",
        "Place {0} at the {1} corner, please.",
    )
    across, down = _CORNERS[corner]
    centre = tuple(int((208 if side else 48) + rng.randint(-6, 7)) for side in (across, down))
    text = pick(forms, rng).format(f"{with_article(colour)} {shape}", corner)
    source = world.ground(rng, 0.5)
    return _inserting(
        world, "adding", text, {"source": source}, (shape, colour), int(rng.randint(76, 100)), centre, rng
    )


def _inserting(
    world: World,
    sort: str,
    text: str,
    conditions: Mapping[str, Picture],
    shape_and_colour: tuple[str, str],
    size: int,
    centre: tuple[int, ...],
    rng: Random,
) -> DrawnInstruction:
    (shape, colour), source, other = shape_and_colour, conditions["source"], world.ground(rng, 0.4)
    wrong_colour, turn = far(colour, rng), rng.uniform(0, 2 * np.pi)

    def draw(kind: str, s: float, rng: Random) -> Drawn:
        ink = blend(COLOURS[colour], COLOURS[wrong_colour], s if kind == "wrong_colour" else 0)
        sprite, at, background = draw_thing(shape, ink, size), centre, source
        if kind in SHAPED:
            sprite = SHAPED[kind](sprite, s)
        if kind == "displaced":
            inward = np.array([128, 128]) - centre + 60 * np.array([np.cos(turn), np.sin(turn)])
            inward = inward / max(1, np.hypot(*inward)) * 130 * s
            at = (int(centre[0] + inward[0]), int(centre[1] + inward[1]))
        if kind == "surroundings" and s:
            background = pick(world.surroundings, rng)(source, s, other, rng)
        placed = Placed(shape, ink, (at[0], at[1]), 1 - s if kind == "faded" else 1)
        return Drawn(place(background, sprite, placed.centre, placed.opacity), (ink,), things=(placed,))

    return DrawnInstruction({"instruction": text}, conditions, world.defects[sort], draw, (COLOURS[colour],))


def _recolouring(world: World, rng: Random) -> DrawnInstruction:
    number = int(rng.randint(1, 5))
    pairs, _ = some_things(world, rng, number)
    (shape, colour), centres = pairs[0], rng.permutation(quadrants(rng))
    target, size = far(colour, rng), int(rng.randint(92, 116))
    wrong_colour = pick([candidate for candidate in HUES if candidate not in (colour, target)], rng)
    forms = (
        "Make that {0} {1} look {2}.",
        "Turn the {0} {1} {2}.",
        "Change the {0} {1} to {2}.",
        "Paint the {1} {2}, not {0}.",
    )
    empty, other = world.ground(rng, 0.3), world.ground(rng, 0.4)

    def arranged(ground: Picture, placed_shapes: list[tuple[str, str]], spots: np.ndarray) -> Picture:
        for (name, tint), spot in zip(placed_shapes, spots, strict=True):
            ground = place(ground, draw_thing(name, COLOURS[tint], size), (int(spot[0]), int(spot[1])))
        return ground

    def draw(kind: str, s: float, rng: Random) -> Drawn:
        around = arranged(empty, pairs[1:], centres[1:number])
        if kind == "surroundings" and s:
            around = pick(world.surroundings, rng)(around, s, other, rng)
        ink = COLOURS[target]
        if kind in ("not_done", "wrong_colour"):
            ink = blend(ink, COLOURS[colour if kind == "not_done" else wrong_colour], s)
        sprite, spot = draw_thing(shape, ink, size), (int(centres[0][0]), int(centres[0][1]))
        picture = place(around, sprite, spot)
        if kind == "half_done":  # the lower share of it as it was
            original = draw_thing(shape, COLOURS[colour], size)
            picture = place(place(picture, original, spot), content.cut_off(sprite, s), spot)
        return Drawn(picture, (ink,), things=(Placed(shape, ink, spot),))

    text = pick(forms, rng).format(colour, shape, target)
    source = arranged(empty, pairs, centres[:number])
    return DrawnInstruction(
        {"instruction": text}, {"source": source}, world.defects["recolouring"], draw, (COLOURS[target],)
    )
