"""Defects of each output of the synthetic benchmark, how strong they are, and what rating follows;
nothing is drawn here.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.text.errors import VievalError

NAME = "vieval_demo"
INSTRUCTIONS = 16
LICENCE = "Apache-2.0; photographs from scikit-image: CC0 or in the public domain"

_CONTENT_DEFECTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "tig": (("wrong_count", "wrong_colour"), ("missing_object", "wrong_colour")),
    "mie": (("edit_not_done", "over_edited"),),
    "tie": (("edit_not_done", "over_edited"),),
    "sdig": (("wrong_subject", "wrong_colour"),),
    "sdie": (("wrong_subject", "wrong_colour", "over_edited"),),
    "mcic": (("wrong_subject", "wrong_colour", "missing_object"),),
    "cig": (("ignored_control",),),
}
TASKS = tuple(_CONTENT_DEFECTS)
QUALITY_DEFECTS = ("noise", "blur", "watermark")

# Exponents on evenly spaced strengths, for content and for quality: above 1 most defects are mild,
# below 1 severe.
_MIXTURES = {
    "demo_a": (1.8, 0.7),
    "demo_b": (1.0, 1.5),
    "demo_c": (0.6, 1.0),
}
IMAGE_MODELS = tuple(_MIXTURES)


@dataclass(frozen=True)
class Defects:
    """Defects of an output; at strength 0 one is not there."""

    #: Defect of content.
    content: str
    #: Its strength in [0, 1].
    content_strength: float
    #: Defect of quality.
    quality: str
    #: Its strength in [0, 1].
    quality_strength: float


def quarters(strength: float) -> int:
    """A strength in [0, 1] as 0 to 4 quarters, for what is there in whole things only; halfway
    goes up.
    """
    return int(strength * 4 + 0.5)


def uids() -> list[str]:
    """The uids of a part, by the number of their instruction."""
    return [f"demo_{index:02d}.png" for index in range(INSTRUCTIONS)]


def content_defects(task: str, index: int) -> tuple[str, ...]:
    """The content defects that fit an instruction of a task; those of `tig` are of two sorts, by
    turns.
    """
    sorts = _CONTENT_DEFECTS[task]
    return sorts[index % len(sorts)]


def defects(sample_id: SampleId) -> Defects:
    """Defects of an output of this benchmark: the truth behind its ratings.

    Raises:
        VievalError: the benchmark has no such sample.
    """
    is_planned = (
        sample_id.part in TASKS
        and sample_id.image_model in IMAGE_MODELS
        and sample_id.uid in uids()
    )
    if sample_id.benchmark != NAME or not is_planned:
        raise VievalError(
            f"{NAME} has no sample {sample_id}; an example is {NAME}/tie/{IMAGE_MODELS[0]}/{uids()[0]}"
        )
    return _planned(
        sample_id.part,
        sample_id.image_model,
        uids().index(sample_id.uid),
    )


def ratings(output_defects: Defects) -> dict[str, tuple[float, ...]]:
    """The ratings of one synthetic rater: SC and PQ to the nearest quarter, as people rate
    coarsely, and O.
    """
    sc = 1 - quarters(output_defects.content_strength) / 4
    pq = 1 - quarters(output_defects.quality_strength) / 4
    return {
        "SC": (sc,),
        "PQ": (pq,),
        "O": (math.sqrt(sc * pq),),
    }


def _planned(task: str, image_model: str, index: int) -> Defects:
    """Strengths spread over the whole range in shuffled order, so that ratings vary within every
    image model.
    """
    rng = random.Random(f"{NAME}/{task}/{image_model}")
    content, content_kind, quality, quality_kind = (_shuffled(rng) for _ in range(4))
    kinds = content_defects(task, index)
    content_exponent, quality_exponent = _MIXTURES[image_model]
    content_defect = kinds[content_kind[index] % len(kinds)]
    content_strength = _strength(content[index], content_exponent)
    quality_defect = QUALITY_DEFECTS[quality_kind[index] % len(QUALITY_DEFECTS)]
    quality_strength = _strength(quality[index], quality_exponent)
    return Defects(
        content=content_defect,
        content_strength=content_strength,
        quality=quality_defect,
        quality_strength=quality_strength,
    )


def _strength(rank: int, exponent: float) -> float:
    """The first quarter of the ranks have no defect at all, as most image models get some things
    right.
    """
    clean = INSTRUCTIONS // 4
    share = max(0, rank - clean + 1) / (INSTRUCTIONS - clean)
    return round(math.pow(share, exponent), 3)


def _shuffled(rng: random.Random) -> list[int]:
    # only random() itself gives the same numbers in every version of Python
    return sorted(range(INSTRUCTIONS), key=lambda _: rng.random())
