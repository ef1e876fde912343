"""Drawn backgrounds that vieval_small is trained on, in any number.

Each sort is a function of a random state to a picture of 256 x 256 pixels.
"""

from __future__ import annotations

import numpy as np
import PIL.Image
import PIL.ImageDraw
from scipy.ndimage import gaussian_filter

from bench.vieval_small.photographs import joined, patchwork
from bench.vieval_small.synthetic.grounds import Ground, colour
from bench.vieval_small.synthetic.quality import picture_of
from vieval_plugin.benchmarks.vieval_demo.drawing import SIZE, Picture


def landscape(rng: np.random.RandomState) -> Picture:
    """A sky and a ground that run into other colours, and what is seen in the one, on the other, and where they meet."""
    horizon = int(SIZE * rng.uniform(0.3, 0.7))
    sky, skyline, ground, front = (np.array(colour(rng), float) for _ in range(4))
    skyline, front = (sky + skyline) / 2, (ground + front) / 2
    column = np.concatenate([np.linspace(sky, skyline, horizon), np.linspace(ground, front, SIZE - horizon)])
    canvas = picture_of(np.repeat(column[:, None], SIZE, axis=1)).resize((2 * SIZE, 2 * SIZE))
    pen = PIL.ImageDraw.Draw(canvas)
    _above(pen, 2 * horizon, rng)
    for scenery in (_hills, _row, _water):
        if rng.random_sample() < 0.4:
            scenery(pen, 2 * horizon, ground, rng)
    _strewn(pen, 2 * horizon, front, rng)
    return canvas.reduce(2)


def _above(pen: PIL.ImageDraw.ImageDraw, horizon: int, rng: np.random.RandomState) -> None:
    """A sun, clouds of a few discs each, and stars or birds."""
    if rng.random_sample() < 0.3:
        _disc(pen, rng.uniform(0, 2 * SIZE), rng.uniform(20, 160), rng.uniform(20, 60), colour(rng))
    if rng.random_sample() < 0.4:
        pale = tuple(int(v) for v in 255 - rng.uniform(0, 60, 3))
        for _ in range(rng.randint(1, 5)):
            x, y, r = rng.uniform(0, 2 * SIZE), rng.uniform(20, horizon), rng.uniform(12, 40)
            for step in range(rng.randint(2, 6)):
                _disc(pen, x + step * r, y + rng.uniform(-r, r) / 2, r * rng.uniform(0.6, 1.1), pale)
    if rng.random_sample() < 0.4:
        dot = (250, 245, 230) if rng.random_sample() < 0.6 else colour(rng)
        for x, y, r in rng.uniform((0, 0, 1), (2 * SIZE, horizon, 4), (rng.randint(20, 140), 3)):
            _disc(pen, x, y, r, dot)


def _hills(pen: PIL.ImageDraw.ImageDraw, horizon: int, ground: np.ndarray, rng: np.random.RandomState) -> None:
    for _ in range(rng.randint(1, 4)):
        x, y, r = rng.uniform(-60, 572), horizon + rng.uniform(0, 60), rng.uniform(60, 260)
        pen.ellipse((x - r, y - r / 3, x + r, y + r), fill=_toned(ground, rng.uniform(0.7, 1.2)))


def _row(pen: PIL.ImageDraw.ImageDraw, horizon: int, ground: np.ndarray, rng: np.random.RandomState) -> None:
    """Trees or houses side by side."""
    fill, wide, pointed = colour(rng), rng.uniform(20, 90), rng.random_sample() < 0.6
    for left in np.arange(-20, 2 * SIZE, wide * rng.uniform(0.7, 1.3)):
        top, right = horizon - wide * rng.uniform(0.6, 2), left + wide
        peak = [((left + right) / 2, top)] if pointed else [(left, top), (right, top)]
        pen.polygon([(left, horizon + 4), *peak, (right, horizon + 4)], fill=fill)


def _water(pen: PIL.ImageDraw.ImageDraw, horizon: int, ground: np.ndarray, rng: np.random.RandomState) -> None:
    fill = colour(rng)
    foam = _toned(np.array(fill, float), rng.uniform(1.1, 1.8))
    high, long_ = int(rng.uniform(20, 90)), int(rng.uniform(30, 90))
    pen.rectangle((0, horizon - high, 2 * SIZE, horizon), fill=fill)
    for crest in range(horizon - high + 8, horizon, int(rng.randint(8, 20))):
        for start in range(int(rng.randint(-long_, 0)), 2 * SIZE, long_):
            pen.arc((start, crest - 6, start + long_ * 0.7, crest + 8), 200, 340, fill=foam, width=3)


def _strewn(pen: PIL.ImageDraw.ImageDraw, horizon: int, front: np.ndarray, rng: np.random.RandomState) -> None:
    """Grass, pebbles or the like, of one tone or of many."""
    length, lean, tone, vary = rng.uniform(4, 30), rng.uniform(-1, 1), rng.uniform(0.5, 1.4), rng.uniform(0, 0.4)
    hue, wide = front * tone + rng.standard_normal(3) * 12, int(rng.randint(2, 5))
    dots = rng.random_sample() < 0.3
    for x, y, light in rng.uniform((0, horizon, 1 - vary), (2 * SIZE, 2 * SIZE, 1 + vary), (rng.randint(0, 600), 3)):
        if dots:
            pen.ellipse((x, y, x + 4, y + 3), fill=_toned(hue, light))
        else:
            pen.line((x, y, x + length * lean, y - length * (1 - abs(lean))), fill=_toned(hue, light), width=wide)


