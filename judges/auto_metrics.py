"""Judges that measure instead of asking a model in words: SSIM, PSNR, edge F1, colour histogram,
sharpness, and by a network CLIP-Score, CLIP-I, CLIP-D, DINO, LPIPS.

Each metric is a judge of its own that yields one `Measure` and rates one aspect. The function that
computes it stands under the same name in the measuring backend. A network metric is answered by a
scorer, or by a replay of recorded values; its value of a sample is compared with each of people's
SC, PQ and O.

Source of the kinds of each network: Ku et al., VIEScore (ACL 2024), Tables 8 to 11.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from vieval_plugin.judges.protocol import (
    REFERENCE,
    Failure,
    Judge,
    Measure,
    Measurement,
    Program,
    Reply,
    Sample,
    Status,
    Step,
    Verdict,
)
from vieval_plugin.judges.spec import JudgeSpec, Needs, NoOptions, Quantity

T = TypeVar("T")


@dataclass(frozen=True)
class AutoMetric:
    """Metric as a judge: what it looks at, where it applies, and how its value becomes a score."""

    #: Name of the metric and of the judge.
    name: str
    #: Name in papers.
    title: str
    #: The one that it rates.
    aspect: str
    #: The sample's roles that can fill each role of the metric; the first one present is taken.
    images: Mapping[str, tuple[str, ...]]
    #: Kinds whose samples have them.
    kinds: Sequence[str]
    #: Value in the metric's unit to [0, 1], a cosine or distance to [-1, 1]; higher is better, the
    #: order is kept.
    to_score: Callable[[float], float]
    #: What its value is; None of a network in a file, which says it there.
    quantity: Quantity | None = None
    #: As `images`, for texts.
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def judge(metric: AutoMetric, scorer: str = "") -> Judge:
    """The judge that rates `metric.aspect` by this metric alone, measured by the named scorer where
    it is a network's.

    Its verdict has that one score, and in its trace the value as measured. There is no score if the
    measurement failed (the failure's status); the trace's step has the reason.
    """

    def program(sample: Sample) -> Program:
        roles = dict(metric.images)
        # of what an output is compared with, the sample's own reference
        if REFERENCE in roles and REFERENCE in sample.images:
            roles[REFERENCE] = (REFERENCE,)
        images = fill_roles(roles, sample.images)
        held_texts = {name: text for name, text in sample.texts.items() if text.strip()}
        texts = fill_roles(metric.texts, held_texts)
        [reply] = yield [
            Measure(
                metric.name,
                images,
                (metric.name,),
                texts,
                scorer,
            )
        ]
        return verdict_of(metric, reply)

    return program


def fill_roles(
    roles: Mapping[str, tuple[str, ...]], available: Mapping[str, T]
) -> dict[str, T]:
    """Each role with the first image that can fill it."""
    filled = {
        role: next(available[name] for name in candidates if name in available)
        for role, candidates in roles.items()
    }
    return filled


def spec(metric: AutoMetric, scored: bool = False) -> JudgeSpec:
    """The metric as a judge describes itself; one that is `scored` is measured by the scorer of
    its name.
    """
    needs = Needs(tuple(metric.images.values()), tuple(metric.texts.values()))
    compares = None
    if REFERENCE in metric.images:
        compares = Needs((metric.images["image"], REFERENCE))
    scorer = metric.name if scored else ""
    return JudgeSpec(
        name=metric.name,
        title=metric.title,
        aspects=(metric.aspect,),
        method="a network that returns a number" if scored else "an image metric",
        needs=dict.fromkeys(metric.kinds, needs),
        options=NoOptions,
        build=lambda options, pack, setting: judge(metric, scorer),
        scored=scored,
        compares=compares,
        quantity=metric.quantity,
    )


def measured_step(name: str, reply: Reply) -> Step:
    """The step of a measurement, with its value as it is, or of its failure."""
    if isinstance(reply, Failure):
        return Step((name,), reply.status, reason=reply.reason)
    returned = reply.value if isinstance(reply, Measurement) else type(reply).__name__
    if not isinstance(reply, Measurement) or not math.isfinite(reply.value):
        return Step(
            (name,),
            Status.TOOL_ERROR,
            reason=f"the metric must return a finite number, got {returned}",
        )
    value = reply.value
    return Step((name,), Status.OK, (value,), f"{value:.6g}", reply.by)


def verdict_of(metric: AutoMetric, reply: Reply) -> Verdict:
    """The verdict of a measurement in the metric's own unit, or of its failure."""
    step = measured_step(metric.name, reply)
    scores = {}
    if step.scores:
        scores[metric.aspect] = metric.to_score(step.scores[0])
    return Verdict(scores, step.status, trace=(step,))


def _clipped(value: float) -> float:
    """For metrics whose unit is the score's; what little SSIM goes below 0 means as little as 0."""
    return min(max(value, 0.0), 1.0)


def _decibels(value: float) -> float:
    """0 to 50 dB as 0 to 1: from 50 dB on, 8-bit images differ by less than one level (root mean
    square).
    """
    return _clipped(value / 50)


def _similarity(value: float) -> float:
    """A cosine as it is, below 0 too, since the published correlations are of raw cosines."""
    return min(max(value, -1.0), 1.0)


def _nearness(value: float) -> float:
    """A distance as a score: 1 for none, and less by as much as it is, so that means of scores
    order as those of distances do; -1 from 2 on, which hardly any two images reach.
    """
    return _similarity(1 - value)


_OUTPUT = {"image": ("output",)}
_SOURCE = {**_OUTPUT, "reference": ("source",)}
_CONTROL = {**_OUTPUT, "reference": ("control",)}
_SUBJECT = {**_OUTPUT, "reference": ("subject", "concepts")}
_LIKE = {**_OUTPUT, "reference": ("subject", "concepts", "source")}
_EDITING = ("mie", "tie", "sdie")
_SUBJECTS = ("sdig", "sdie", "mcic")
_ALL = ("tig", "mie", "tie", "sdig", "sdie", "mcic", "cig")


def _likeness(meaning: str) -> Quantity:
    """Likeness of an output and its reference, as `meaning` has it."""
    return Quantity(
        "closer to their references",
        "closest to their references",
        meaning,
    )


_UNCHANGED = "(highest for an edit that changed nothing)"
_NEAR_SOURCE = _likeness(f"similarity to the source or reference {_UNCHANGED}")
_NEAR_EDGES = Quantity(
    "closer to the control's edges",
    "closest to the control's edges",
    "only edges, not the content of the image",
)
_NEAR_COLOURS = Quantity(
    "closer to the subject's colours",
    "closest to the subject's colours",
    "only colours, not the content of the image",
)
_SHARP = Quantity(
    "sharper",
    "sharpest",
    "edges, including those of noise",
)

METRICS = (
    AutoMetric(
        "ssim",
        "SSIM",
        aspect="SC",
        images=_SOURCE,
        kinds=_EDITING,
        to_score=_clipped,
        quantity=_NEAR_SOURCE,
    ),
    AutoMetric(
        "psnr",
        "PSNR",
        aspect="SC",
        images=_SOURCE,
        kinds=_EDITING,
        to_score=_decibels,
        quantity=_NEAR_SOURCE,
    ),
    AutoMetric(
        "edge_f1",
        "Edge F1",
        aspect="SC",
        images=_CONTROL,
        kinds=("cig",),
        to_score=_clipped,
        quantity=_NEAR_EDGES,
    ),
    AutoMetric(
        "histogram",
        "Colour histogram",
        aspect="SC",
        images=_SUBJECT,
        kinds=_SUBJECTS,
        to_score=_clipped,
        quantity=_NEAR_COLOURS,
    ),
    AutoMetric(
        "sharpness",
        "Sharpness",
        aspect="PQ",
        images=_OUTPUT,
        kinds=_ALL,
        to_score=_clipped,
        quantity=_SHARP,
    ),
)

_CONDITION = {**_OUTPUT, "reference": ("source", "control")}
_PROMPT = {"text": ("prompt",)}
_EDIT = {**_OUTPUT, "source": ("source",)}
_CAPTIONS = {
    "output_text": ("output_caption", "target_prompt"),
    "source_text": ("source_caption", "source_prompt"),
}
_LIKE_KINDS = ("mie", "tie", *_SUBJECTS)
NETWORK_METRICS = (
    AutoMetric(
        "clip_score",
        "CLIP-Score",
        aspect="SC",
        images=_OUTPUT,
        kinds=("tig",),
        to_score=_similarity,
        quantity=Quantity(
            "closer to their prompts",
            "closest to their prompts",
            "similarity between image and prompt in CLIP's embedding",
        ),
        texts=_PROMPT,
    ),
    AutoMetric(
        "clip_i",
        "CLIP-I",
        aspect="SC",
        images=_LIKE,
        kinds=_LIKE_KINDS,
        to_score=_similarity,
        quantity=_likeness(
            f"similarity to the reference in CLIP's embedding {_UNCHANGED}"
        ),
    ),
    AutoMetric(
        "clip_direction",
        "CLIP-D",
        aspect="SC",
        images=_EDIT,
        kinds=("mie", "tie"),
        to_score=_similarity,
        quantity=Quantity(
            "closer to the change in their captions",
            "closest to the change in their captions",
            "the direction of an edit in CLIP's embedding, regardless of its size and "
            "quality",
        ),
        texts=_CAPTIONS,
    ),
    AutoMetric(
        "dino",
        "DINO",
        aspect="SC",
        images=_LIKE,
        kinds=_LIKE_KINDS,
        to_score=_similarity,
        quantity=_likeness(f"similarity in DINO's embedding {_UNCHANGED}"),
    ),
    AutoMetric(
        "lpips",
        "LPIPS",
        aspect="SC",
        images=_CONDITION,
        kinds=("mie", "tie", "cig"),
        to_score=_nearness,
        quantity=_likeness(f"similarity in AlexNet's features {_UNCHANGED}"),
    ),
)
# of DINO and CLIP-I the paper has two tables, by kind, which are one here
_TABLES = {
    "clip_score": "T8",
    "lpips": "T9",
    "clip_i": "T10/11",
    "dino": "T10/11",
}

NETWORK_SPECS = tuple(
    replace(
        spec(metric, scored=True),
        against_all=True,
        table=_TABLES.get(metric.name, ""),
    )
    for metric in NETWORK_METRICS
)
SPECS = (*map(spec, METRICS), *NETWORK_SPECS)
