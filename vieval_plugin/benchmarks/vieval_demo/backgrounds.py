"""The synthetic benchmark's backgrounds: four drawn places, and photographs.

The photographs are five that scikit-image ships inside its package, all CC0 or in the public
domain. They are read from that folder and not through its functions, which would download a file
they do not find.
"""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageColor
import PIL.ImageDraw
import PIL.ImageOps

from vieval_plugin.benchmarks.vieval_demo.drawing import SIZE, Picture
from vieval_plugin.benchmarks.vieval_demo.plan import NAME
from vieval_plugin.text.errors import VievalError, install_advice

#: Each place and how a prompt says it.
PLACES: dict[str, str] = {
    "meadow": "in a green meadow",
    "beach": "on a sandy beach",
    "night": "in the snow at night",
    "room": "in a room with a wooden floor",
}

#: What each photograph shows -> its file in scikit-image, and the square that is used of it.
PHOTOGRAPHS: dict[str, tuple[str, tuple[int, int, int, int]]] = {
    "an astronaut in an orange suit beside a flag": ("astronaut.png", (0, 0, 512, 512)),
    "the face of a tabby cat": ("chelsea.png", (60, 0, 360, 300)),
    "a cup of coffee on a red saucer": ("coffee.png", (120, 0, 520, 400)),
    "a man behind a camera on a tripod": ("camera.png", (60, 20, 512, 472)),
    "a rocket on its launch pad at dusk": ("rocket.jpg", (110, 0, 537, 427)),
}

_CANVAS = SIZE * 2
_HORIZON = int(_CANVAS * 0.52)


@lru_cache(maxsize=16)
def photograph(caption: str, mirrored: bool = False) -> Picture:
    """Draw one of `PHOTOGRAPHS` at the benchmark's size.

    Raises:
        VievalError: scikit-image, whose photographs these are, is not installed or not whole.
    """
    file, square = PHOTOGRAPHS[caption]
    package = importlib.util.find_spec("skimage")
    if package is None or package.origin is None:
        raise VievalError(
            f"{NAME} uses photographs from scikit-image; {install_advice('metrics')}"
        )
    path = Path(package.origin).parent / "data" / file
    if not path.is_file():
        raise VievalError(f"{path} is missing; reinstall scikit-image (0.22 or later)")
    with PIL.Image.open(path) as opened:
        picture = opened.convert("RGB").resize(
            (SIZE, SIZE),
            PIL.Image.Resampling.LANCZOS,
            box=square,
        )
    return PIL.ImageOps.mirror(picture) if mirrored else picture


@lru_cache(maxsize=4)
def backdrop(name: str) -> Picture:
    """Draw one of `PLACES`, empty: sky or wall above the middle, ground below."""
    draw = {
        "meadow": _meadow,
        "beach": _beach,
        "night": _night,
        "room": _room,
    }[name]
    return draw(random.Random(name)).resize(
        (SIZE, SIZE),
        PIL.Image.Resampling.LANCZOS,
    )


def _meadow(rng: random.Random) -> Picture:
    canvas = _two_gradients(
        "#6eb4f0",
        "#d7ebfa",
        "#82be5a",
        "#468c32",
    )
    pen = PIL.ImageDraw.Draw(canvas)
    for left, top in ((90, 80), (330, 50), (430, 120)):
        for dx, dy, radius in (
            (-28, 6, 20),
            (0, 0, 28),
            (30, 6, 22),
        ):
            sides = _circle_box(left + dx, top + dy, radius)
            pen.ellipse(sides, fill="#fafcff")
    pen.ellipse((-120, 215, 260, 400), fill="#69a555")
    pen.ellipse((200, 230, 640, 420), fill="#78b258")
    for _ in range(420):
        foot = rng.random() * _CANVAS
        ground = _HORIZON + 30 + rng.random() * (_CANVAS - _HORIZON - 30)
        pen.line(
            (
                foot,
                ground,
                foot + rng.random() * 8 - 4,
                ground - 12,
            ),
            fill=(
                60,
                int(115 + 55 * rng.random()),
                45,
            ),
            width=3,
        )
    return canvas


