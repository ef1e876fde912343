"""Instructions for pictures that are made of a prompt, alone or with outlines to keep."""

from __future__ import annotations

import numpy as np

from bench.vieval_small.synthetic import content
from bench.vieval_small.synthetic.instructions import (
    Drawn,
    DrawnInstruction,
    Placed,
    Random,
    far,
    quadrants,
    some_things,
    worded,
)
from bench.vieval_small.synthetic.worlds import World, pick
from vieval_plugin.benchmarks.vieval_demo.drawing import COLOURS, HUES, blend, draw_thing, place
from vieval_plugin.benchmarks.vieval_demo.plan import quarters
from vieval_plugin.benchmarks.vieval_demo.spoiling import line_drawing

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def tig(world: World, rng: Random) -> DrawnInstruction:
    return _counting(world, rng) if rng.random_sample() < 0.5 else _four(world, rng)


def cig(world: World, rng: Random) -> DrawnInstruction:
    if rng.random_sample() < 0.6:
        caption = pick(tuple(world.photographs), rng)
        prompt, picture = f"a photo that shows {caption}", world.shown(world.photographs[caption], rng)
    else:
        pairs, names = some_things(world, rng, int(rng.randint(1, 5)))
        picture = world.ground(rng, 0.2)
        for (shape, colour), centre in zip(pairs, quadrants(rng), strict=False):
            picture = place(picture, draw_thing(shape, COLOURS[colour], int(rng.randint(80, 130))), centre)
        prompt = worded(" and ".join(names), pick(world.places, rng), rng)
    other = world.ground(rng, 0.5)

    def draw(kind: str, s: float, rng: Random) -> Drawn:
        change = pick(world.outlines, rng)
        return Drawn(change(picture, s, other, rng) if s else picture)

    return DrawnInstruction({"prompt": prompt}, {"control": line_drawing(picture)}, world.defects["cig"], draw)


def _counting(world: World, rng: Random) -> DrawnInstruction:
    shape, colour, count = pick(world.things, rng), pick(HUES, rng), int(rng.randint(1, 7))
    wrong_colour, other = far(colour, rng), pick([candidate for candidate in world.things if candidate != shape], rng)
    more = 1 if count < 4 or (count < 6 and rng.random_sample() < 0.5) else -1
    plural_noun = shape if shape == "fish" else f"{shape}{'' if count == 1 else 's'}"
    where, ground, size = world.where(rng), world.ground(rng, 0.15), int(rng.randint(62, 80))
    prompt = worded(f"{_NUMBERS[count]} {colour} {plural_noun}", where, rng)
    slots = [(46 + 82 * (i % 3), 46 + 82 * (i // 3)) for i in range(9)]
    if rng.random_sample() < 0.5:
        rng.shuffle(slots)
    centres = [(int(x + rng.randint(-5, 6)), int(y + rng.randint(-5, 6))) for x, y in slots]

    def draw(kind: str, s: float, rng: Random) -> Drawn:
        drawn_count = max(0, count + more * quarters(s)) if kind == "wrong_count" else count
        wrong_shapes = round(s * count) if kind == "wrong_thing" else 0
        ink = blend(COLOURS[colour], COLOURS[wrong_colour], s if kind == "wrong_colour" else 0)
        picture, shapes = ground, []
        for number, centre in enumerate(centres[:drawn_count]):
            shapes.append(Placed(other if number < wrong_shapes else shape, ink, centre))
            sprite = draw_thing(shapes[-1].thing, ink, size)
            picture = place(picture, content.cut_off(sprite, s) if kind == "cut_off" else sprite, centre)
        for centre in centres[drawn_count : drawn_count + (quarters(s) if kind == "extra_thing" else 0)]:
            picture = place(picture, draw_thing(other, COLOURS[wrong_colour], size), centre)
        return Drawn(picture, (ink,) * drawn_count, things=tuple(shapes))

    return DrawnInstruction({"prompt": prompt}, {}, world.defects["counting"], draw, (COLOURS[colour],) * count)


def _four(world: World, rng: Random) -> DrawnInstruction:
    pairs, names = some_things(world, rng, 4)
    wrong_colours, wrong_shapes = (
        [far(colour, rng) for _, colour in pairs],
        rng.permutation([t for t in world.things if t not in dict(pairs)]),
    )
    ground, centres, size = world.ground(rng, 0.15), quadrants(rng), int(rng.randint(92, 116))
    if len(wrong_shapes) < 4:
        wrong_shapes = np.array(list(wrong_shapes) * 4)
    prompt = worded(f"{', '.join(names[:3])} and {names[3]}", world.where(rng), rng)
    order = rng.permutation(4) if rng.random_sample() < 0.7 else np.arange(4)

    def draw(kind: str, s: float, rng: Random) -> Drawn:
        picture, shapes = ground, []
        missing = {int(i) for i in order[: quarters(s)]}
        for number, ((shape, colour), centre) in enumerate(zip(pairs, centres, strict=True)):
            if kind == "missing_object" and number in missing:
                continue
            ink = blend(COLOURS[colour], COLOURS[wrong_colours[number]], s if kind == "wrong_colour" else 0)
            name = str(wrong_shapes[number]) if kind == "wrong_thing" and number in missing else shape
            sprite = draw_thing(name, ink, size)
            picture = place(picture, content.cut_off(sprite, s) if kind == "cut_off" else sprite, centre)
            shapes.append(Placed(name, ink, centre))
        for number in range(quarters(s) if kind == "extra_thing" else 0):
            at = ((128, 36), (36, 128), (220, 128), (128, 128))[number]
            picture = place(picture, draw_thing(str(wrong_shapes[number]), COLOURS[wrong_colours[number]], 60), at)
        return Drawn(picture, tuple(placed.ink for placed in shapes), things=tuple(shapes))

    return DrawnInstruction(
        {"prompt": prompt}, {}, world.defects["four"], draw, tuple(COLOURS[colour] for _, colour in pairs)
    )
