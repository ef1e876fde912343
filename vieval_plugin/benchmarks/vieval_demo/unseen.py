"""vieval_demo_unseen: drawn samples whose defects, things, toys and backgrounds `vieval_small` was never trained on.

It was drawn up before the training began, and nothing was chosen by it. Its ratings follow from the known defects;
nobody gave them.
"""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Benchmark, known_part
from vieval_plugin.benchmarks.vieval_demo.plan import IMAGE_MODELS, TASKS, Defects, ratings
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.meta_evaluation.image_models import ByImageModel

NAME = "vieval_demo_unseen"
INSTRUCTIONS = 32
SEED = 20_000


def load(root: Path, part: str) -> list[Sample]:
    """The 96 samples of a part, drawn once a process; `root` is not used.

    Raises:
        VievalError: there is no such part, or scikit-image (for its photographs) is not installed.
    """
    known_part(NAME, TASKS, part)
    return list(_samples_of(part))


def seed_of(part: str) -> int:
    """Seed of a part's drawings."""
    return SEED + zlib.crc32(part.encode()) % 1000


@cache
def _samples_of(part: str) -> tuple[Sample, ...]:
    from vieval_plugin.benchmarks.synthetic.samples import several  # needs Pillow, SciPy and scikit-image
    from vieval_plugin.benchmarks.synthetic.worlds import HELD_OUT
    from vieval_plugin.benchmarks.vieval_demo.outputs import png

    samples = []
    drawn = several(HELD_OUT, part, seed_of(part), INSTRUCTIONS, len(IMAGE_MODELS))
    for number, (instruction, outputs) in enumerate(drawn):
        conditions = {role: png(picture) for role, picture in instruction.conditions.items()}
        for image_model, output in zip(IMAGE_MODELS, outputs, strict=True):
            defects = Defects(output.content, output.content_strength, output.quality, output.quality_strength)
            images = {**conditions, "output": png(output.picture)}
            sample_id = SampleId(NAME, part, image_model, f"unseen_{number:02d}.png")
            samples.append(Sample(sample_id, images, instruction.texts, ratings(defects), kind=part))
    return tuple(samples)


UNSEEN = Benchmark(
    NAME,
    dict.fromkeys(TASKS, INSTRUCTIONS * len(IMAGE_MODELS)),
    load,
    lambda root, part: [],
    ByImageModel(),
    source="drawn by VIEval",
    licence="Apache-2.0; photographs of scikit-image, whose terms its file data/README.txt states",
    trainable=False,
    synthetic=True,
    note="Synthetic: images drawn by VIEval with defects of kinds that no judge of ours was trained on, ratings that follow from them. No human rated these.",
)
