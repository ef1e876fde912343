"""Judges that measure instead of asking a backbone: SSIM, PSNR, edge F1, colour histogram, sharpness.

Each metric is a judge of its own that yields one `Measure` and rates one aspect. A metric is a row of `METRICS`; one
that needs weights (CLIP-Score, LPIPS, DINO) joins by another row and a function of that name in the measuring backend.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vieval_plugin.judges.protocol import (
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


@dataclass(frozen=True)
class AutoMetric:
    """A metric as a judge: what it looks at, where it applies, and how its value becomes a score.

    `aspect` is the one it rates. `images` maps each role of the metric to the sample's roles that can fill it, the
    first one present is taken. `tasks` are the codes of the tasks whose samples have them. `to_score` maps the value
    in the metric's own unit to [0, 1] without ever turning the order round, so that rank statistics hardly notice it.
    """

    name: str
    aspect: str
    images: Mapping[str, tuple[str, ...]]
    tasks: tuple[str, ...]
    to_score: Callable[[float], float]


def judge(metric: AutoMetric) -> Judge:
    """The judge that rates `metric.aspect` by this metric alone.

    Its verdict has that one score, and in its trace the value as measured. There is no score if the sample lacks an
    image the metric needs (`tool_error`, nothing is asked) or the measurement failed (the failure's status); the
    trace's step has the reason.
    """

    def program(sample: Sample) -> Program:
        images = {}
        for role, candidates in metric.images.items():
            present = next((candidate for candidate in candidates if candidate in sample.images), None)
            if present is None:
                return _unrated(metric, Status.TOOL_ERROR, f"the sample has no image {' or '.join(candidates)}")
            images[role] = sample.images[present]
        [reply] = yield [Measure(metric.name, images, metric.name, sample.texts)]
        return _verdict(metric, reply)

    return program


def _verdict(metric: AutoMetric, reply: Reply) -> Verdict:
    if isinstance(reply, Failure):
        return _unrated(metric, reply.status, reply.reason)
    if not isinstance(reply, Measurement) or not math.isfinite(reply.value):
        return _unrated(metric, Status.TOOL_ERROR, f"a finite measurement was expected, not {reply}")
    step = Step(metric.name, Status.OK, scores=(reply.value,), answer=f"{reply.value:.6g}")
    return Verdict({metric.aspect: metric.to_score(reply.value)}, Status.OK, trace=(step,))


def _unrated(metric: AutoMetric, status: Status, reason: str) -> Verdict:
    return Verdict({}, status, trace=(Step(metric.name, status, reason=reason),))


def _clipped(value: float) -> float:
    """For metrics whose unit is the score's; what little SSIM goes below 0 means as little as 0."""
    return min(max(value, 0.0), 1.0)


def _decibels(value: float) -> float:
    """0 to 50 dB as 0 to 1: from 50 dB on, 8-bit images differ by less than one level (root mean square)."""
    return _clipped(value / 50)


_OUTPUT = {"image": ("output",)}
_ALL_TASKS = ("tig", "mie", "tie", "sdig", "sdie", "mcic", "cig")
_EDITING = ("mie", "tie", "sdie")

_TABLE = (
    AutoMetric("ssim", "SC", {**_OUTPUT, "reference": ("source",)}, _EDITING, _clipped),
    AutoMetric("psnr", "SC", {**_OUTPUT, "reference": ("source",)}, _EDITING, _decibels),
    AutoMetric("edge_f1", "SC", {**_OUTPUT, "reference": ("control",)}, ("cig",), _clipped),
    AutoMetric(
        "histogram", "SC", {**_OUTPUT, "reference": ("subject", "concepts")}, ("sdig", "sdie", "mcic"), _clipped
    ),
    AutoMetric("sharpness", "PQ", _OUTPUT, _ALL_TASKS, _clipped),
)

METRICS: Mapping[str, AutoMetric] = {metric.name: metric for metric in _TABLE}
"""All metrics by name."""
