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

SIDE, CROPS, MARGIN, HOLE = 128, 20, 0.05, 48
NAMES = ("ssim", "psnr", "sharpness")


def crops(rng: np.random.Generator) -> list[Image.Image]:
    """Crops of photographs."""
    photos = [data.astronaut(), data.coffee(), data.chelsea(), data.rocket()]
    drawn = []
    for number in range(CROPS):
        photo = photos[number % len(photos)]
        y, x = (rng.integers(length - SIDE) for length in photo.shape[:2])
        drawn.append(Image.fromarray(photo[y : y + SIDE, x : x + SIDE]))
    return drawn


def with_noise(picture: Image.Image, rng: np.random.Generator) -> Image.Image:
    """A picture with noise, after JPEG."""
    noisy = np.asarray(picture) + rng.normal(0, 3, (SIDE, SIDE, 3))
    file = io.BytesIO()
    pixels = np.clip(noisy, 0, 255).astype("uint8")
    Image.fromarray(pixels).save(file, "JPEG", quality=90)
    return Image.open(file).convert("RGB")


def without_object(picture: Image.Image) -> Image.Image:
    """A picture whose middle has its mean colour."""
    spoilt, corner = picture.copy(), (SIDE - HOLE) // 2
    colour = picture.resize((1, 1)).getpixel((0, 0))
    spoilt.paste(Image.new("RGB", (HOLE, HOLE), colour), (corner, corner))
    return spoilt


def collapses(
    pictures: list[Image.Image], rng: np.random.Generator
) -> dict[str, list[Image.Image]]:
    """The pictures spoilt in each way."""
    shape = (SIDE, SIDE, 3)
    return {
        "black": [Image.new("RGB", (SIDE, SIDE)) for _ in pictures],
        "noise": [
            Image.fromarray(rng.integers(0, 256, shape, dtype="uint8"))
            for _ in pictures
        ],
        "wrong prompt": [*pictures[1:], pictures[0]],
        "blur": [p.filter(ImageFilter.GaussianBlur(2)) for p in pictures],
        "colours exchanged": [
            Image.fromarray(np.asarray(p)[:, :, [2, 0, 1]].copy()) for p in pictures
        ],
        "object missing": [without_object(p) for p in pictures],
    }


def main() -> None:
    rng = np.random.default_rng(0)
    references = crops(rng)
    pictures = [with_noise(picture, rng) for picture in references]
    spoilt = collapses(pictures, rng)
    to_score = {judge.name: judge.to_score for judge in JUDGES}

    def scores(name: str, judged: list[Image.Image]) -> list[float]:
        return [
            to_score[name](
                METRICS[name](
                    {"image": np.asarray(picture), "reference": np.asarray(reference)}
                )
            )
            for picture, reference in zip(judged, references, strict=True)
        ]

    rows = []
    for name in NAMES:
        cells = []
        for way in spoilt.values():
            after = scores(name, way)
            if np.isnan(after).any():
                cells.append("no score")
                continue
            change = control_change(scores(name, pictures), after)
            ends = f"{change.value:+.2f} [{change.low:+.2f}, {change.high:+.2f}]"
            cells.append(f"{ends}{' seen' * (change.high < -MARGIN)}")
        rows.append([name, *cells])
    table(["judge", *spoilt], rows)


if __name__ == "__main__":
    main()
