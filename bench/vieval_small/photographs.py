"""Photographs that vieval_small is trained on, as packages ship them, in any number of lights and colours.

Those of scikit-image are CC0 or in the public domain (its file data/README.txt), those of scikit-learn CC BY 2.0 (china.jpg by
danielbuechele, flower.jpg by vultilion, its file datasets/images/README.txt); that of Matplotlib (Grace Hopper, United States
Navy) and that of PyWavelets (ascent, public-domain-image.com) are in the public domain.
"""

from __future__ import annotations

import numpy as np
import PIL.Image
import PIL.ImageDraw

from bench.vieval_small.synthetic.photographs import square
from bench.vieval_small.synthetic.quality import picture_of
from vieval_plugin.benchmarks.vieval_demo.drawing import SIZE, Picture

TRAINED: dict[str, str] = {
    "coins on a table": "skimage/data/coins.png",
    "a brick wall": "skimage/data/brick.png",
    "gravel": "skimage/data/gravel.png",
    "grass": "skimage/data/grass.png",
    "a motorcycle in a workshop": "skimage/data/motorcycle_left.png",
    "a printed page": "skimage/data/page.png",
    "a hand drawn sign": "skimage/data/text.png",
    "a temple before the sky": "sklearn/datasets/images/china.jpg",
    "a red flower": "sklearn/datasets/images/flower.jpg",
    "an admiral in uniform": "matplotlib/mpl-data/sample_data/grace_hopper.jpg",
    "people on a staircase": "pywt/data/ascent.npz",
}
_NATURAL = tuple(
    file for file in TRAINED.values() if file.rpartition("/")[2] not in ("page.png", "text.png", "gravel.png")
)


def developed(file: str, rng: np.random.RandomState) -> Picture:
    """A random square of a photograph in other light and colours: as good a photograph, and another."""
    picture = square(file, rng.uniform(0.4, 1), rng)
    if rng.random_sample() < 0.3:
        return picture
    if rng.random_sample() < 0.2:
        picture = picture.rotate(90 * int(rng.randint(1, 4)))
    pixels = np.asarray(picture, np.float32) / 255
    if rng.random_sample() < 0.4:  # other colours, each a mixture of what was there
        mixture = np.eye(3)[rng.permutation(3)] + rng.uniform(-0.25, 0.25, (3, 3))
        pixels = np.clip(pixels @ (mixture / mixture.sum(0)).astype(np.float32), 0, 1)
    grey = pixels.mean(-1, keepdims=True)
    pixels = grey + (pixels - grey) * rng.uniform(0.2, 1.5)
    pixels = np.clip(pixels * (1 + rng.uniform(-0.15, 0.15, 3)), 0, 1) ** np.exp(rng.uniform(-0.5, 0.5))
    contrast = rng.uniform(0.7, 1.15)
    return picture_of(255 * (0.5 + (pixels - 0.5) * contrast) + rng.uniform(-20, 20))


def joined(rng: np.random.RandomState) -> Picture:
    """Two photographs in one picture, one before the other or beside it."""
    front, behind = (developed(_NATURAL[rng.randint(len(_NATURAL))], rng) for _ in range(2))
    mask = PIL.Image.new("L", (SIZE, SIZE))
    pen = PIL.ImageDraw.Draw(mask)
    if rng.random_sample() < 0.5:
        x, y, r = rng.uniform(40, 216), rng.uniform(40, 216), rng.uniform(50, 120)
        pen.ellipse((x - r, y - r * rng.uniform(0.5, 1.2), x + r, y + r), fill=255)
    else:
        pen.polygon([(0, rng.uniform(0, SIZE)), (SIZE, rng.uniform(0, SIZE)), (SIZE, SIZE), (0, SIZE)], fill=255)
    return PIL.Image.composite(front, behind, mask)


def patchwork(rng: np.random.RandomState) -> Picture:
    """Shapes of all sizes over each other (dead leaves), each cut from a photograph."""
    stuffs = [developed(_NATURAL[rng.randint(len(_NATURAL))], rng) for _ in range(3)]
    canvas = stuffs[0].copy()
    for r in sorted(8 / rng.uniform(0.06, 1, 40), reverse=True):
        mask = PIL.Image.new("L", (SIZE, SIZE))
        pen = PIL.ImageDraw.Draw(mask)
        x, y = rng.uniform(0, SIZE, 2)
        if rng.random_sample() < 0.5:
            pen.ellipse((x - r, y - r * rng.uniform(0.4, 1), x + r, y + r), fill=255)
        else:
            pen.polygon([tuple(np.array([x, y]) + rng.uniform(-r, r, 2)) for _ in range(4)], fill=255)
        stuff = stuffs[rng.randint(3)]
        turned = stuff.transpose(PIL.Image.Transpose(int(rng.randint(7))))
        canvas.paste(turned, (0, 0), mask)
    return canvas
