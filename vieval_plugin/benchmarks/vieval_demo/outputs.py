"""The synthetic benchmark's samples, drawn."""

from __future__ import annotations

import io
import zlib

import PIL.Image

from vieval_plugin.benchmarks.benchmark import known_part
from vieval_plugin.benchmarks.vieval_demo.plan import (
    IMAGE_MODELS,
    NAME,
    TASKS,
    defects,
    ratings,
    uids,
)
from vieval_plugin.benchmarks.vieval_demo.scenes import case
from vieval_plugin.benchmarks.vieval_demo.spoiling import spoil
from vieval_plugin.judges.protocol import Image, Sample, SampleId


def samples(part: str) -> list[Sample]:
    """The 48 samples of a part, by uid and then image model, their images drawn now and held as PNG
    files in memory.

    Args:
        part: one of the seven codes in `TASKS`.

    Returns:
        Samples of 256 x 256 pixels with the ratings of one synthetic rater: SC is 1 - the content
        defect's strength, PQ 1 - the quality defect's, both to the nearest quarter as people rate
        coarsely, and O the root of their product.

    Raises:
        VievalError: there is no such part, or scikit-image (for its photographs) is not installed.
    """
    known_part(NAME, TASKS, part)
    rendered_samples = []
    for index, uid in enumerate(uids()):
        instruction = case(part, index)
        conditions = {
            role: png(picture) for role, picture in instruction.conditions.items()
        }
        for image_model in IMAGE_MODELS:
            sample_id = SampleId(NAME, part, image_model, uid)
            defect = defects(sample_id)
            picture = instruction.draw(defect.content, defect.content_strength)
            seed = zlib.crc32(str(sample_id).encode())
            picture = spoil(
                picture,
                defect.quality,
                defect.quality_strength,
                seed,
            )
            images = {**conditions, "output": png(picture)}
            rendered_samples.append(
                Sample(
                    sample_id,
                    images,
                    instruction.texts,
                    ratings(defect),
                    kind=part,
                )
            )
    return rendered_samples


def png(picture: PIL.Image.Image) -> Image:
    """A picture as a PNG file in memory."""
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=2)  # a third of the time for 5% more bytes
    return Image(file.getvalue())
