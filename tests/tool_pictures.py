"""Pictures with known answers for the tools' tests."""

import numpy as np
import PIL.Image
import PIL.ImageFilter

from tests.pictures import encoded
from vieval_plugin.judges.protocol import Image


def photograph(side=1024, seed=0):
    """Something like a photograph: soft shapes of many sizes, fine grain, no pixel near white."""
    rng = np.random.default_rng(seed)
    layers = np.zeros((side, side, 3))
    for cells, weight in ((4, 90), (16, 50), (64, 25)):
        drawn = rng.integers(0, 256, (cells, cells, 3), dtype=np.uint8)
        small = PIL.Image.fromarray(drawn)
        large = small.resize((side, side), PIL.Image.Resampling.BICUBIC)
        layers += weight / 255 * np.asarray(large, dtype=float)
    return np.clip(layers + rng.normal(0, 3, layers.shape), 0, 200).astype(np.uint8)


def edited(picture, left, top, width, height):
    """The picture with every value of a rectangle moved by 120, away from its end of the range."""
    copy = picture.copy()
    part = copy[top : top + height, left : left + width]
    part[:] = np.where(part < 120, part + 120, part - 120)
    return copy


def file(pixels, format="PNG", **options):
    is_picture = isinstance(pixels, PIL.Image.Image)
    picture = pixels if is_picture else PIL.Image.fromarray(pixels)
    return Image(encoded(picture, format, **options))
