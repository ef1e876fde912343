"""vieval_demo: a synthetic benchmark over the seven tasks, drawn here, with ratings that nobody gave.

It is for trying the plugin out without downloads and for testing it: every output has one content defect and one
quality defect of known strength, and its rating follows from them. It says nothing about any image model, and its
numbers never stand beside ImagenHub's human ratings. The three "image models" are three mixtures of defects.

Content defects: wrong count, wrong colour, missing object, edit not done, over-edited background, wrong subject,
ignored control. Quality defects: noise, blur, watermark.
"""

from __future__ import annotations

import io
import math
import random
import zlib
from dataclasses import dataclass
from pathlib import Path

import PIL.Image

from vieval_plugin.data.demo_defects import QUALITY_DEFECTS, quarters, spoil
from vieval_plugin.data.demo_scenes import TASKS, Case, case, content_defects
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Image, Sample, SampleId

BENCHMARK = "vieval_demo"
INSTRUCTIONS = 16

# Exponents on evenly spaced strengths, for content and for quality: above 1 most defects are mild, below 1 severe.
_MIXTURES = {"demo_a": (1.8, 0.7), "demo_b": (1.0, 1.5), "demo_c": (0.6, 1.0)}
IMAGE_MODELS = tuple(_MIXTURES)


@dataclass(frozen=True)
class Defects:
    """What is wrong with an output: one defect of content and one of quality, each with a strength in [0, 1].

    At strength 0 the named defect is not there.
    """

    content: str
    content_strength: float
    quality: str
    quality_strength: float


def samples(task: str, root: Path | None = None) -> list[Sample]:
    """All 48 samples of a task, by uid and then image model, their images drawn now and held as PNG files in memory.

    Args:
        task: one of the seven codes in `TASKS`.
        root: not used; other benchmarks read from a data folder here.

    Returns:
        Samples of 256 x 256 pixels with the ratings of one synthetic rater: SC is 1 - the content defect's strength,
        PQ 1 - the quality defect's, both to the nearest quarter as people rate coarsely, and O the root of their
        product.

    Raises:
        VievalError: there is no such task, or scikit-image (for its photographs) is not installed.
    """
    if task not in TASKS:
        raise VievalError(f"no {BENCHMARK} task {task!r}; the seven are {', '.join(TASKS)}")
    found = []
    for index in range(INSTRUCTIONS):
        drawn = case(task, index)
        conditions = {role: _png(picture) for role, picture in drawn.conditions.items()}
        for image_model in IMAGE_MODELS:
            sample_id = SampleId(BENCHMARK, task, image_model, _uid(index))
            wrong = _planned(task, image_model, index)
            images = {**conditions, "output": _png(_output(drawn, wrong, sample_id))}
            found.append(Sample(sample_id, images, drawn.texts, _ratings(wrong)))
    return found


def defects(sample_id: SampleId) -> Defects:
    """What is wrong with an output of this benchmark: the truth behind its ratings.

    Raises:
        VievalError: the benchmark has no such sample.
    """
    uids = [_uid(index) for index in range(INSTRUCTIONS)]
    known = sample_id.task in TASKS and sample_id.image_model in IMAGE_MODELS and sample_id.uid in uids
    if sample_id.benchmark != BENCHMARK or not known:
        raise VievalError(f"{BENCHMARK} has no sample {sample_id}; one is {BENCHMARK}/tie/{IMAGE_MODELS[0]}/{uids[0]}")
    return _planned(sample_id.task, sample_id.image_model, uids.index(sample_id.uid))


def _planned(task: str, image_model: str, index: int) -> Defects:
    """Strengths spread over the whole range in shuffled order, so that ratings vary within every image model."""
    rng = random.Random(f"{BENCHMARK}/{task}/{image_model}")
    content, content_kind, quality, quality_kind = (_shuffled(rng) for _ in range(4))
    kinds = content_defects(task, index)
    content_exponent, quality_exponent = _MIXTURES[image_model]
    return Defects(
        content=kinds[content_kind[index] % len(kinds)],
        content_strength=_strength(content[index], content_exponent),
        quality=QUALITY_DEFECTS[quality_kind[index] % len(QUALITY_DEFECTS)],
        quality_strength=_strength(quality[index], quality_exponent),
    )


def _strength(rank: int, exponent: float) -> float:
    """The first quarter of the ranks have no defect at all, as most image models get some things right."""
    clean = INSTRUCTIONS // 4
    return round(math.pow(max(0, rank - clean + 1) / (INSTRUCTIONS - clean), exponent), 3)


def _shuffled(rng: random.Random) -> list[int]:
    # only random() itself gives the same numbers in every version of Python
    return sorted(range(INSTRUCTIONS), key=lambda _: rng.random())


def _ratings(wrong: Defects) -> dict[str, tuple[float, ...]]:
    sc = 1 - quarters(wrong.content_strength) / 4
    pq = 1 - quarters(wrong.quality_strength) / 4
    return {"SC": (sc,), "PQ": (pq,), "O": (math.sqrt(sc * pq),)}


def _output(drawn: Case, wrong: Defects, sample_id: SampleId) -> PIL.Image.Image:
    picture = drawn.draw(wrong.content, wrong.content_strength)
    seed = zlib.crc32(str(sample_id).encode())
    return spoil(picture, wrong.quality, wrong.quality_strength, seed)


def _png(picture: PIL.Image.Image) -> Image:
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=2)  # a third of the time for 5% more bytes
    return Image(file.getvalue())


def _uid(index: int) -> str:
    return f"demo_{index:02d}.png"
