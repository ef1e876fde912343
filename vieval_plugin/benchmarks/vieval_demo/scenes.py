"""The instructions of the synthetic benchmark: for each task, what is asked for and how an output
of it is drawn.

A `Case` draws its output with one content defect of a given strength: 0 is what the instruction
asks for, 1 is as wrong as that defect gets. What can only be wrong in whole things (a count, a
missing thing, a feature of a subject) goes by quarters of the strength.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import PIL.Image
import PIL.ImageDraw

from vieval_plugin.benchmarks.vieval_demo.backgrounds import (
    PHOTOGRAPHS,
    PLACES,
    backdrop,
    photograph,
)
from vieval_plugin.benchmarks.vieval_demo.drawing import (
    COLOURS,
    HUES,
    SIZE,
    THINGS,
    Picture,
    Rgb,
    add_article,
    blend,
    draw_thing,
    place,
)
from vieval_plugin.benchmarks.vieval_demo.plan import quarters
from vieval_plugin.benchmarks.vieval_demo.spoiling import (
    bend,
    line_drawing,
    overdo_edit,
)
from vieval_plugin.benchmarks.vieval_demo.toys import (
    altered,
    draw_toy,
    portrait,
    toy_number,
)

#: Things with their colours.
Shapes: TypeAlias = tuple[tuple[str, str], ...]
_NUMERALS = ("no", "one", "two", "three", "four", "five")
_CORNERS = {
    "upper left": (48, 48),
    "upper right": (208, 48),
    "lower right": (208, 208),
    "lower left": (48, 208),
}
_FOUR = (
    (66, 92),
    (190, 92),
    (66, 192),
    (190, 192),
)
_MASK_CENTRES = (
    (70, 70),
    (186, 70),
    (186, 186),
    (70, 186),
    (128, 128),
)


@dataclass(frozen=True)
class Case:
    """Instruction, and how its output is drawn."""

    texts: Mapping[str, str]
    #: Its condition images by role.
    conditions: Mapping[str, Picture]
    #: Function that draws the output with a content defect, one of `plan.content_defects`, at a
    #: strength in [0, 1].
    draw: Callable[[str, float], Picture]


def _tig(index: int) -> Case:
    where = _pick(PLACES, index)
    return (_four_things if index % 2 else _counting)(index // 2, where)


def _counting(index: int, where: str) -> Case:
    shape = THINGS[index]
    colour = HUES[index % 7]
    count = 3 + index % 3
    plural_noun = shape if shape == "fish" else f"{shape}s"
    prompt = f"{_NUMERALS[count]} {colour} {plural_noun} {PLACES[where]}"

    def draw(kind: str, strength: float) -> Picture:
        sign = 1 if count == 3 or index % 2 else -1
        drawn_count = (
            count + sign * quarters(strength) if kind == "wrong_count" else count
        )
        ink = _wrong_colour(colour, strength if kind == "wrong_colour" else 0)
        picture = backdrop(where)
        for number in range(drawn_count):
            row, column = divmod(number, 3)
            centre = (46 + 82 * column, 52 + 76 * row)
            picture = place(
                picture,
                draw_thing(shape, ink, 72),
                centre,
            )
        return picture

    return Case({"prompt": prompt}, {}, draw)


def _four_things(index: int, where: str) -> Case:
    shapes = _shapes(index)

    def draw(kind: str, strength: float) -> Picture:
        missing = quarters(strength) if kind == "missing_object" else 0
        wrong_colour_strength = strength if kind == "wrong_colour" else 0
        return _arranged(
            where,
            shapes[missing:],
            _FOUR[missing:],
            wrong_colour_strength,
        )

    return Case(
        {"prompt": _four_things_prompt(shapes, where)},
        {},
        draw,
    )


def _four_things_prompt(shapes: Shapes, where: str) -> str:
    *names, last = (f"{add_article(colour)} {shape}" for shape, colour in shapes)
    return f"{', '.join(names)} and {last} {PLACES[where]}"


def _tie(index: int) -> Case:
    return (_recolouring if index % 2 else _adding)(index // 2)


def _adding(index: int) -> Case:
    shape = THINGS[(index * 3 + 1) % 8]
    colour = HUES[(index * 2) % 7]
    corner = _pick(_CORNERS, index)
    instruction = f"Add {add_article(colour)} {shape} in the {corner} corner."
    source = photograph(_pick(PHOTOGRAPHS, index), mirrored=index >= 5)
    sprite = draw_thing(shape, COLOURS[colour], 90)
    return _inserting(
        instruction,
        {"source": source},
        sprite,
        _CORNERS[corner],
    )


def _mie(index: int) -> Case:
    shape = THINGS[index % 8]
    colour = HUES[(index * 3) % 7]
    x, y = centre = _MASK_CENTRES[index % 5]
    instruction = f"Put {add_article(colour)} {shape} in the masked area."
    caption = _pick(PHOTOGRAPHS, index * 2 + index // 5)
    source = photograph(caption, mirrored=index % 2 == 1)
    mask = PIL.Image.new("L", (SIZE, SIZE))
    box = (
        x - 56,
        y - 56,
        x + 56,
        y + 56,
    )
    PIL.ImageDraw.Draw(mask).rounded_rectangle(
        box,
        radius=18,
        fill=255,
    )
    sprite = draw_thing(shape, COLOURS[colour], 104)
    return _inserting(
        instruction,
        {"source": source, "mask": mask},
        sprite,
        centre,
    )


def _inserting(
    instruction: str,
    conditions: Mapping[str, Picture],
    sprite: Picture,
    centre: tuple[int, int],
) -> Case:
    """An edit that puts something into the source; half done, it is half transparent."""

    def draw(kind: str, strength: float) -> Picture:
        background = conditions["source"]
        if kind == "over_edited":
            return place(overdo_edit(background, strength), sprite, centre)
        return place(background, sprite, centre, opacity=1 - strength)

    return Case({"instruction": instruction}, conditions, draw)


def _recolouring(index: int) -> Case:
    where = _pick(PLACES, index)
    shapes = _shapes(index)
    shape, colour = shapes[0]
    target = _other_hue(colour)
    instruction = f"Make the {colour} {shape} {target}."
    source = _arranged(where, shapes, _FOUR)

    def draw(kind: str, strength: float) -> Picture:
        undone = strength if kind == "edit_not_done" else 0.0
        unchanged = _arranged(
            where,
            shapes[1:],
            _FOUR[1:],
        )
        surroundings = overdo_edit(unchanged, strength - undone)
        ink = blend(
            COLOURS[target],
            COLOURS[colour],
            undone,
        )
        return place(
            surroundings,
            draw_thing(shape, ink, 110),
            _FOUR[0],
        )

    return Case(
        {"instruction": instruction},
        {"source": source},
        draw,
    )


def _cig(index: int) -> Case:
    if index < 10:
        caption = _pick(PHOTOGRAPHS, index)
        prompt = f"a photograph of {caption}"
        picture = photograph(caption, mirrored=index >= 5)
    else:
        where = _pick(PLACES, index)
        shapes = _shapes(index)
        prompt = _four_things_prompt(shapes, where)
        picture = _arranged(where, shapes, _FOUR)

    def draw(kind: str, strength: float) -> Picture:
        return bend(picture, strength)

    return Case(
        {"prompt": prompt},
        {"control": line_drawing(picture)},
        draw,
    )


def _sdig(index: int) -> Case:
    where = _pick(PLACES, index + index // 4)
    toy = toy_number(index)
    subject = f"toy {toy.animal}"
    texts = {
        "prompt": f"a {subject} {PLACES[where]}",
        "subject": subject,
    }

    def draw(kind: str, strength: float) -> Picture:
        drawn_toy = altered(
            toy,
            toy_number(index + 5),
            kind,
            strength,
        )
        return place(
            backdrop(where),
            draw_toy(drawn_toy, 200),
            (128, 140),
        )

    return Case(
        texts,
        {"subject": portrait(toy)},
        draw,
    )


def _sdie(index: int) -> Case:
    caption = _pick(PHOTOGRAPHS, index)
    scene = photograph(caption, mirrored=index % 3 == 1)
    toy = toy_number(index + 3)
    replaced = toy_number(index + 8)
    centre = (92 + 72 * (index % 2), 146)

    def draw(kind: str, strength: float) -> Picture:
        drawn_toy = altered(toy, replaced, kind, strength)
        edit_strength = strength if kind == "over_edited" else 0
        return place(
            overdo_edit(scene, edit_strength), draw_toy(drawn_toy, 180), centre
        )

    source = place(scene, draw_toy(replaced, 180), centre)
    conditions = {"source": source, "subject": portrait(toy)}
    return Case(
        {"subject": f"toy {toy.animal}"},
        conditions,
        draw,
    )


def _mcic(index: int) -> Case:
    where = _pick(PLACES, index)
    first = toy_number(index)
    second = toy_number(index + 5)
    first_name = f"toy {first.animal}"
    second_name = f"toy {second.animal}"
    prompt = f"a {first_name} next to a {second_name} {PLACES[where]}"
    texts = {
        "prompt": prompt,
        "concept_1": first_name,
        "concept_2": second_name,
    }
    portraits = portrait(first), portrait(second)
    side_by_side = PIL.Image.new("RGB", (2 * SIZE, SIZE))
    side_by_side.paste(portraits[0], (0, 0))
    side_by_side.paste(portraits[1], (SIZE, 0))

    def draw(kind: str, strength: float) -> Picture:
        left_toy = altered(
            first,
            toy_number(index + 10),
            kind,
            strength,
        )
        picture = place(
            backdrop(where),
            draw_toy(left_toy, 140),
            (68, 160),
        )
        right_toy = altered(
            second,
            toy_number(index + 15),
            kind,
            strength,
        )
        opacity = 1 - strength if kind == "missing_object" else 1
        return place(
            picture,
            draw_toy(right_toy, 140),
            (188, 160),
            opacity,
        )

    conditions = {
        "concepts": side_by_side,
        "concept_1": portraits[0],
        "concept_2": portraits[1],
    }
    return Case(texts, conditions, draw)


def _shapes(index: int) -> Shapes:
    """Four different things with four different colours."""
    numbers = range(index, index + 4)
    return tuple((THINGS[number % 8], HUES[number * 2 % 7]) for number in numbers)


def _arranged(
    where: str,
    shapes: Shapes,
    centres: tuple[tuple[int, int], ...],
    wrong_colour_strength: float = 0,
) -> Picture:
    picture = backdrop(where)
    for (shape, colour), centre in zip(shapes, centres, strict=True):
        picture = place(
            picture,
            draw_thing(shape, _wrong_colour(colour, wrong_colour_strength), 110),
            centre,
        )
    return picture


def _wrong_colour(colour: str, strength: float) -> Rgb:
    return blend(
        COLOURS[colour],
        COLOURS[_other_hue(colour)],
        strength,
    )


def _other_hue(colour: str) -> str:
    """The colour three further on in the list of names."""
    return HUES[(HUES.index(colour) + 3) % 7]


def _pick(names: Iterable[str], index: int) -> str:
    known_names = tuple(names)
    return known_names[index % len(known_names)]


_CASES: dict[str, Callable[[int], Case]] = {
    "tig": _tig,
    "mie": _mie,
    "tie": _tie,
    "sdig": _sdig,
    "sdie": _sdie,
    "mcic": _mcic,
    "cig": _cig,
}


def case(task: str, index: int) -> Case:
    """The instruction of a task with that number, from 0."""
    return _CASES[task](index)
