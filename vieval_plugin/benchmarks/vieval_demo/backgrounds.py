"""The synthetic benchmark's backgrounds: four drawn places, and photographs.

The photographs are five that scikit-image ships inside its package, all CC0 or in the public
domain. They are read from that folder and not through its functions, which would download a file
they do not find.
"""

from __future__ import annotations

import importlib.util
import random
from functools import lru_cache
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageDraw
import PIL.ImageOps

from vieval_plugin.benchmarks.vieval_demo.drawing import SIZE, Picture, Rgb
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
    return draw(random.Random(name)).resize((SIZE, SIZE), PIL.Image.Resampling.LANCZOS)


def _meadow(rng: random.Random) -> Picture:
    canvas = _two_gradients(
        (110, 180, 240),
        (215, 235, 250),
        (130, 190, 90),
        (70, 140, 50),
    )
    pen = PIL.ImageDraw.Draw(canvas)
    for left, top in ((90, 80), (330, 50), (430, 120)):
        for dx, dy, radius in ((-28, 6, 20), (0, 0, 28), (30, 6, 22)):
            centre_x = left + dx
            centre_y = top + dy
            corners = (
                centre_x - radius,
                centre_y - radius,
                centre_x + radius,
                centre_y + radius,
            )
            pen.ellipse(corners, fill=(250, 252, 255))
    pen.ellipse((-120, 215, 260, 400), fill=(105, 165, 85))
    pen.ellipse((200, 230, 640, 420), fill=(120, 178, 88))
    for _ in range(420):
        x = rng.random() * _CANVAS
        y = _HORIZON + 30 + rng.random() * (_CANVAS - _HORIZON - 30)
        pen.line(
            (x, y, x + rng.random() * 8 - 4, y - 12),
            fill=(60, int(115 + 55 * rng.random()), 45),
            width=3,
        )
    return canvas


def _beach(rng: random.Random) -> Picture:
    canvas = _two_gradients(
        (130, 200, 240),
        (240, 240, 225),
        (236, 212, 150),
        (222, 188, 120),
    )
    pen = PIL.ImageDraw.Draw(canvas)
    pen.ellipse((380, 30, 450, 100), fill=(255, 235, 120))
    pen.rectangle((0, 200, _CANVAS, _HORIZON + 10), fill=(45, 130, 170))
    for crest in range(212, _HORIZON + 10, 14):
        for start in range(int(rng.random() * 40) - 40, _CANVAS, 60):
            pen.arc(
                (start, crest - 6, start + 40, crest + 8),
                200,
                340,
                fill=(200, 230, 240),
                width=3,
            )
    for _ in range(600):
        x = rng.random() * _CANVAS
        y = _HORIZON + 14 + rng.random() * (_CANVAS - _HORIZON)
        pen.ellipse((x, y, x + 4, y + 3), fill=(190, 150, 90))
    return canvas


def _night(rng: random.Random) -> Picture:
    canvas = _two_gradients(
        (12, 16, 50),
        (50, 60, 120),
        (225, 232, 245),
        (185, 198, 225),
    )
    pen = PIL.ImageDraw.Draw(canvas)
    for _ in range(110):
        x = rng.random() * _CANVAS
        y = rng.random() * _HORIZON * 0.9
        radius = 1 + rng.random() * 2
        pen.ellipse(
            (x - radius, y - radius, x + radius, y + radius),
            fill=(255, 250, 220),
        )
    pen.ellipse((400, 40, 460, 100), fill=(250, 245, 215))
    for left in range(-20, _CANVAS, 46):
        top = _HORIZON - 46 - rng.random() * 40
        pen.polygon(
            (left, _HORIZON + 4, left + 28, top, left + 56, _HORIZON + 4),
            fill=(25, 45, 55),
        )
    for _ in range(160):
        x = rng.random() * _CANVAS
        y = _HORIZON + 16 + rng.random() * (_CANVAS - _HORIZON)
        pen.line((x, y, x + 14, y), fill=(165, 180, 212), width=3)
    return canvas


def _room(rng: random.Random) -> Picture:
    canvas = _two_gradients(
        (205, 212, 205),
        (190, 200, 192),
        (172, 118, 72),
        (140, 92, 54),
    )
    pen = PIL.ImageDraw.Draw(canvas)
    for stripe in range(0, _CANVAS, 44):
        pen.rectangle((stripe, 0, stripe + 14, _HORIZON), fill=(216, 222, 214))
    pen.rectangle((0, _HORIZON - 14, _CANVAS, _HORIZON), fill=(240, 238, 230))
    for row, board in enumerate(range(_HORIZON + 4, _CANVAS, 30)):
        pen.line((0, board, _CANVAS, board), fill=(95, 60, 36), width=3)
        for seam in range(row * 130 % 310, _CANVAS, 310):
            pen.line((seam, board, seam, board + 30), fill=(95, 60, 36), width=3)
    for _ in range(200):
        x = rng.random() * _CANVAS
        y = _HORIZON + 6 + rng.random() * (_CANVAS - _HORIZON)
        pen.line((x, y, x + 24, y), fill=(152, 100, 60), width=2)
    return canvas


def _two_gradients(sky: Rgb, skyline: Rgb, ground: Rgb, foreground: Rgb) -> Picture:
    """A canvas whose upper half runs from `sky` to `skyline` and whose lower half from `ground`
    to `foreground`.
    """
    upper = np.linspace(sky, skyline, _HORIZON)
    lower = np.linspace(ground, foreground, _CANVAS - _HORIZON)
    column = np.concatenate([upper, lower]).round().astype(np.uint8)
    return PIL.Image.fromarray(np.repeat(column[:, None, :], _CANVAS, axis=1))
