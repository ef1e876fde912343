"""Which pixel judge sees which collapse of a generator, by the test of a gate's positive control.

    python -m bench.collapses

20 crops of scikit-image's photographs, with noise and after JPEG, are compared with the crops
themselves before and after they are spoilt. A fall is seen if the upper end of its 95% interval is
below -.05.
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageFilter
from skimage import data

from bench.common import table
from vieval_plugin.backends.metrics.pixel_metrics import METRICS
from vieval_plugin.judges.auto_metrics import METRICS as JUDGES
from vieval_plugin.stats.non_inferiority import control_change

SIDE = 128
CROPS = 20
MARGIN = 0.05
HOLE = 48
NAMES = ("ssim", "psnr", "sharpness")


def crops(rng: np.random.Generator) -> list[Image.Image]:
    """Crops of photographs."""
    photos = [
        data.astronaut(),
        data.coffee(),
        data.chelsea(),
        data.rocket(),
    ]
    pictures = []
    for number in range(CROPS):
        photo = photos[number % len(photos)]
        height, width = photo.shape[:2]
        top = rng.integers(height - SIDE)
        left = rng.integers(width - SIDE)
        pixels = photo[top : top + SIDE, left : left + SIDE]
        pictures.append(Image.fromarray(pixels))
    return pictures


def with_noise(picture: Image.Image, rng: np.random.Generator) -> Image.Image:
    """A picture with noise, after JPEG."""
    noisy = np.asarray(picture) + rng.normal(0, 3, (SIDE, SIDE, 3))
    file = io.BytesIO()
    pixels = np.clip(noisy, 0, 255).astype("uint8")
    Image.fromarray(pixels).save(file, "JPEG", quality=90)
    return Image.open(file).convert("RGB")


def without_object(picture: Image.Image) -> Image.Image:
    """A picture whose middle has its mean colour."""
    colour = picture.resize((1, 1)).getpixel((0, 0))
    patch = Image.new("RGB", (HOLE, HOLE), colour)
    corner = (SIDE - HOLE) // 2
    emptied = picture.copy()
    emptied.paste(patch, (corner, corner))
    return emptied


def noise_picture(rng: np.random.Generator) -> Image.Image:
    pixels = rng.integers(0, 256, (SIDE, SIDE, 3), dtype="uint8")
    return Image.fromarray(pixels)


def with_exchanged_colours(picture: Image.Image) -> Image.Image:
    exchanged = np.asarray(picture)[:, :, [2, 0, 1]]
    return Image.fromarray(exchanged.copy())


def collapses(
    pictures: list[Image.Image], rng: np.random.Generator
) -> dict[str, list[Image.Image]]:
    """The pictures spoilt in each way."""
    blur = ImageFilter.GaussianBlur(2)
    return {
        "black": [Image.new("RGB", (SIDE, SIDE)) for _ in pictures],
        "noise": [noise_picture(rng) for _ in pictures],
        "wrong prompt": [*pictures[1:], pictures[0]],
        "blur": [picture.filter(blur) for picture in pictures],
        "colours exchanged": list(map(with_exchanged_colours, pictures)),
        "object missing": list(map(without_object, pictures)),
    }


def scores(
    name: str, pictures: list[Image.Image], references: list[Image.Image]
) -> list[float]:
    """Scores of pictures by a pixel judge."""
    [judge] = [judge for judge in JUDGES if judge.name == name]
    values = []
    for picture, reference in zip(pictures, references, strict=True):
        images = {
            "image": np.asarray(picture),
            "reference": np.asarray(reference),
        }
        value = METRICS[name](images)
        values.append(judge.to_score(value))
    return values


def main() -> None:
    rng = np.random.default_rng(0)
    references = crops(rng)
    pictures = [with_noise(picture, rng) for picture in references]
    spoilt = collapses(pictures, rng)
    rows = []
    for name in NAMES:
        intact = scores(name, pictures, references)
        cells = []
        for collapsed in spoilt.values():
            after = scores(name, collapsed, references)
            if np.isnan(after).any():
                cells.append("no score")
                continue
            change = control_change(intact, after)
            cell = f"{change.value:+.2f} [{change.low:+.2f}, {change.high:+.2f}]"
            if change.high < -MARGIN:
                cell += " seen"
            cells.append(cell)
        rows.append([name, *cells])
    table(["judge", *spoilt], rows)


if __name__ == "__main__":
    main()