def _beach(rng: random.Random) -> Picture:
    canvas = _two_gradients(
        "#82c8f0",
        "#f0f0e1",
        "#ecd496",
        "#debc78",
    )
    pen = PIL.ImageDraw.Draw(canvas)
    pen.ellipse((380, 30, 450, 100), fill="#ffeb78")
    pen.rectangle((0, 200, _CANVAS, _HORIZON + 10), fill="#2d82aa")
    for crest in range(212, _HORIZON + 10, 14):
        for start in range(
            int(rng.random() * 40) - 40,
            _CANVAS,
            60,
        ):
            pen.arc(
                (
                    start,
                    crest - 6,
                    start + 40,
                    crest + 8,
                ),
                200,
                340,
                fill="#c8e6f0",
                width=3,
            )
    for x, y in _ground_points(rng, 600, 14):
        pen.ellipse((x, y, x + 4, y + 3), fill="#be965a")
    return canvas


def _night(rng: random.Random) -> Picture:
    canvas = _two_gradients(
        "#0c1032",
        "#323c78",
        "#e1e8f5",
        "#b9c6e1",
    )
    pen = PIL.ImageDraw.Draw(canvas)
    for _ in range(110):
        x = rng.random() * _CANVAS
        y = rng.random() * _HORIZON * 0.9
        radius = 1 + rng.random() * 2
        pen.ellipse(_circle_box(x, y, radius), fill="#fffadc")
    pen.ellipse((400, 40, 460, 100), fill="#faf5d7")
    for left in range(-20, _CANVAS, 46):
        top = _HORIZON - 46 - rng.random() * 40
        pen.polygon(
            (
                left,
                _HORIZON + 4,
                left + 28,
                top,
                left + 56,
                _HORIZON + 4,
            ),
            fill="#192d37",
        )
    for x, y in _ground_points(rng, 160, 16):
        pen.line((x, y, x + 14, y), fill="#a5b4d4", width=3)
    return canvas


def _room(rng: random.Random) -> Picture:
    canvas = _two_gradients(
        "#cdd4cd",
        "#bec8c0",
        "#ac7648",
        "#8c5c36",
    )
    pen = PIL.ImageDraw.Draw(canvas)
    for stripe in range(0, _CANVAS, 44):
        pen.rectangle((stripe, 0, stripe + 14, _HORIZON), fill="#d8ded6")
    pen.rectangle((0, _HORIZON - 14, _CANVAS, _HORIZON), fill="#f0eee6")
    for row, board in enumerate(range(_HORIZON + 4, _CANVAS, 30)):
        pen.line((0, board, _CANVAS, board), fill="#5f3c24", width=3)
        for seam in range(row * 130 % 310, _CANVAS, 310):
            pen.line((seam, board, seam, board + 30), fill="#5f3c24", width=3)
    for x, y in _ground_points(rng, 200, 6):
        pen.line((x, y, x + 24, y), fill="#98643c", width=2)
    return canvas


def _circle_box(x: float, y: float, radius: float) -> tuple[float, ...]:
    return x - radius, y - radius, x + radius, y + radius


def _ground_points(
    rng: random.Random, count: int, depth: int
) -> Iterator[tuple[float, float]]:
    """Random points of the ground, at least so far below the horizon."""
    for _ in range(count):
        x = rng.random() * _CANVAS
        yield x, _HORIZON + depth + rng.random() * (_CANVAS - _HORIZON)


def _two_gradients(sky: str, skyline: str, ground: str, foreground: str) -> Picture:
    """A canvas whose upper half runs from `sky` to `skyline` and whose lower half from `ground`
    to `foreground`.
    """
    names = (sky, skyline, ground, foreground)
    top, middle, edge, bottom = map(PIL.ImageColor.getrgb, names)
    upper = np.linspace(top, middle, _HORIZON)
    lower = np.linspace(edge, bottom, _CANVAS - _HORIZON)
    column = np.concatenate([upper, lower]).round().astype(np.uint8)
    pixels = np.repeat(
        column[:, None, :],
        _CANVAS,
        axis=1,
    )
    return PIL.Image.fromarray(pixels)
