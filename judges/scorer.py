"""A scorer that its user describes: a reward model that sees images and a text and answers with a number.

The judge words the text and chooses the images as the description says, and reads the number as a score. Whatever form
the network has, it is asked in the same way. The value is compared with each of people's SC, PQ and O.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from vieval_plugin.judges.auto_metrics import AutoMetric, fill_roles, verdict_of
from vieval_plugin.judges.protocol import Judge, Measure, Program, Sample
from vieval_plugin.judges.spec import EVERY_KIND, JudgeSpec, Needs, NoOptions

NAME = "scorer"


@dataclass(frozen=True)
class Scale:
    """Mapping of a scorer's number to a score in [0, 1] that is better the higher it is.

    `linear`: from 0 at `low` to 1 at `high`, and no further, so that numbers beyond are alike. `sigmoid`: a half at
    `low`, and 0.73 at `high`; no two numbers are alike. With `better` "lower", less is better.

    >>> Scale("linear", 0, 8)(6), Scale("linear", 0, 8, "lower")(6)
    (0.75, 0.25)
    >>> Scale("sigmoid", 0, 1)(0)
    0.5
    """

    kind: Literal["linear", "sigmoid"]
    low: float
    high: float
    better: Literal["higher", "lower"] = "higher"

    def __call__(self, value: float) -> float:
        place = (value - self.low) / (self.high - self.low)
        if self.better == "lower":
            place = 1 - place if self.kind == "linear" else -place
        if self.kind == "linear":
            return min(max(place, 0.0), 1.0)
        # the same either way, and neither overflows
        return 1 / (1 + math.exp(-place)) if place >= 0 else math.exp(place) / (1 + math.exp(place))


class Described(Protocol):
    """Description of a scorer, as far as the judge needs it: `form` is the metric that answers, `images` and `texts`
    what is needed of a sample.
    """

    @property
    def form(self) -> str: ...

    @property
    def aspect(self) -> str: ...

    @property
    def kinds(self) -> tuple[str, ...]: ...

    @property
    def images(self) -> tuple[tuple[str, ...], ...]: ...

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]: ...

    @property
    def scale(self) -> Scale: ...

    def render(self, variables: Mapping[str, Any]) -> str: ...


def judge(described: Described) -> Judge:
    """The judge of a description. Images are the roles `image_0`, `image_1`, ..., the words the role `text`."""
    images = {f"image_{number}": roles for number, roles in enumerate(described.images)}
    metric = AutoMetric(described.form, NAME, described.aspect, images, described.kinds, described.scale)

    def program(sample: Sample) -> Program:
        words = described.render({**sample.texts, "kind": sample.kind})
        measure = Measure(metric.name, fill_roles(images, sample.images), (metric.name,), {"text": words}, NAME)
        [reply] = yield [measure]
        return verdict_of(metric, reply)

    return program


def needs(described: Described) -> dict[str, Needs]:
    """Needs of a sample, by kind."""
    return dict.fromkeys(described.kinds, Needs(described.images, described.texts))


SPEC = JudgeSpec(
    name=NAME,
    title="a described scorer",
    aspects=("O",),
    method="any reward model that you [describe](docs/scorers.md#described-scorers), here or behind vLLM",
    needs={EVERY_KIND: Needs(("output",))},
    options=NoOptions,
    build=lambda options, described, setting: judge(described),
    scored=True,
    against_all=True,
    described=needs,
)
