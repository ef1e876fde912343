"""Photographs to draw on that `vieval_demo` does not show and nothing is trained on.

They are scikit-image's, CC0 or in the public domain (its file data/README.txt).
"""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageOps

from vieval_plugin.benchmarks.vieval_demo.drawing import SIZE, Picture
from vieval_plugin.text.errors import VievalError, install_advice

HELD_OUT: dict[str, str] = {
    "galaxies far away": "skimage/data/hubble_deep_field.jpg",
    "cells of a colon, stained": "skimage/data/ihc.png",
    "the surface of the moon": "skimage/data/moon.png",
    "the back of an eye": "skimage/data/retina.jpg",
}


@lru_cache(maxsize=16)
def _opened(file: str) -> Picture:
    name, _, inside = file.partition("/")
    package = importlib.util.find_spec(name)
    path = Path(package.origin or "").parent / inside if package else Path(file)
    if not path.is_file():
        extra = "metrics" if name == "skimage" else "test"
        raise VievalError(f"{file} is missing, which drawings show; {install_advice(extra)}")
    if path.suffix == ".npz":
        with np.load(path) as archive:
            return PIL.Image.fromarray(archive["data"].astype(np.uint8)).convert("RGB")
    with PIL.Image.open(path) as opened:
        picture: Picture = opened.convert("RGB")
    return picture


def crop(file: str, rng: np.random.RandomState) -> Picture:
    """A random square of a photograph, mirrored or not."""
    return square(file, rng.uniform(0.5, 1), rng)


def square(file: str, share: float, rng: np.random.RandomState) -> Picture:
    """A random square of a photograph, mirrored or not, with that share of its shorter side."""
    photograph = _opened(file)
    side = int(min(photograph.size) * share)
    left, top = rng.randint(0, photograph.width - side + 1), rng.randint(0, photograph.height - side + 1)
    box = (left, top, left + side, top + side)
    picture = photograph.resize((SIZE, SIZE), PIL.Image.Resampling.BILINEAR, box=box, reducing_gap=2)
    return PIL.ImageOps.mirror(picture) if rng.random_sample() < 0.5 else picture
