"""The synthetic benchmark's things: small pictures with a transparent background, drawn from a
table of shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

import PIL.Image
import PIL.ImageDraw

Picture: TypeAlias = PIL.Image.Image
Rgb: TypeAlias = tuple[int, int, int]

SIZE = 256
COLOURS: dict[str, Rgb] = {
    "red": (214, 40, 40),
    "orange": (245, 130, 35),
    "yellow": (250, 205, 40),
    "blue": (40, 90, 210),
    "green": (50, 160, 70),
    "purple": (140, 70, 175),
    "pink": (240, 130, 175),
    "white": (245, 245, 245),
}
#: Colours for things and toys; three steps on in this order is a clearly different one.
HUES = tuple(name for name in COLOURS if name != "white")
_INK = (45, 40, 45)

#: The shapes of each thing from back to front, one a line: a primitive, its colour ("main" is the
#: thing's own) and its corners, in hundredths of the thing's size.
_SHAPES_BY_THING = {
    "balloon": """
        line ink 50 74 45 86 52 99
        polygon main 50 64 42 78 58 78
        ellipse main 20 2 80 72
        ellipse white 33 14 45 28
    """,
    "house": """
        rectangle main 18 44 82 97
        polygon brown 8 47 50 8 92 47
        rectangle brown 42 66 58 97
        rectangle white 24 54 37 68
        rectangle white 63 54 76 68
    """,
    "car": """
        polygon main 24 52 34 30 68 30 80 52
        rectangle main 4 50 96 76
        polygon white 33 50 39 36 49 36 49 50
        polygon white 54 50 54 36 64 36 71 50
        ellipse ink 14 64 38 88
        ellipse ink 62 64 86 88
    """,
    "fish": """
        polygon main 70 50 98 26 98 74
        ellipse main 4 24 80 76
        line ink 30 28 37 50 30 72
        ellipse white 14 36 26 48
        ellipse ink 17 39 23 45
    """,
    "flower": """
        line leaf 50 45 50 99
        ellipse leaf 50 74 76 86
        ellipse main 35 0 65 30
        ellipse main 57 15 87 45
        ellipse main 49 40 79 70
        ellipse main 21 40 51 70
        ellipse main 13 15 43 45
        ellipse brown 36 23 64 51
    """,
    "star": """
        polygon main 50 3 62 37 97 38 69 59 79 94 50 73 21 94 31 59 3 38 38 37
    """,
    "apple": """
        line brown 50 34 55 8
        ellipse leaf 55 8 82 22
        ellipse main 10 26 62 94
        ellipse main 38 26 90 94
        plain main 34 30 66 90
        plain white 22 40 33 54
    """,
    "boat": """
        line brown 50 8 50 74
        polygon main 53 10 53 66 92 66
        polygon white 47 20 47 66 14 66
        polygon brown 4 72 96 72 80 95 20 95
    """,
    # only drawn sequences use the things below
    "tree": """
        rectangle brown 42 60 58 98
        ellipse main 14 4 86 68
    """,
    "mushroom": """
        rectangle white 38 50 62 96
        polygon main 6 54 22 20 50 6 78 20 94 54
        plain white 28 26 42 40
        plain white 56 24 72 40
    """,
    "cup": """
        ellipse white 60 36 96 72
        polygon main 10 22 76 22 66 90 20 90
        line ink 14 34 72 34
    """,
    "kite": """
        line ink 50 70 62 84 46 99
        polygon main 50 2 84 34 50 76 16 34
        line ink 50 2 50 76
        line ink 16 34 84 34
    """,
    "lamp": """
        rectangle brown 46 46 54 90
        rectangle brown 26 88 74 98
        polygon main 32 6 68 6 88 52 12 52
    """,
    "book": """
        rectangle main 14 10 86 92
        rectangle white 24 76 86 92
        rectangle white 36 24 74 42
    """,
    "clock": """
        rectangle main 12 12 88 88
        ellipse white 22 22 78 78
        line ink 50 30 50 50 66 58
    """,
    "heart": """
        plain main 6 10 54 58
        plain main 46 10 94 58
        wedge main 9 46 91 46 50 96
    """,
    "rocket": """
        polygon brown 30 60 10 92 34 84
        polygon brown 70 60 90 92 66 84
        polygon main 50 2 70 34 68 88 32 88 30 34
        ellipse white 40 34 60 54
    """,
    "shirt": """
        polygon main 30 8 70 8 98 34 84 50 74 40 74 94 26 94 26 40 16 50 2 34
    """,
    "ball": """
        ellipse main 8 8 92 92
        line ink 10 40 50 54 90 40
        line ink 50 54 50 91
    """,
    "duck": """
        polygon brown 6 30 26 24 26 40
        ellipse main 18 44 96 92
        ellipse main 18 10 56 52
        ellipse ink 30 22 38 30
    """,
    "crown": """
        polygon main 8 90 4 24 28 52 50 10 72 52 96 24 92 90
        rectangle white 10 74 90 84
    """,
    "bell": """
        ellipse ink 40 80 60 98
        polygon main 50 4 74 26 78 66 94 86 6 86 22 66 26 26
    """,
    "drum": """
        rectangle main 8 30 92 86
        ellipse white 8 14 92 46
        line ink 8 40 30 84 50 44 70 84 92 40
    """,
    "key": """
        rectangle main 44 42 56 98
        rectangle main 54 72 76 82
        rectangle main 54 88 80 98
        ellipse main 26 2 74 48
        ellipse white 40 15 60 35
    """,
    "cactus": """
        rectangle brown 28 78 72 98
        rectangle main 12 34 24 56
        rectangle main 12 50 44 60
        rectangle main 76 24 88 46
        rectangle main 56 40 88 50
        rectangle main 40 6 60 80
    """,
    "snail": """
        polygon brown 2 92 6 50 16 50 22 78 96 80 98 92
        ellipse main 24 14 92 84
        ellipse white 44 34 72 62
        ellipse main 52 42 64 54
    """,
}
THINGS = tuple(_SHAPES_BY_THING)


def add_article(colour: str) -> str:
    """The name of a colour with its article."""
    return f"an {colour}" if colour == "orange" else f"a {colour}"


def blend(a: Rgb, b: Rgb, share: float) -> Rgb:
    """The colour that is `share` (in [0, 1]) of the way from `a` to `b`."""
    red, green, blue = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return red, green, blue


@lru_cache(maxsize=256)
def draw_thing(kind: str, colour: Rgb, size: int) -> Picture:
    """Draw one of `THINGS` on a transparent square of `size` pixels."""
    return draw_shapes(
        _SHAPES_BY_THING[kind],
        {"main": colour},
        size,
    )


def place(
    background: Picture, sprite: Picture, centre: tuple[int, int], opacity: float = 1.0
) -> Picture:
    """A copy of the background with a sprite on it, its centre at the given pixel; opacity 0
    leaves nothing of it.
    """
    picture = background.copy()
    mask = sprite.getchannel("A").point(lambda alpha: alpha * opacity)
    x = centre[0] - sprite.width // 2
    y = centre[1] - sprite.height // 2
    picture.paste(
        sprite.convert("RGB"),
        (x, y),
        mask,
    )
    return picture


def draw_shapes(shapes: str, colours: Mapping[str, Rgb], size: int) -> Picture:
    """Shapes from back to front on a transparent square of `size` pixels; `colours` are those of
    its own by name.
    """
    palette = {
        "ink": _INK,
        "white": COLOURS["white"],
        "brown": (125, 80, 45),
        "leaf": (60, 140, 60),
        **colours,
    }
    side = size * 4
    canvas = PIL.Image.new("RGBA", (side, side))
    pen = PIL.ImageDraw.Draw(canvas)
    width = max(2, side // 60)
    outlined = {
        "polygon": pen.polygon,
        "rectangle": pen.rectangle,
        "ellipse": pen.ellipse,
    }
    plain = {"wedge": pen.polygon, "plain": pen.ellipse}
    for shape in filter(str.strip, shapes.splitlines()):
        primitive, name, *corners = shape.split()
        # 4% of margin, for what stands out over the edge
        xy = [(0.04 + 0.92 * float(corner) / 100) * side for corner in corners]
        fill = palette[name]
        if primitive == "line":
            pen.line(xy, fill=fill, width=width * 2)
        elif primitive in outlined:
            outlined[primitive](xy, fill=fill, outline=_INK, width=width)
        else:
            plain[primitive](xy, fill=fill)
    return canvas.reduce(4)
