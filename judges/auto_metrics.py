"""Judges that measure instead of asking a model in words: SSIM, PSNR, edge F1, colour histogram,
sharpness, and by a network CLIP-Score, CLIP-I, DINO, LPIPS.

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
from vieval_plugin.judges.spec import JudgeSpec, Needs, NoOptions, PixelMeasure

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
    #: As `images`, for texts.
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: What it measures in pixels; None of a network.
    pixels: PixelMeasure | None = None


def judge(metric: AutoMetric, scorer: str = "") -> Judge:
    """The judge that rates `metric.aspect` by this metric alone, measured by the named scorer where
    it is a network's.

    Its verdict has that one score, and in its trace the value as measured. There is no score if the
    measurement failed (the failure's status); the trace's step has the reason.
    """

    def program(sample: Sample) -> Program:
        images = fill_roles(_with_reference(metric, sample), sample.images)
        texts = fill_roles(
            metric.texts,
            {name: text for name, text in sample.texts.items() if text.strip()},
        )
        [reply] = yield [Measure(metric.name, images, (metric.name,), texts, scorer)]
        return verdict_of(metric, reply)

    return program


def _with_reference(
    metric: AutoMetric, sample: Sample
) -> Mapping[str, tuple[str, ...]]:
    """The roles that fill the metric's: of what an output is compared with, the sample's own
    reference where it has one.
    """
    own = {REFERENCE: (REFERENCE,)}
    is_compared = REFERENCE in metric.images and REFERENCE in sample.images
    return {**metric.images, **(own if is_compared else {})}


def fill_roles(
    roles: Mapping[str, tuple[str, ...]], available: Mapping[str, T]
) -> dict[str, T]:
    """Each role with the first of what can fill it."""
    return {
        role: next(
            available[sample_role]
            for sample_role in candidates
            if sample_role in available
        )
        for role, candidates in roles.items()
    }


def spec(metric: AutoMetric, scored: bool = False) -> JudgeSpec:
    """The metric as a judge describes itself; one that is `scored` is measured by the scorer of
    its name.
    """
    needs = Needs(tuple(metric.images.values()), tuple(metric.texts.values()))
    compares = Needs((metric.images["image"], REFERENCE))
    return JudgeSpec(
        name=metric.name,
        title=metric.title,
        aspects=(metric.aspect,),
        method="a network that returns a number" if scored else "an image metric",
        needs=dict.fromkeys(metric.kinds, needs),
        options=NoOptions,
        build=lambda options, pack, setting: judge(
            metric, metric.name if scored else ""
        ),
        scored=scored,
        compares=compares if REFERENCE in metric.images else None,
        pixels=metric.pixels,
    )


def measured_step(name: str, reply: Reply) -> Step:
    """The step of a measurement, with its value as it is, or of its failure."""
    if isinstance(reply, Failure):
        return Step((name,), reply.status, reason=reply.reason)
    if not isinstance(reply, Measurement) or not math.isfinite(reply.value):
        return Step(
            (name,),
            Status.TOOL_ERROR,
            reason=f"expected a finite measurement, got {reply}",
        )
    return Step((name,), Status.OK, (reply.value,), f"{reply.value:.6g}", reply.by)


def verdict_of(metric: AutoMetric, reply: Reply) -> Verdict:
    """The verdict of a measurement in the metric's own unit, or of its failure."""
    step = measured_step(metric.name, reply)
    scores = {metric.aspect: metric.to_score(step.scores[0])} if step.scores else {}
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
    return min(max(1 - value, -1.0), 1.0)


_OUTPUT = {"image": ("output",)}
_SOURCE, _CONTROL, _SUBJECT = (
    {**_OUTPUT, "reference": roles}
    for roles in (("source",), ("control",), ("subject", "concepts"))
)
_EDITING, _SUBJECTS = ("mie", "tie", "sdie"), ("sdig", "sdie", "mcic")
_ALL = ("tig", "mie", "tie", "sdig", "sdie", "mcic", "cig")

_NEAR_SOURCE = PixelMeasure(
    "closer to their references",
    "closest to their references",
    "edits are compared with their source, so an edit that changes nothing scores highest",
)
_NEAR_EDGES = PixelMeasure(
    "closer to the control's edges",
    "closest to the control's edges",
    "only edges are compared, not the content of the image",
)
_NEAR_COLOURS = PixelMeasure(
    "closer to the subject's colours",
    "closest to the subject's colours",
    "only colours are compared, not the content of the image",
)
_SHARP = PixelMeasure("sharper", "sharpest", "noise counts as sharp")

METRICS = (
    AutoMetric("ssim", "SSIM", "SC", _SOURCE, _EDITING, _clipped, pixels=_NEAR_SOURCE),
    AutoMetric("psnr", "PSNR", "SC", _SOURCE, _EDITING, _decibels, pixels=_NEAR_SOURCE),
    AutoMetric(
        "edge_f1", "Edge F1", "SC", _CONTROL, ("cig",), _clipped, pixels=_NEAR_EDGES
    ),
    AutoMetric(
        "histogram",
        "Colour histogram",
        "SC",
        _SUBJECT,
        _SUBJECTS,
        _clipped,
        pixels=_NEAR_COLOURS,
    ),
    AutoMetric("sharpness", "Sharpness", "PQ", _OUTPUT, _ALL, _clipped, pixels=_SHARP),
)

_CONDITION = {**_OUTPUT, "reference": ("source", "control")}
_PROMPT = {"text": ("prompt",)}
NETWORK_METRICS = (
    AutoMetric(
        "clip_score", "CLIP-Score", "SC", _OUTPUT, ("tig",), _similarity, _PROMPT
    ),
    AutoMetric("clip_i", "CLIP-I", "SC", _SUBJECT, _SUBJECTS, _similarity),
    AutoMetric("dino", "DINO", "SC", _SUBJECT, _SUBJECTS, _similarity),
    AutoMetric("lpips", "LPIPS", "SC", _CONDITION, ("mie", "tie", "cig"), _nearness),
)
# of DINO and CLIP-I the paper has two tables, by kind, which are one here
_TABLES = {"clip_score": "T8", "lpips": "T9", "clip_i": "T10/11", "dino": "T10/11"}

NETWORK_SPECS = tuple(
    replace(spec(metric, scored=True), against_all=True, table=_TABLES[metric.name])
    for metric in NETWORK_METRICS
)
SPECS = (*map(spec, METRICS), *NETWORK_SPECS)
