"""Instructions for pictures of certain toys, of which there are portraits."""

from __future__ import annotations

import PIL.Image

from bench.vieval_small.synthetic.instructions import SHAPED, Drawn, DrawnInstruction, Random, worded
from bench.vieval_small.synthetic.worlds import World, pick
from vieval_plugin.benchmarks.vieval_demo.drawing import SIZE, Picture, place
from vieval_plugin.benchmarks.vieval_demo.toys import Toy, altered, draw_toy, portrait


def sdig(world: World, rng: Random) -> DrawnInstruction:
    toy = world.toy(rng)
    stranger, ground, where = world.toy(rng, toy), world.ground(rng, 0.25), pick(world.places, rng)
    size, centre = int(rng.randint(150, 220)), (int(rng.randint(108, 149)), int(rng.randint(116, 150)))
    texts = {"prompt": worded(f"a toy {toy.animal}", where, rng), "subject": f"toy {toy.animal}"}

    def draw(kind: str, s: float, rng: Random) -> Drawn:
        drawn_toy = altered(toy, stranger, kind, s)
        picture = place(ground, _sprite(drawn_toy, size, kind, s), centre, 1 - s if kind == "faded" else 1)
        return Drawn(picture, toys=(drawn_toy,))

    return DrawnInstruction(texts, {"subject": portrait(toy)}, world.defects["sdig"], draw, toys=(toy,))


def sdie(world: World, rng: Random) -> DrawnInstruction:
    toy, scene, other = world.toy(rng), world.ground(rng, 0.5), world.ground(rng, 0.4)
    replaced = world.toy(rng, toy)
    size, centre = int(rng.randint(140, 196)), (int(rng.randint(84, 173)), int(rng.randint(120, 160)))

    def draw(kind: str, s: float, rng: Random) -> Drawn:
        drawn_toy, background = altered(toy, replaced, kind, s), scene
        if kind == "surroundings" and s:
            background = pick(world.surroundings, rng)(scene, s, other, rng)
        picture = place(background, _sprite(drawn_toy, size, kind, s), centre, 1 - s if kind == "faded" else 1)
        return Drawn(picture, toys=(drawn_toy,))

    conditions = {"source": place(scene, draw_toy(replaced, size), centre), "subject": portrait(toy)}
    return DrawnInstruction({"subject": f"toy {toy.animal}"}, conditions, world.defects["sdie"], draw, toys=(toy,))


def mcic(world: World, rng: Random) -> DrawnInstruction:
    first = world.toy(rng)
    second = world.toy(rng, first)
    strangers = world.toy(rng, first), world.toy(rng, second)
    ground, where, size = world.ground(rng, 0.25), pick(world.places, rng), int(rng.randint(116, 150))
    names = f"toy {first.animal}", f"toy {second.animal}"
    texts = {
        "prompt": worded(f"a {names[0]} {pick(('next to', 'and', 'with', 'beside'), rng)} a {names[1]}", where, rng),
        "concept_1": names[0],
        "concept_2": names[1],
    }
    centres = [(x + int(rng.randint(-6, 7)), 150 + int(rng.randint(-20, 21))) for x in (68, 188)]

    def draw(kind: str, s: float, rng: Random) -> Drawn:
        if kind == "twins":  # the second on its way to being the first once more
            drawn_toys = first, altered(second, first, "wrong_subject", s)
        else:
            drawn_toys = altered(first, strangers[0], kind, s), altered(second, strangers[1], kind, s)
        picture = place(ground, _sprite(drawn_toys[0], size, kind, s), centres[0], 1 - s if kind == "faded" else 1)
        opacity = 1 - s if kind in ("faded", "missing_object") else 1
        return Drawn(place(picture, _sprite(drawn_toys[1], size, kind, s), centres[1], opacity), toys=drawn_toys)

    conditions = {"concept_1": portrait(first), "concept_2": portrait(second)}
    side_by_side = PIL.Image.new("RGB", (2 * SIZE, SIZE))
    for number, toy_image in enumerate(tuple(conditions.values())):
        side_by_side.paste(toy_image, (number * SIZE, 0))
    return DrawnInstruction(
        texts, {"concepts": side_by_side, **conditions}, world.defects["mcic"], draw, toys=(first, second)
    )


def _sprite(toy: Toy, size: int, kind: str, s: float) -> Picture:
    sprite = draw_toy(toy, size)
    return SHAPED[kind](sprite, s) if kind in SHAPED else sprite
