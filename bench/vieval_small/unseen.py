"""Drawn samples whose defects, things, toys and backgrounds `vieval_small` was never trained on.

They were drawn up before the training began, and nothing was chosen by them. Their ratings follow from the known
defects; nobody gave them.
"""

from __future__ import annotations

import zlib

from bench.vieval_small.synthetic.samples import several
from bench.vieval_small.synthetic.worlds import HELD_OUT
from vieval_plugin.benchmarks.vieval_demo.outputs import png
from vieval_plugin.benchmarks.vieval_demo.plan import IMAGE_MODELS, Defects, ratings
from vieval_plugin.judges.protocol import Sample, SampleId

INSTRUCTIONS = 32
SEED = 20_000


def load(part: str) -> list[Sample]:
    """The 96 samples of a task type; VievalError where scikit-image (for its photographs) is not installed."""
    samples = []
    for number, (instruction, outputs) in enumerate(
        several(HELD_OUT, part, seed_of(part), INSTRUCTIONS, len(IMAGE_MODELS))
    ):
        conditions = {role: png(picture) for role, picture in instruction.conditions.items()}
        for image_model, output in zip(IMAGE_MODELS, outputs, strict=True):
            defects = Defects(output.content, output.content_strength, output.quality, output.quality_strength)
            images = {**conditions, "output": png(output.picture)}
            sample_id = SampleId("unseen", part, image_model, f"unseen_{number:02d}.png")
            samples.append(Sample(sample_id, images, instruction.texts, ratings(defects), kind=part))
    return samples


def seed_of(part: str) -> int:
    """Seed of a task type's drawings."""
    return SEED + zlib.crc32(part.encode()) % 1000
