"""Defects of a picture as a whole that vieval_small is trained on.

Each is a function of pixels (height, width, 3) of 0 to 255 as floats, a strength in (0, 1] and a random state. At 1 each
is about as bad as the others are, and as bad as those of `vieval_demo` get.
"""

from __future__ import annotations

import io

import numpy as np
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont
from scipy.ndimage import gaussian_filter, gaussian_filter1d, map_coordinates, uniform_filter

from bench.vieval_small.synthetic.quality import Defect, Pixels, picture_of


def noise(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    return x + rng.standard_normal(x.shape) * 60 * s


def grey_noise(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    return x + rng.standard_normal((*x.shape[:2], 1)) * 60 * s


def coarse_noise(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    grain = gaussian_filter(rng.standard_normal(x.shape), (rng.uniform(0.6, 1.6),) * 2 + (0,))
    spoilt: Pixels = x + grain / grain.std() * 50 * s
    return spoilt


def speckle(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    return x * (1 + rng.standard_normal(x.shape) * 0.5 * s)


def pepper(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    hit = rng.random_sample(x.shape[:2]) < 0.16 * s
    spots = np.where(rng.random_sample(x.shape[:2]) < 0.5, 0, 255)
    return np.where(hit[..., None], spots[..., None], x)


def blur(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    return gaussian_filter(x, (5 * s, 5 * s, 0))


def box_blur(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    wide = 1 + 15 * s
    low = int(wide) // 2 * 2 + 1
    share = (wide - low) / 2
    narrow, broad = (uniform_filter(x, (size, size, 1)) for size in (low, low + 2))
    return narrow * (1 - max(share, 0)) + broad * max(share, 0)


def motion_blur(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    turn, taps, edge = rng.uniform(0, np.pi), max(3, round(28 * s)), 16
    (height, width), wide = x.shape[:2], np.pad(x, ((edge, edge), (edge, edge), (0, 0)), mode="edge")
    total = np.zeros_like(x)
    for step in np.linspace(-14 * s, 14 * s, taps):
        top, left = edge + round(step * np.sin(turn)), edge + round(step * np.cos(turn))
        total += wide[top : top + height, left : left + width]
    return total / taps


def axis_blur(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    return gaussian_filter1d(x, 8 * s, axis=rng.randint(2))


def compressed(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    file = io.BytesIO()
    picture_of(x).save(file, "JPEG", quality=max(1, round(1 + 44 * (1 - s) ** 2)))
    return np.asarray(PIL.Image.open(file).convert("RGB"), dtype=np.float32)


def mosaic(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    height, width = x.shape[:2]
    block = 1 + 13 * s
    small = picture_of(x).resize((round(width / block), round(height / block)), PIL.Image.Resampling.BOX)
    return np.asarray(small.resize((width, height), PIL.Image.Resampling.NEAREST), dtype=np.float32)


def shrunk(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    height, width = x.shape[:2]
    block = 1 + 10 * s
    small = picture_of(x).resize((round(width / block), round(height / block)), PIL.Image.Resampling.BOX)
    how = (PIL.Image.Resampling.BILINEAR, PIL.Image.Resampling.BICUBIC)[rng.randint(2)]
    return np.asarray(small.resize((width, height), how), dtype=np.float32)


def watermark(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    height, width = x.shape[:2]
    layer = PIL.Image.new("L", (2 * width, 2 * height))
    ink = PIL.Image.new("L", layer.size)
    size = int(rng.randint(18, 42))
    font = PIL.ImageFont.load_default(size=size)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ    "
    word = "".join(letters[i] for i in rng.randint(len(letters), size=rng.randint(4, 12)))
    light, rim = (255, int(rng.randint(40, 90))) if rng.random_sample() < 0.8 else (20, int(rng.randint(160, 240)))
    across, down, shift = size * len(word) * rng.uniform(0.7, 1.1), size * rng.uniform(1.6, 2.6), rng.uniform(0, 120)
    stamp = PIL.Image.new("L", (int(font.getlength(word)) + 4, 2 * size))
    inked = stamp.copy()
    for picture, fill, stroke in ((stamp, 255, 255), (inked, light, rim)):
        PIL.ImageDraw.Draw(picture).text((2, 2), word, font=font, fill=fill, stroke_width=1, stroke_fill=stroke)
    for row in range(int(layer.height / down) + 1):
        for column in range(int(layer.width / across) + 2):
            at = (round(column * across - shift * (row % 2)), round(row * down))
            layer.paste(stamp, at, stamp)
            ink.paste(inked, at, stamp)
    turn = rng.uniform(-50, 50)
    mask, colour = (_turned(one, turn, (width, height)) for one in (layer, ink))
    share = mask / 255 * 0.85 * s
    return x * (1 - share) + colour * share


def _turned(layer: PIL.Image.Image, degrees: float, size: tuple[int, int]) -> Pixels:
    """The middle of a layer that is twice as wide and high, turned: as `rotate` and `crop` have it, in a quarter of the time."""
    cosine, sine = np.cos(-np.radians(degrees)), np.sin(-np.radians(degrees))
    x, y = (-side / 2 for side in size)
    across = (cosine, sine, cosine * x + sine * y + size[0])
    down = (-sine, cosine, -sine * x + cosine * y + size[1])
    turned = layer.transform(size, PIL.Image.Transform.AFFINE, (*across, *down), PIL.Image.Resampling.BILINEAR)
    return np.asarray(turned, dtype=np.float32)[..., None]


def ruled(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    """Lines over the whole picture, slanting or as a grid."""
    y, c = np.mgrid[0 : x.shape[0], 0 : x.shape[1]]
    pitch, wide, turn = rng.uniform(14, 40), rng.uniform(2, 6), rng.uniform(0, np.pi)
    lines = (y * np.sin(turn) + c * np.cos(turn)) % pitch < wide
    if rng.random_sample() < 0.5:
        lines |= (y * np.cos(turn) - c * np.sin(turn)) % pitch < wide
    share = lines[..., None] * 0.85 * s
    spoilt: Pixels = x * (1 - share) + rng.choice([20, 128, 250]) * share
    return spoilt


def patched(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    """Rectangles of one colour laid over up to a third of it."""
    x, (height, width) = x.copy(), x.shape[:2]
    left = 0.33 * s * height * width
    while left > 30:
        high, wide = (int(min(rng.uniform(10, 70), max(3, left**0.5))) for _ in range(2))
        top, start = rng.randint(0, height - high), rng.randint(0, width - wide)
        x[top : top + high, start : start + wide] = rng.randint(0, 256, 3) if rng.random_sample() < 0.5 else 0
        left -= high * wide
    return x


def faded(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    level = rng.uniform(60, 220)
    return x + (level - x) * 0.88 * s


def cast(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    colour = rng.randint(0, 256, 3)
    while colour.max() - colour.min() < 150:
        colour = rng.randint(0, 256, 3)
    spoilt: Pixels = x + (colour - x) * 0.75 * s
    return spoilt


def posterised(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    step = 255 / (1.2 + 14 * (1 - s) ** 2)
    return np.round(x / step) * step


def banded(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    at = np.arange(x.shape[0]) * 2 * np.pi / rng.uniform(5, 40)
    wave = np.sin(at)[:, None, None] if rng.random_sample() < 0.5 else np.sin(at)[None, : x.shape[1], None]
    return x + wave * 80 * s


def ghosted(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    turn, far = rng.uniform(0, 2 * np.pi), rng.uniform(8, 26)
    moved = np.roll(x, (round(far * np.sin(turn)), round(far * np.cos(turn))), (0, 1))
    return x + (moved - x) * 0.55 * s


def waved(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    y, c = np.mgrid[0 : x.shape[0], 0 : x.shape[1]].astype(np.float32)
    push, long_ = 9 * s, rng.uniform(14, 36)
    at = [y + push * np.sin(2 * np.pi * c / long_), c + push * np.sin(2 * np.pi * y / long_ + 1)]
    return np.stack([map_coordinates(x[..., i], at, order=1, mode="reflect") for i in range(3)], -1)


def oversharp(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    sigma = rng.uniform(1.5, 3.5)
    spoilt: Pixels = x + (x - gaussian_filter(x, (sigma, sigma, 0))) * 7 * s
    return spoilt


def overexposed(x: Pixels, s: float, rng: np.random.RandomState) -> Pixels:
    return x * (1 + 3 * s) + 30 * s if rng.random_sample() < 0.5 else x * (1 - 0.85 * s)


TRAINED: tuple[Defect, ...] = (
    noise,
    grey_noise,
    coarse_noise,
    speckle,
    pepper,
    blur,
    box_blur,
    motion_blur,
    axis_blur,
    compressed,
    mosaic,
    shrunk,
    watermark,
    ruled,
    patched,
    faded,
    cast,
    posterised,
    banded,
    ghosted,
    waved,
    oversharp,
    overexposed,
)