def _disc(pen: PIL.ImageDraw.ImageDraw, x: float, y: float, r: float, fill: tuple[int, ...]) -> None:
    pen.ellipse((x - r, y - r, x + r, y + r), fill=fill)


def _toned(colour: np.ndarray, light: float) -> tuple[int, int, int]:
    red, green, blue = np.clip(colour * light, 0, 255)
    return int(red), int(green), int(blue)


def leaves(rng: np.random.RandomState) -> Picture:
    """Shapes of all sizes over each other, whose statistics are near those of photographs (dead leaves)."""
    canvas = PIL.Image.new("RGB", (SIZE, SIZE), colour(rng))
    pen = PIL.ImageDraw.Draw(canvas)
    base, spread = np.array(colour(rng), float), rng.uniform(20, 110)
    for r in sorted(6 / rng.uniform(0.05, 1, 220), reverse=True):
        x, y = rng.uniform(0, SIZE, 2)
        fill = tuple(int(v) for v in np.clip(base + rng.standard_normal(3) * spread, 0, 255))
        if rng.random_sample() < 0.5:
            pen.ellipse((x - r, y - r * rng.uniform(0.4, 1), x + r, y + r), fill=fill)
        else:
            pen.polygon([tuple(np.array([x, y]) + rng.uniform(-r, r, 2)) for _ in range(4)], fill=fill)
    texture = gaussian_filter(rng.standard_normal((SIZE, SIZE, 1)), (1, 1, 0)) * rng.uniform(0, 30)
    return picture_of(gaussian_filter(np.asarray(canvas, float), (0.7, 0.7, 0)) + texture)


def clouds(rng: np.random.RandomState) -> Picture:
    """Noise of all scales between a few colours."""
    octaves = [2**-k * _grown(rng.standard_normal((2 ** (k + 2), 2 ** (k + 2), 2))) for k in range(6)]
    heights = sum(octaves)
    heights = (heights - heights.min()) / (heights.max() - heights.min())
    one, two, three = (np.array(colour(rng), float) for _ in range(3))
    a, b = heights[..., :1], heights[..., 1:]
    return picture_of((one * (1 - a) + two * a) * (1 - b) + three * b)


def _grown(small: np.ndarray) -> np.ndarray:
    channels = [
        np.asarray(
            PIL.Image.fromarray(small[..., i].astype(np.float32)).resize((SIZE, SIZE), PIL.Image.Resampling.BICUBIC)
        )
        for i in range(small.shape[-1])
    ]
    return np.stack(channels, -1)


def interior(rng: np.random.RandomState) -> Picture:
    """A wall with stripes or plain, a floor of boards or tiles, and furniture of boxes."""
    canvas = PIL.Image.new("RGB", (SIZE, SIZE), colour(rng))
    pen = PIL.ImageDraw.Draw(canvas)
    stripe, wide = colour(rng), int(rng.randint(8, 40))
    if rng.random_sample() < 0.6:
        for x in range(0, SIZE, 2 * wide):
            pen.rectangle((x, 0, x + int(wide * 0.6), SIZE), fill=stripe)
    floor = int(rng.uniform(0.5, 0.8) * SIZE)
    pen.rectangle((0, floor, SIZE, SIZE), fill=colour(rng))
    line, board, long_ = colour(rng), int(rng.randint(8, 24)), int(rng.randint(50, 200))
    for y in range(floor, SIZE, board):
        pen.line((0, y, SIZE, y), fill=line)
        for x in range(int(rng.randint(-long_, 0)), SIZE, long_):
            pen.line((x, y, x, y + board), fill=line)
    for _ in range(rng.randint(0, 5)):
        left, top, w, h = rng.uniform(-20, 220), rng.uniform(20, 170), rng.uniform(20, 90), rng.uniform(20, 90)
        pen.rectangle((left, top, left + w, top + h), fill=colour(rng), outline=(40, 36, 40))
    return canvas


def fur(rng: np.random.RandomState) -> Picture:
    """Strokes that lie side by side as hair does, in directions that change slowly."""
    base, vary = np.array(colour(rng), float), rng.uniform(8, 45)
    canvas = PIL.Image.new("RGB", (2 * SIZE, 2 * SIZE), tuple(int(v) for v in base))
    pen = PIL.ImageDraw.Draw(canvas)
    turns = _grown(rng.standard_normal((4, 4, 2))) * rng.uniform(0.3, 1.5) + rng.uniform(-2, 2, 2)
    length, wide = rng.uniform(14, 50), int(rng.randint(2, 6))
    tones = np.clip(base + rng.standard_normal((1400, 1)) * vary + rng.standard_normal((1400, 3)) * 6, 0, 255)
    for (x, y), tone in zip(rng.randint(0, 2 * SIZE, (1400, 2)), tones.astype(int), strict=True):
        across, down = turns[y // 2, x // 2]
        far = length / (np.hypot(across, down) + 1e-6)
        pen.line((x, y, x + far * across, y + far * down), fill=tuple(int(v) for v in tone), width=wide)
    return canvas.reduce(2)


TRAINED: tuple[Ground, ...] = (landscape, landscape, interior, interior, leaves, clouds, fur, joined, patchwork)
